//! A bit for each frame.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bits that several processes share.
///
/// Only a holder of the frame, or of a part of it, changes its bit. All accesses are relaxed: the allocator orders one
/// holder's accesses before the next one's, as a claim of a unit happens after everything that its last holder did.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a>(pub &'a [AtomicU64]);

impl Bits<'_> {
    /// Returns whether the bit is set.
    pub fn get(self, frame: u64) -> bool {
        self.word(frame).load(Ordering::Relaxed) & bit(frame) != 0
    }

    /// Sets the bit. Returns whether it was set already.
    pub fn set(self, frame: u64) -> bool {
        self.word(frame).fetch_or(bit(frame), Ordering::Relaxed) & bit(frame) != 0
    }

    /// Clears the bit. Returns whether it was set.
    pub fn clear(self, frame: u64) -> bool {
        self.word(frame).fetch_and(!bit(frame), Ordering::Relaxed) & bit(frame) != 0
    }

    /// Sets the first `frames` bits, which nobody else knows yet.
    pub fn set_all(self, frames: u64) {
        (0..frames).for_each(|frame| {
            self.set(frame);
        });
    }

    /// Returns how many bits are set.
    pub fn count(self) -> u64 {
        self.0.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }

    fn word(&self, frame: u64) -> &AtomicU64 {
        &self.0[frame as usize / 64]
    }
}

fn bit(frame: u64) -> u64 {
    1 << (frame % 64)
}
