//! Where `NBAlloc` begins its search: "starting from scattered points will more likely lead concurrent allocations to
//! target different free nodes".

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

/// The number of cursors: a lane has the one of its number modulo this.
const CURSORS: usize = 64;

/// Lanes begin at multiples of this many units, so that their nodes share no cache line.
const APART: u64 = 64;

/// A cursor on a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Cursor(AtomicU64);

/// For each lane, the unit at which it allocated last. These are hints beside the algorithm, and not among the words
/// that a checker steers.
#[derive(Debug)]
pub struct Cursors {
    cursors: Box<[Cursor]>,
}

impl Cursors {
    /// Creates cursors that are scattered evenly over the arena, with lane 0 at its beginning.
    pub fn new(units: u64) -> Self {
        /// 2^64 divided by the golden ratio: multiples of it lie far apart, modulo 2^64.
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let scattered = |lane: usize| {
            let share = u128::from((lane as u64).wrapping_mul(GOLDEN));
            let unit = ((share * u128::from(units)) >> 64) as u64;
            Cursor(AtomicU64::new(unit - unit % APART))
        };
        Self { cursors: (0..CURSORS).map(scattered).collect() }
    }

    /// Returns where the lane begins its search.
    pub fn at(&self, lane: usize) -> u64 {
        self.cursors[lane % CURSORS].0.load(Ordering::Relaxed)
    }

    /// Records that the lane allocated there.
    pub fn set(&self, lane: usize, unit: u64) {
        self.cursors[lane % CURSORS].0.store(unit, Ordering::Relaxed);
    }

    /// Returns the bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.cursors)
    }
}
