//! Address spaces: page tables of three levels, built of frames.

use core::arch::asm;
use core::ops::Range;

use arrayvec::ArrayVec;
use nbbs_adapters::FRAME_SIZE;

use super::direct;
use crate::memory::{Context, Held};

/// Physical addresses that are in the direct map from the start.
pub const MAPPED_AT_BOOT: u64 = 256 << 30;
/// Memory would be mapped in pages of this size, aligned to it.
pub const MAP_STEP: u64 = 2 << 20;

/// Where an address space has pages of its own: above all memory, in the lower half.
const OWN: Range<u64> = 64 << 30..256 << 30;

const ENTRIES: usize = 512;
const VALID: u64 = 1;
/// Read, write, accessed, dirty.
const PAGE: u64 = VALID | 0b1100_0110;

unsafe extern "C" {
    static boot_root: [u64; ENTRIES];
}

/// The direct map has all memory from the start.
pub fn map_memory(addresses: Range<u64>) {
    assert!(addresses.end <= MAPPED_AT_BOOT, "{addresses:x?} is not in the direct map");
}

fn enter(root: u64) {
    const THREE_LEVELS: u64 = 8 << 60;
    // SAFETY: all address spaces map what the kernel uses.
    unsafe { asm!("csrw satp, {}", "sfence.vma", in(reg) THREE_LEVELS | (root / FRAME_SIZE)) };
}

/// Returns the place of an address's entry in a table of a level: 2 is the top.
fn slot(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * level)) as usize % ENTRIES
}

/// Returns the entry that points to a frame.
fn entry_of(frame: &Held, flags: u64) -> u64 {
    (frame.addresses().start >> 2) | flags
}

/// The most pages of an address space, and its tables: two for each page, and the top.
const MOST_PAGES: usize = 32;
const MOST_TABLES: usize = 2 * MOST_PAGES + 1;

/// An address space: the kernel's, and pages of its own in the lower half.
pub struct AddressSpace {
    tables: ArrayVec<Held, MOST_TABLES>,
    pages: ArrayVec<(u64, Held), MOST_PAGES>,
}

/// A frame for a table.
fn table() -> Option<Held> {
    Held::alloc(Context::Tables, 0)
}

/// Clears a table, including the frame's mark, which is written again before the frame goes back.
fn clear(table: &Held) {
    // SAFETY: the frame is the table's, and in the direct map.
    unsafe { table.pointer().write_bytes(0, FRAME_SIZE as usize) };
}

impl AddressSpace {
    /// Creates an address space without pages of its own. Returns `None` if there is no memory for its top table.
    pub fn new() -> Option<Self> {
        let root = table()?;
        // SAFETY: the kernel's top table does not change; the new frame is ours.
        unsafe {
            let kernel: *const u8 = (&raw const boot_root).cast();
            root.pointer().copy_from_nonoverlapping(kernel, FRAME_SIZE as usize);
            let own = slot(OWN.start, 2)..slot(OWN.end - 1, 2) + 1;
            let first = root.pointer().cast::<u64>().add(own.start);
            first.write_bytes(0, own.len());
        }
        Some(Self { tables: ArrayVec::from_iter([root]), pages: ArrayVec::new() })
    }

    /// Maps a frame at an address of the lower half, moved to where an address space has pages of its own. Returns the
    /// frame if there is no memory for tables, or something is mapped there.
    pub fn map(&mut self, address: u64, frame: Held) -> Result<(), Held> {
        let address = OWN.start + address % (OWN.end - OWN.start);
        let Some(entry) = self.entry(address) else { return Err(frame) };
        // SAFETY: the entry is one of this space's tables, which nobody has entered.
        unsafe {
            if *entry != 0 {
                return Err(frame);
            }
            *entry = entry_of(&frame, PAGE);
        }
        self.pages.push((address, frame));
        Ok(())
    }

    /// Returns the entry of the lowest table, with new tables on the way if necessary.
    fn entry(&mut self, address: u64) -> Option<*mut u64> {
        let mut at = self.tables[0].addresses().start;
        for level in [2, 1] {
            // SAFETY: `at` is one of this space's tables, in the direct map.
            let entry = unsafe { &mut *direct(at).cast::<u64>().add(slot(address, level)) };
            if *entry == 0 {
                let table = table()?;
                clear(&table);
                *entry = entry_of(&table, VALID);
                self.tables.push(table);
            }
            at = *entry >> 10 << 12;
        }
        Some(direct(at).cast::<u64>().wrapping_add(slot(address, 0)))
    }

    /// Writes numbers where the pages are mapped, and looks for them where the frames are.
    pub fn check(&self, seed: u64) {
        enter(self.tables[0].addresses().start);
        for (page, _) in &self.pages {
            // The second word, as the first is the frame's mark.
            let place = core::ptr::with_exposed_provenance_mut::<u64>(*page as usize + 8);
            // SAFETY: the page is mapped to a frame that this space holds.
            unsafe { place.write_volatile(seed ^ page) };
        }
        enter((&raw const boot_root).addr() as u64);
        for (page, frame) in &self.pages {
            // SAFETY: the frame is this space's, and in the direct map.
            let found = unsafe { frame.pointer().cast::<u64>().add(1).read_volatile() };
            assert!(
                found == seed ^ page,
                "what {page:#x} maps is not {:#x}",
                frame.addresses().start
            );
        }
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        self.pages.drain(..).for_each(|(_, frame)| frame.free());
        for table in self.tables.drain(..) {
            table.write_marks();
            table.free();
        }
    }
}
