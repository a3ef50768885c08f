//! Wrong frees and releases of units of a block that is held throughout, while other lanes claim below it, and take that
//! back: some are accepted, as they hit such a claim. The block stays as it is, and nothing is lost.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use nbbs::Buddy;
use nbbs::sync::Word;
use testkit::depth;
use testkit::program::{Arena, Body};
use testkit::steered::{Schedule, SteeredIn};

/// Allocates at random on a lane, often where the block is, and says where. Frees all of it again; these frees are
/// right.
fn allocate<W: Word>(
    buddy: &Buddy<'_, W>,
    number: usize,
    seed: u64,
    block: &Range<u64>,
    aim: &AtomicU64,
) {
    let (mut random, lane) = (fastrand::Rng::with_seed(seed), buddy.on(number));
    let mut held = Vec::new();
    for _ in 0..random.u32(1..5) {
        let from = random.u64(block.clone());
        let to = (from + random.u64(1..10)).min(buddy.units());
        aim.store(from, Ordering::Relaxed);
        match random.u32(0..6) {
            0 => held.extend(lane.alloc(random.u32(..=buddy.max_order())).ok()),
            1 => held.extend(lane.alloc_units(random.u64(1..=buddy.units())).ok()),
            2..=4 => held.extend(lane.alloc_at(from, to - from).ok()),
            _ => held.last().into_iter().for_each(|&index| _ = lane.grow(index, 7)),
        }
    }
    held.into_iter().for_each(|index| _ = lane.free(index).unwrap());
}

/// Frees and releases units of the block, and resizes what it takes to be there. Returns how often that was accepted.
fn make_mistakes<W: Word>(
    buddy: &Buddy<'_, W>,
    seed: u64,
    block: &Range<u64>,
    aim: &AtomicU64,
) -> u64 {
    let (mut random, lane) = (fastrand::Rng::with_seed(seed), buddy.on(9));
    let mut mistake = || {
        let index = aim.load(Ordering::Relaxed) + random.u64(..10);
        let index = index.clamp(block.start + 1, block.end - 1);
        let (units, order) = (random.u64(1..10), random.u32(..=buddy.max_order()));
        match random.u32(0..8) {
            0 => lane.free(index).is_ok(),
            1 => lane.free_sized(index, order).is_ok(),
            2 => lane.free_units(index, units).is_ok(),
            3 => lane.shrink(index, units).is_ok(),
            4 => lane.split_off(index, units).is_ok(),
            5 => lane.free_part(index, index..index + 1).is_ok(),
            _ => buddy.release(index..(index + units).min(block.end)).is_ok(),
        }
    };
    (0..6).map(|_| u64::from(mistake())).sum()
}

/// Returns how many mistakes were accepted in all.
fn races<const LEAF: u32, const FAN: u32>(seeds: Range<u64>, most: u64) -> u64 {
    let mut accepted = 0;
    for seed in seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let arena = Arena::<SteeredIn<LEAF, FAN>>::new(random.u64(2..=most));
        let buddy = arena.buddy();
        let units = buddy.units();
        let aim = AtomicU64::new(0);
        // Cursors of the lanes lead below the block.
        (0..3).for_each(|lane| allocate(&buddy, lane, random.u64(..), &(0..units), &aim));
        let start = random.u64(..units - 1);
        let block = start..random.u64(start + 2..=units);
        let len = block.end - block.start;
        assert_eq!(buddy.on(8).alloc_at(start, len), Ok(start));

        let mut bodies = Vec::new();
        for lane in 0..2 {
            let (buddy, block, aim, seed) = (&buddy, &block, &aim, random.u64(..));
            let body = move || {
                allocate(buddy, lane, seed, block, aim);
                Ok(())
            };
            bodies.push(Box::new(body) as Body<'_>);
        }
        let mistakes = || {
            accepted += make_mistakes(&buddy, seed, &block, &aim);
            Ok(())
        };
        bodies.push(Box::new(mistakes));
        let schedule = Schedule { seed, stalls: random.u32(1..14), steps: 100 };
        schedule.run(bodies).unwrap_or_else(|violation| panic!("{violation}, seed {seed}"));

        let audit = buddy.audit();
        assert!(audit.is_ok(), "{audit:?}, seed {seed}, {LEAF}, {FAN}");
        assert_eq!(
            (buddy.len_of(start), buddy.count_free()),
            (Ok(len), units - len),
            "seed {seed}"
        );
        // Nobody is at work, and nobody has died: nothing is in the way of a cut.
        let part = random.u64(1..len);
        assert_eq!(
            buddy.on(8).split_off(start, part),
            Ok(start + part),
            "seed {seed}, {LEAF}, {FAN}"
        );
        assert_eq!(buddy.free(start + part), Ok(len - part));
        assert_eq!(buddy.free(start), Ok(part));
        let max = buddy.max_order();
        (0..units >> max).for_each(|_| _ = buddy.alloc(max).unwrap());
    }
    accepted
}

#[test]
fn nothing_is_lost() {
    let seeds = 0..20_000 * depth();
    let accepted = [
        races::<5, 4>(seeds.clone(), 700),
        races::<5, 1>(seeds.clone(), 300),
        races::<2, 1>(seeds.clone(), 64),
        races::<2, 2>(seeds.clone(), 150),
        races::<1, 2>(seeds.clone(), 100),
        races::<1, 1>(seeds, 60),
    ];
    assert!(accepted.iter().all(|&mistakes| mistakes > 5), "{accepted:?}");
}
