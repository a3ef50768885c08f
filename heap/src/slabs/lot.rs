//! The choice of the free slot that is handed out: at random with the feature `shuffle`, the first without.

/// A random generator. If it is all zero, it has yet to be seeded.
#[derive(Debug)]
pub struct Lot {
    #[cfg(feature = "shuffle")]
    seed: u64,
}

impl Lot {
    /// Whether slots are handed out in any order, so that the newest may be anywhere among those that are kept.
    pub const DRAWS: bool = cfg!(feature = "shuffle");
}

#[cfg(not(feature = "shuffle"))]
impl Lot {
    pub const fn new() -> Self {
        Self {}
    }

    /// Returns whether a spare slot is handed out although there may be kept ones: never.
    #[inline]
    pub fn draws_spare(&mut self, _kept: &mut [*mut u8], _count: usize, _spare: u64) -> bool {
        false
    }

    /// Clears the lowest of the bits that are set, of which there is at least one, and returns its number.
    #[inline]
    pub fn take_bit(&mut self, bits: &mut u64) -> u32 {
        let bit = bits.trailing_zeros();
        *bits &= *bits - 1;
        bit
    }
}

#[cfg(feature = "shuffle")]
impl Lot {
    pub const fn new() -> Self {
        Self { seed: 0 }
    }

    /// Draws one of the first `count` slots of `kept` and those that have a bit in `spare`. Returns whether it is one of
    /// these; if not, it has become the last of the others.
    pub fn draws_spare(&mut self, kept: &mut [*mut u8], count: usize, spare: u64) -> bool {
        if count == 0 || count > kept.len() {
            return true;
        }
        let place = self.place(count + spare.count_ones() as usize);
        if place < count {
            kept.swap(place, count - 1);
        }
        place >= count
    }

    /// Clears one of the bits that are set, of which there is at least one, and returns its number.
    pub fn take_bit(&mut self, bits: &mut u64) -> u32 {
        let mut left = *bits;
        for _ in 0..self.place(bits.count_ones() as usize) {
            left &= left - 1;
        }
        let bit = left.trailing_zeros();
        *bits &= !(1 << bit);
        bit
    }

    /// Returns one of `count` places, of which there is at least one.
    fn place(&mut self, count: usize) -> usize {
        if self.seed == 0 {
            self.seed = seed(core::ptr::from_ref(self).addr());
        }
        let mut lots = fastrand::Rng::with_seed(self.seed);
        let place = lots.usize(..count);
        self.seed = lots.get_seed();
        place
    }
}

/// Returns a seed that is as unpredictable as possible: with `std` from the operating system; without, only from the
/// address of the cache, and the number of seeds drawn before.
#[cfg(feature = "shuffle")]
fn seed(place: usize) -> u64 {
    use core::sync::atomic::Ordering;

    use crate::words::AtomicUsize;

    static DRAWN: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: only the number matters.
    let number = DRAWN.fetch_add(1, Ordering::Relaxed);
    // Not hashed without `std`: anybody who knows the address of the cache knows the order.
    #[cfg(not(feature = "std"))]
    let seed = fastrand::Rng::with_seed((place ^ number << 8) as u64).u64(..);
    #[cfg(feature = "std")]
    let seed = {
        use std::hash::BuildHasher;
        // Takes no memory: a thread's keys are drawn once, by a system call. If that is refused, as by a filter, the
        // standard library reads /dev/urandom, which the first caller opens under a lock: a handler that interrupts just
        // that, or a child forked meanwhile, would wait for ever. Where the heap is the global allocator, that is over
        // before there are handlers or threads. Panics if the system has no random numbers.
        crate::unwind::aborting(std::hash::RandomState::new).hash_one((place, number))
    };
    seed.max(1)
}
