//! Page tables, built of frames: the kernel's own, and those of address spaces.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use arrayvec::ArrayVec;
use nbbs_adapters::{FRAME_SIZE, Frames, Region};
use x86_64::registers::control::{Cr3, Cr3Flags};
use x86_64::structures::paging::mapper::{CleanUp, MapToError};
use x86_64::structures::paging::{
    FrameAllocator, FrameDeallocator, Mapper, OffsetPageTable, Page, PageTable, PageTableFlags,
    PhysFrame, Size2MiB, Size4KiB,
};
use x86_64::{PhysAddr, VirtAddr};

use super::{DIRECT_MAP, apic, clock, cpu_number, direct, low_frame};
use crate::cpus;
use crate::memory::{Context, Held, Holder, memory};

/// Physical addresses that are in the direct map before the kernel has tables of its own.
pub const MAPPED_AT_BOOT: u64 = 4 << 30;
/// Memory is mapped in pages of this size, aligned to it.
pub const MAP_STEP: u64 = 2 << 20;

const WRITABLE: PageTableFlags = PageTableFlags::PRESENT.union(PageTableFlags::WRITABLE);
const DEVICE: PageTableFlags = WRITABLE.union(PageTableFlags::NO_CACHE);

/// Physical address of the kernel's top table. `boot.s` gives it to CPUs that start.
#[unsafe(no_mangle)]
static KERNEL_ROOT: AtomicU64 = AtomicU64::new(0);

/// Builds the kernel's tables: the image where it is, and usable memory and devices in the direct map.
pub fn set_up(image: &Range<u64>, usable: impl Iterator<Item = Range<u64>>) {
    let root = TablesBelow(MAPPED_AT_BOOT).allocate_frame().expect("a frame for the top table");
    // SAFETY: the frame is new, and mapped since boot.
    unsafe { direct(root.start_address().as_u64()).write_bytes(0, FRAME_SIZE as usize) };
    // Release: pairs with the Acquire in `kernel_root`.
    KERNEL_ROOT.store(root.start_address().as_u64(), Ordering::Release);
    // This includes the first page, as CPUs start there.
    map(0..image.end, 0, WRITABLE);
    for addresses in usable {
        map_memory(addresses);
    }
    for device in [apic::LOCAL_APICS, clock::IO_APICS] {
        map(device..device + MAP_STEP, DIRECT_MAP as u64, DEVICE);
    }
    enter_kernel();
}

/// Adds memory to the direct map, which all address spaces share.
pub fn map_memory(addresses: Range<u64>) {
    map(addresses, DIRECT_MAP as u64, WRITABLE);
}

/// Makes the kernel's tables map physical addresses, `offset` further up. Only for the boot CPU.
fn map(addresses: Range<u64>, offset: u64, flags: PageTableFlags) {
    let mut frames = TablesBelow(MAPPED_AT_BOOT);
    // SAFETY: the kernel's tables are in the direct map, and only the boot CPU changes them.
    let mut tables = unsafe { tables(kernel_root()) };
    let first = addresses.start / MAP_STEP * MAP_STEP;
    for address in (first..addresses.end).step_by(MAP_STEP as usize) {
        let page = Page::<Size2MiB>::containing_address(VirtAddr::new(offset + address));
        let frame = PhysFrame::containing_address(PhysAddr::new(address));
        // SAFETY: nothing is mapped there yet, or the same: no reference changes its meaning.
        match unsafe { tables.map_to(page, frame, flags, &mut frames) } {
            Ok(mapped) => mapped.ignore(),
            Err(MapToError::PageAlreadyMapped(_)) => {}
            Err(error) => panic!("{address:#x} cannot be mapped: {error:?}"),
        }
    }
}

fn kernel_root() -> PhysFrame {
    // Acquire: pairs with the Release in `set_up`.
    PhysFrame::containing_address(PhysAddr::new(KERNEL_ROOT.load(Ordering::Acquire)))
}

/// # Safety
/// `root` is a top table in the direct map, and nobody else changes the tables.
unsafe fn tables(root: PhysFrame) -> OffsetPageTable<'static> {
    // SAFETY: the contract.
    let top = unsafe { &mut *direct(root.start_address().as_u64()).cast::<PageTable>() };
    // SAFETY: all tables are frames, which are in the direct map.
    unsafe { OffsetPageTable::new(top, VirtAddr::new(DIRECT_MAP as u64)) }
}

fn enter_kernel() {
    // SAFETY: the kernel's tables map whatever the kernel uses.
    unsafe { Cr3::write(kernel_root(), Cr3Flags::empty()) };
}

/// Frames below an address, for tables that are never given back.
struct TablesBelow(u64);

// SAFETY: the arena gives a frame to nobody else.
unsafe impl FrameAllocator<Size4KiB> for TablesBelow {
    fn allocate_frame(&mut self) -> Option<PhysFrame> {
        let address = low_frame(self.0)?;
        Some(PhysFrame::containing_address(PhysAddr::new(address)))
    }
}

/// Frames from the lane of this CPU, judged by the owner map.
struct Tables(Frames<'static>);

impl Tables {
    fn new() -> Self {
        let region = Region::new(memory().buddy(), 0).expect("0 is a multiple of everything");
        // SAFETY: the arena's frames are memory that only their holders use.
        Self(unsafe { Frames::new(region.on(cpu_number())) })
    }
}

fn held(frame: PhysFrame) -> Held {
    Held::of(frame.start_address().as_u64() / FRAME_SIZE, 0, Holder::here(Context::Tables))
}

// SAFETY: the arena gives a frame to nobody else.
unsafe impl FrameAllocator<Size4KiB> for Tables {
    fn allocate_frame(&mut self) -> Option<PhysFrame> {
        let frame = cpus::this().operation(|| self.0.allocate_frame())?;
        held(frame).note_taken();
        Some(frame)
    }
}

impl FrameDeallocator<Size4KiB> for Tables {
    unsafe fn deallocate_frame(&mut self, frame: PhysFrame) {
        held(frame).note_given();
        // SAFETY: passed on from the caller.
        cpus::this().operation(|| unsafe { self.0.deallocate_frame(frame) });
    }
}

/// The most pages of an address space.
const MOST_PAGES: usize = 32;

/// An address space: the kernel's, and pages of its own in the lower half.
pub struct AddressSpace {
    root: PhysFrame,
    frames: Tables,
    pages: ArrayVec<(Page, Held), MOST_PAGES>,
}

impl AddressSpace {
    /// Creates an address space without pages of its own. Returns `None` if there is no memory for its top table.
    pub fn new() -> Option<Self> {
        let mut frames = Tables::new();
        let root = frames.allocate_frame()?;
        let copy = direct(root.start_address().as_u64());
        // SAFETY: both are frames in the direct map, and the new one is ours. The kernel's top table does not change
        // any more: the tables below, which do, are shared.
        unsafe {
            copy.copy_from(direct(kernel_root().start_address().as_u64()), FRAME_SIZE as usize)
        };
        Some(Self { root, frames, pages: ArrayVec::new() })
    }

    /// Maps a frame at an address of the lower half. Returns the frame if there is no memory for tables, or something
    /// is mapped there.
    pub fn map(&mut self, address: u64, frame: Held) -> Result<(), Held> {
        let page = Page::containing_address(VirtAddr::new(address));
        let target = PhysFrame::containing_address(PhysAddr::new(frame.addresses().start));
        // SAFETY: the tables are this space's, which nobody has entered.
        let mut tables = unsafe { tables(self.root) };
        // SAFETY: the page is of the lower half, in which no reference points.
        match unsafe { tables.map_to(page, target, WRITABLE, &mut self.frames) } {
            Ok(mapped) => {
                mapped.ignore();
                self.pages.push((page, frame));
                Ok(())
            }
            Err(_) => Err(frame),
        }
    }

    /// Writes numbers where the pages are mapped, and looks for them where the frames are.
    pub fn check(&self, seed: u64) {
        let number = |page: &Page| seed ^ page.start_address().as_u64();
        // SAFETY: this space also maps what the kernel uses.
        unsafe { Cr3::write(self.root, Cr3Flags::empty()) };
        for (page, _) in &self.pages {
            // The second word, as the first is the frame's mark.
            let place = page.start_address().as_mut_ptr::<u64>().wrapping_add(1);
            // SAFETY: the page is mapped to a frame that this space holds.
            unsafe { place.write_volatile(number(page)) };
        }
        enter_kernel();
        for (page, frame) in &self.pages {
            // SAFETY: the frame is this space's, and in the direct map.
            let found = unsafe { frame.pointer().cast::<u64>().add(1).read_volatile() };
            assert!(
                found == number(page),
                "what {page:?} maps is not {:#x}",
                frame.addresses().start
            );
        }
    }
}

impl Drop for AddressSpace {
    /// Gives back the pages, then the tables.
    fn drop(&mut self) {
        // SAFETY: the tables belong to this space, which nobody is in.
        let mut tables = unsafe { tables(self.root) };
        for (page, frame) in self.pages.drain(..) {
            tables.unmap(page).expect("the page was mapped").1.ignore();
            frame.free();
            let range = Page::range_inclusive(page, page);
            // SAFETY: the tables of the lower half are this space's alone, and not in use.
            unsafe { tables.clean_up_addr_range(range, &mut self.frames) };
        }
        // SAFETY: nothing refers to the top table any more.
        unsafe { self.frames.deallocate_frame(self.root) };
    }
}
