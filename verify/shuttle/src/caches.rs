//! Makes races on caches from a seed.

use fastrand::Rng;
use testkit::program::{CacheOp, CacheProgram, CacheRace};

/// Makes a race of 3 to 8 lanes, of which two or more are CPUs with a cache, in an arena of one to three levels.
pub fn make(seed: u64) -> CacheRace {
    let mut random = Rng::with_seed(seed);
    let units = match random.u8(0..8) {
        0 => random.u64(4..=32),
        1..=5 => random.u64(33..=160),
        _ => random.u64(512..=700),
    };
    let lanes = random.usize(3..=8);
    let cpus = random.usize(2..=lanes);
    // Few blocks of each order, so that a cache soon has to go to the buddy.
    let limits = std::array::from_fn(|order| random.u64(0..=5) << order);
    let steps = (0..random.usize(0..=10))
        .map(|_| (random.usize(..cpus), op(units, lanes, &mut random)))
        .collect();
    let setup =
        CacheProgram { units, cpus, owned: false, checked: random.u8(0..3) == 0, limits, steps };
    let ops = 1 + 16 / lanes;
    let lanes = (0..lanes)
        .map(|_| (0..random.usize(1..=ops)).map(|_| op(units, lanes, &mut random)).collect());
    CacheRace { lanes: lanes.collect(), setup }
}

fn op(units: u64, lanes: usize, random: &mut Rng) -> CacheOp {
    let max = units.ilog2();
    match random.u8(0..32) {
        // A small block, of which caches keep several, one of any size, or a large one, which others may keep from it.
        0..=7 => CacheOp::Alloc { order: random.u32(0..=max.min(2)) },
        8 | 9 => CacheOp::Alloc { order: random.u32(0..=max + 1) },
        10..=12 => CacheOp::Alloc { order: max - random.u32(0..=max.min(2)) },
        13..=18 => CacheOp::FreeSized { pick: random.usize(0..8) },
        19..=22 => CacheOp::Free { pick: random.usize(0..8) },
        23 => CacheOp::FreeSizedAt { index: random.u64(..units), order: random.u32(0..=max) },
        24 | 25 => CacheOp::Drain,
        26 | 27 => CacheOp::Ask { cpu: random.usize(..lanes) },
        28..=30 => CacheOp::DrainAll,
        _ => CacheOp::Inspect,
    }
}
