//! What guest and host share: the guest's memory, and beside it the bookkeeping of its frames.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anyhow::Context;
use nbbs::{Buddy, metadata_words};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use testkit::Oracle;

use super::bits::Bits;
use crate::blocks::Held;
use crate::mapping::{Contents, Mapping};

/// The unit in which the host takes and gives memory: 2 MiB, as one entry of a second page table maps it.
pub const FRAME: u64 = 2 << 20;

/// A guest as each process sees it, wherever it has mapped it.
#[derive(Debug)]
pub struct Shared {
    /// The guest's memory, and nothing else.
    memory: File,
    ram: Mapping,
    state: Mapping,
    bytes: u64,
}

/// The numbers, one word each, at the beginning of the state.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// Not 0 if the processes are to end.
    Stop,
    /// Thousandths of its memory that the guest wants to hold.
    Wanted,
    /// What the host does: see [`Order`].
    Order,
    /// Frames that the guest may not have.
    Withheld,
    /// Pages that the guest holds.
    Held,
    /// Allocations and frees of the guest.
    Operations,
    /// Allocations that were refused.
    Refused,
    /// Blocks whose contents were checked.
    Checked,
    /// Frames that the guest had installed again.
    Installed,
    /// Frames that the host got back.
    Reclaimed,
    /// Units that a host had claimed when it was killed, and its successor gave back.
    Inherited,
    /// Passes of the host over all frames.
    Passes,
}

/// The most numbers.
const NUMBERS: usize = 64;

/// An order for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nothing.
    Rest = 0,
    /// Take back what is free, now and then.
    Automatic = 1,
    /// The same without a pause.
    Busy = 2,
}

impl Shared {
    /// Creates a guest of `bytes` bytes, none of them backed. Also returns the file with its state.
    pub fn create(bytes: u64) -> anyhow::Result<(File, Self)> {
        let file = |name, len| -> io::Result<File> {
            let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
            file.set_len(len)?;
            Ok(file)
        };
        let state = file("state", 8 * Self::state_words(bytes) as u64).context("the state")?;
        let shared = Self::new(file("memory", bytes).context("the memory")?, &state, bytes)?;
        shared.not_backed().set_all(shared.frames());
        Ok((state, shared))
    }

    /// Opens the guest that another process has created.
    pub fn open(memory: File, state: &File) -> anyhow::Result<Self> {
        let bytes = memory.metadata()?.len();
        Self::new(memory, state, bytes)
    }

    fn new(memory: File, state: &File, bytes: u64) -> anyhow::Result<Self> {
        let ram = Mapping::shared(&memory, bytes as usize).context("the guest's memory")?;
        let state = Mapping::shared(state, 8 * Self::state_words(bytes)).context("its state")?;
        Ok(Self { memory, ram, state, bytes })
    }

    /// Returns the file of the guest's memory.
    pub fn memory(&self) -> &File {
        &self.memory
    }

    /// Returns the guest's allocator.
    pub fn pages(&self) -> anyhow::Result<Buddy<'_>> {
        let at = Self::metadata_at(self.bytes);
        let words = self.words(at..at + metadata_words(self.units()));
        Ok(Buddy::attach(words, self.units())?)
    }

    /// Returns the owner map, which says whether guest or host holds a page.
    pub fn owners(&self) -> Oracle<&[AtomicU32]> {
        let at = Self::owners_at(self.bytes);
        let words = self.words(at..at + self.units().div_ceil(2) as usize);
        // SAFETY: these words are only accessed as pairs of half their size; alignment and lifetime are theirs.
        let halves = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), 2 * words.len()) };
        Oracle::over(&halves[..self.units() as usize])
    }

    /// Returns the bits of frames without memory, free or not: a thread that allocates there has it installed.
    pub fn not_backed(&self) -> Bits<'_> {
        Bits(self.words(NUMBERS..NUMBERS + Self::bit_words(self.bytes)))
    }

    /// Returns the bits of frames that the host withholds. Only hosts use these; they are here so that the next host
    /// finds them.
    pub fn withheld(&self) -> Bits<'_> {
        let bits = Self::bit_words(self.bytes);
        Bits(self.words(NUMBERS + bits..NUMBERS + 2 * bits))
    }

    /// Returns one of the numbers. All accesses are relaxed: it says nothing about anything else.
    pub fn number(&self, number: Number) -> &AtomicU64 {
        &self.words(0..NUMBERS)[number as usize]
    }

    /// Returns the value of a number.
    pub fn get(&self, number: Number) -> u64 {
        self.number(number).load(Ordering::Relaxed)
    }

    /// Sets a number.
    pub fn set(&self, number: Number, to: u64) {
        self.number(number).store(to, Ordering::Relaxed);
    }

    /// Adds to a number.
    pub fn add(&self, number: Number, more: u64) {
        self.number(number).fetch_add(more, Ordering::Relaxed);
    }

    /// Replaces the contents of a block that the caller holds, in frames that are backed.
    pub fn replace(&self, held: Held, from: Contents, to: Contents) -> anyhow::Result<()> {
        let page = rustix::param::page_size();
        let units = held.units();
        let range = units.start as usize * page..units.end as usize * page;
        // SAFETY: a mapping of a file that is never truncated: all of it can be accessed.
        unsafe { self.ram.replace(range, from, to)? };
        Ok(())
    }

    /// Has a frame backed: in a virtual machine the guest's call of its hypervisor. Whatever is in it already stays.
    pub fn install(&self, frame: u64) -> io::Result<()> {
        fallocate(&self.memory, FallocateFlags::empty(), frame * FRAME, FRAME)?;
        Ok(())
    }

    /// Takes a frame's memory away, from all processes. Later accesses find zeros.
    pub fn punch(&self, frame: u64) -> io::Result<()> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.memory, hole, frame * FRAME, FRAME)?;
        Ok(())
    }

    /// Returns the bytes of memory that the operating system has for the guest.
    pub fn resident(&self) -> anyhow::Result<u64> {
        Ok(rustix::fs::fstat(&self.memory)?.st_blocks as u64 * 512)
    }

    /// Returns the number of units, which are pages of the system.
    pub fn units(&self) -> u64 {
        units(self.bytes)
    }

    /// Returns the number of frames.
    pub fn frames(&self) -> u64 {
        self.bytes / FRAME
    }

    fn words(&self, range: Range<usize>) -> &[AtomicU64] {
        // SAFETY: a mapping of a file that is never truncated: all of it can be accessed.
        unsafe { self.state.words(8 * range.start, range.len()) }
    }

    // The numbers, two sets of bits, the owner map, and the allocator's metadata, each from a cache line on.

    fn bit_words(bytes: u64) -> usize {
        ((bytes / FRAME).div_ceil(64) as usize).next_multiple_of(8)
    }

    fn owners_at(bytes: u64) -> usize {
        NUMBERS + 2 * Self::bit_words(bytes)
    }

    fn metadata_at(bytes: u64) -> usize {
        Self::owners_at(bytes) + (units(bytes).div_ceil(2) as usize).next_multiple_of(8)
    }

    fn state_words(bytes: u64) -> usize {
        Self::metadata_at(bytes) + metadata_words(units(bytes))
    }
}

fn units(bytes: u64) -> u64 {
    bytes / rustix::param::page_size() as u64
}

/// Returns the number of units of a frame.
pub fn frame_units() -> u64 {
    units(FRAME)
}

/// Returns the units of a frame.
pub fn units_of(frame: u64) -> Range<u64> {
    frame * frame_units()..(frame + 1) * frame_units()
}
