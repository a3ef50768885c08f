//! Arenas to measure on, filled and thinned out.

use std::ops::Range;
use std::thread;

use anyhow::ensure;
use nbbs::sync::{Ordering, Word};
use nbbs::{Buddy, MetadataBox};

use crate::counted::Counted;
use crate::crew::Crew;
use crate::lines::zeroed;

/// An arena of which only the metadata exists.
pub struct Arena {
    units: u64,
    metadata: MetadataBox,
}

impl Arena {
    /// Creates an arena with nothing allocated.
    pub fn new(units: u64) -> Self {
        Self { units, metadata: zeroed(nbbs::metadata_words(units)) }
    }

    /// Returns the number of units.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Returns an allocator on the arena.
    pub fn buddy(&self) -> Buddy<'_> {
        Buddy::new(self.metadata.words(), self.units)
            .expect("metadata of the size that was asked for")
    }

    /// Forgets all allocations: all-zero metadata is an empty arena.
    pub fn empty(&self) {
        // Relaxed, as below: no other thread uses the arena.
        self.metadata.words().iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Calls `visit` with a copy of the arena, in the same state, on words that count.
    pub fn with_counted_copy<R>(&self, visit: impl FnOnce(Buddy<'_, Counted>) -> R) -> R {
        let copy = zeroed::<Counted>(self.metadata.words().len());
        for (from, to) in self.metadata.words().iter().zip(copy.words()) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        visit(Buddy::attach(copy.words(), self.units).expect("metadata of such an arena"))
    }

    /// Allocates every block of `order`, on all processors.
    pub fn fill(&self, order: u32) -> anyhow::Result<()> {
        let buddy = self.buddy();
        let allocated = on_all(|lane, _| {
            let got_one = |_: &u64| buddy.on(lane).alloc(order).is_ok();
            (0..).take_while(got_one).count() as u64
        });
        let blocks = self.units >> order;
        ensure!(
            allocated == blocks,
            "{allocated} blocks of order {order} were allocated before one was refused, not {blocks}"
        );
        Ok(())
    }

    /// Frees the blocks of `order` that `block` returns for each number in `numbers`, on all processors.
    pub fn free(
        &self,
        order: u32,
        numbers: Range<u64>,
        block: impl Fn(u64) -> Option<u64> + Sync,
    ) -> anyhow::Result<()> {
        let buddy = self.buddy();
        let refused = on_all(|lane, lanes| {
            let mine = numbers.clone().skip(lane).step_by(lanes);
            mine.filter_map(&block)
                .filter(|block| buddy.on(lane).free_sized(block << order, order).is_err())
                .count() as u64
        });
        ensure!(refused == 0, "{refused} frees of blocks of order {order} were refused");
        Ok(())
    }
}

/// Runs `work` on every processor, with its lane and the number of lanes, and adds up the results.
fn on_all(work: impl Fn(usize, usize) -> u64 + Sync) -> u64 {
    let lanes = thread::available_parallelism().map_or(1, usize::from).min(64);
    Crew::run(lanes, |_, lane| work(lane, lanes)).into_iter().sum()
}

/// Returns the number at `place` in a random order of the numbers below `len`, without a table.
pub fn shuffled(place: u64, len: u64) -> u64 {
    let bits = len.next_power_of_two().trailing_zeros();
    let mut number = place;
    loop {
        number = mix(number, bits);
        if number < len {
            return number;
        }
    }
}

/// Maps the numbers of `bits` bits one to one: sums, products with odd numbers and shifted XORs do.
fn mix(number: u64, bits: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let shift = bits / 2 + 1;
    [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0x9e37_79b9_7f4a_7c15].iter().fold(
        number,
        |number, factor| {
            let sum = (number + 0x1234_5678_9abc) & mask;
            let product = sum.wrapping_mul(*factor) & mask;
            product ^ (product >> shift)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::{Arena, shuffled};

    #[test]
    fn shuffling_is_one_to_one_and_no_order() {
        for len in [1, 2, 3, 100, 512, 1000, 4096] {
            let mut numbers: Vec<u64> = (0..len).map(|place| shuffled(place, len)).collect();
            let ascents = numbers.windows(2).filter(|pair| pair[0] < pair[1]).count() as u64;
            assert!(
                len < 100 || (len * 2 / 5..len * 3 / 5).contains(&ascents),
                "{ascents} of {len}"
            );
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..len));
        }
    }

    #[test]
    fn fills_thins_out_and_empties() {
        let arena = Arena::new(1 << 12);
        arena.fill(3).unwrap();
        assert!(arena.buddy().on(0).alloc(0).is_err());
        arena.free(3, 0..128, |place| Some(shuffled(place, 512))).unwrap();
        assert_eq!(arena.buddy().stats().free_units, 128 << 3);
        arena.with_counted_copy(|copy| assert_eq!(copy.stats().free_units, 128 << 3));
        arena.empty();
        assert_eq!(arena.buddy().on(0).alloc(12), Ok(0));
    }
}
