//! Memory before there is an allocator: usable stretches, from which the first structures are cut.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64};

use nbbs_adapters::FRAME_SIZE;

use crate::arch;
use crate::collections::List;

/// The usable stretches, in whole frames.
pub struct Early {
    free: List<Range<u64>>,
}

/// A type whose values may be memory that is all zero, and that others write to meanwhile.
///
/// # Safety
/// Zero is a value of it, and it is only shared by atomic accesses.
pub unsafe trait Zeroed: 'static {}

// SAFETY: an atomic number.
unsafe impl Zeroed for AtomicU32 {}
// SAFETY: an atomic number.
unsafe impl Zeroed for AtomicU64 {}

impl Early {
    /// The whole frames of usable stretches, which may overlap: no frame may be added twice.
    pub fn new(usable: impl Iterator<Item = Range<u64>>) -> Self {
        let whole = usable.map(|stretch| {
            stretch.start.next_multiple_of(FRAME_SIZE)..stretch.end / FRAME_SIZE * FRAME_SIZE
        });
        let mut free: List<_> = whole.filter(|stretch| !stretch.is_empty()).collect();
        free.sort_unstable_by_key(|stretch| stretch.start);
        free.dedup_by(|next, last| {
            let meets = next.start <= last.end;
            if meets {
                last.end = last.end.max(next.end);
            }
            meets
        });
        Self { free }
    }

    /// Takes a stretch out that others use, and all frames that it touches.
    pub fn without(&mut self, taken: Range<u64>) {
        let taken = taken.start / FRAME_SIZE * FRAME_SIZE..taken.end.next_multiple_of(FRAME_SIZE);
        let mut left = List::new();
        for stretch in &self.free {
            let before = stretch.start..stretch.end.min(taken.start);
            let behind = stretch.start.max(taken.end)..stretch.end;
            left.extend([before, behind].into_iter().filter(|part| !part.is_empty()));
        }
        self.free = left;
    }

    /// Returns the address after the last frame.
    pub fn end(&self) -> u64 {
        self.free.iter().map(|stretch| stretch.end).max().unwrap_or(0)
    }

    /// Cuts a part of the largest stretch, one of `share`, off its end, from a multiple of `align` on.
    pub fn keep_back(&mut self, share: u64, align: u64) -> Range<u64> {
        let size = |stretch: &&Range<u64>| stretch.end - stretch.start;
        let largest = self.free.iter().max_by_key(size).expect("there is memory");
        let start = largest.end - size(&largest) / share;
        let kept = start.next_multiple_of(align).min(largest.end)..largest.end;
        self.without(kept.clone());
        kept
    }

    /// Cuts zeroed memory for `len` values from the first stretch into which it fits.
    pub fn cut<T: Zeroed>(&mut self, len: usize) -> &'static [T] {
        let size = ((len * size_of::<T>()) as u64).next_multiple_of(FRAME_SIZE);
        let fits = |stretch: &&Range<u64>| {
            stretch.end.min(arch::MAPPED_AT_BOOT).saturating_sub(stretch.start) >= size
        };
        let start = self.free.iter().find(fits).expect("the bookkeeping fits").start;
        self.without(start..start + size);
        let memory = arch::direct(start);
        // SAFETY: the frames are usable memory, mapped since boot, and nobody's: they have just been taken out of what
        // is free, for ever. Zero is a value of `T`, which is shared.
        unsafe {
            memory.write_bytes(0, size as usize);
            core::slice::from_raw_parts(memory.cast(), len)
        }
    }

    /// Returns what is left.
    pub fn free(self) -> List<Range<u64>> {
        self.free
    }
}
