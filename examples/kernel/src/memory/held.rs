//! Allocated blocks, judged by the owner map, and by marks that are written into them. The first finding ends the run,
//! as nothing is certain after it.

use core::ops::Range;

use nbbs_adapters::FRAME_SIZE;

use super::{Context, Finding, Holder, memory};
use crate::{arch, cpus, report};

/// A block of frames. The owner of this value holds the frames, and has to free them by [`free`](Self::free).
#[derive(Debug)]
#[must_use]
pub struct Held {
    frame: u64,
    order: u32,
    holder: Holder,
}

impl Held {
    /// Allocates a block of `2^order` frames from this CPU's cache and lane. Returns `None` if there is none.
    pub fn alloc(context: Context, order: u32) -> Option<Self> {
        let cpu = cpus::this();
        let frame = cpu.operation(|| memory().alloc(order));
        let Ok(frame) = frame else {
            cpu.refusals.add(1);
            return None;
        };
        let held = Self::of(frame, order, Holder::here(context));
        held.note_taken();
        held.write_marks();
        Some(held)
    }

    /// Frees the block, on any CPU.
    pub fn free(self) {
        self.check_marks();
        self.note_given();
        if cpus::this().operation(|| memory().free(self.frame, self.order)).is_err() {
            report::overlap(Finding::refused(self.frame, self.holder));
        }
    }

    /// Returns frames that are allocated or reserved by other means.
    pub const fn of(frame: u64, order: u32, holder: Holder) -> Self {
        Self { frame, order, holder }
    }

    /// Notes that the holder has them.
    pub fn note_taken(&self) {
        memory()
            .owners()
            .take(self.frames(), self.holder)
            .unwrap_or_else(|found| report::overlap(found));
    }

    /// Notes that the holder is about to give them back.
    pub fn note_given(&self) {
        memory()
            .owners()
            .give(self.frames(), self.holder)
            .unwrap_or_else(|found| report::overlap(found));
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

    /// Iterates over the first frame and the last, with their first words, which say who holds them.
    fn marks(&self) -> impl Iterator<Item = (u64, *mut u64)> {
        let ends = [self.frame, self.frames().end - 1];
        ends.into_iter().map(|frame| (frame, arch::direct(frame * FRAME_SIZE).cast()))
    }

    fn mark(&self) -> u64 {
        self.frame << 32 | u64::from(self.holder.tag())
    }

    /// Writes the marks, which a holder that has overwritten them must do before it frees the block.
    pub fn write_marks(&self) {
        for (_, word) in self.marks() {
            // SAFETY: the frames are mapped memory, and this block's, as the owner map has just confirmed.
            unsafe { word.write_volatile(self.mark()) };
        }
    }

    fn check_marks(&self) {
        for (frame, word) in self.marks() {
            // SAFETY: as in `write_marks`.
            if unsafe { word.read_volatile() } != self.mark() {
                report::overlap(Finding::mark(frame, self.holder));
            }
        }
    }
}
