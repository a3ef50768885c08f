//! Blocks that are allocated: judged by the owner map, and by what is written into them.

use core::ops::Range;

use super::{Context, Holder, memory};
use crate::arch;
use crate::cpus;
use nbbs_adapters::FRAME_SIZE;

/// A block of frames. Whoever has it holds the frames; it has to be freed by [`free`](Self::free).
#[derive(Debug)]
#[must_use]
pub struct Held {
    frame: u64,
    order: u32,
    holder: Holder,
}

impl Held {
    /// Allocates a block of `2^order` frames from this CPU's cache and lane. `None`: there is none.
    pub fn alloc(context: Context, order: u32) -> Option<Self> {
        let cpu = cpus::this();
        let frame = cpu.operation(|| memory().alloc(order));
        let Ok(frame) = frame else {
            cpu.refusals.add(1);
            return None;
        };
        let held = Self::of(frame, order, Holder::here(context));
        held.note_taken();
        held.stamp();
        Some(held)
    }

    /// Frees the block, on whatever CPU.
    pub fn free(self) {
        let memory = memory();
        if !self.is_stamped() {
            memory.owners().note_lost(self.frame, self.holder);
        }
        self.note_given();
        if cpus::this().operation(|| memory.free(self.frame, self.order)).is_err() {
            memory.owners().note_lost(self.frame, self.holder);
        }
    }

    /// Frames that are allocated or reserved by other means.
    pub const fn of(frame: u64, order: u32, holder: Holder) -> Self {
        Self { frame, order, holder }
    }

    /// Notes that the holder has them.
    pub fn note_taken(&self) {
        memory().owners().take(self, self.holder);
    }

    /// Notes that the holder is about to give them back.
    pub fn note_given(&self) {
        memory().owners().give(self, self.holder);
    }

    /// The frames.
    pub fn frames(&self) -> Range<u64> {
        self.frame..self.frame + (1 << self.order)
    }

    /// Where the memory begins in the direct map.
    pub fn pointer(&self) -> *mut u8 {
        arch::direct(self.frame * FRAME_SIZE)
    }

    /// The physical addresses.
    pub fn addresses(&self) -> Range<u64> {
        self.frame * FRAME_SIZE..(self.frame + (1 << self.order)) * FRAME_SIZE
    }

    /// The first word of the first and of the last frame.
    fn stamps(&self) -> [*mut u64; 2] {
        let last = self.addresses().end - FRAME_SIZE;
        [self.pointer().cast(), arch::direct(last).cast()]
    }

    fn mark(&self) -> u64 {
        self.frame << 32 | u64::from(self.holder.tag())
    }

    fn stamp(&self) {
        for word in self.stamps() {
            // SAFETY: the frames are mapped memory, and this block's, as the owner map has just confirmed or noted.
            unsafe { word.write_volatile(self.mark()) };
        }
    }

    fn is_stamped(&self) -> bool {
        // SAFETY: as in `stamp`.
        self.stamps().into_iter().all(|word| unsafe { word.read_volatile() } == self.mark())
    }
}
