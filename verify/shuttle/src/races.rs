//! Makes races from a seed.

use fastrand::Rng;
use testkit::program::{Op, Program, Race, Step, run_op};

/// The operations that a race may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All operations of the allocator.
    Everything,
    /// Allocations and frees.
    Plain,
}

/// Makes a race of 3 to 8 lanes, on an arena of one to four levels.
pub fn make(kind: Kind, seed: u64) -> Race {
    let mut random = Rng::with_seed(seed);
    let units = match random.u8(0..10) {
        0 | 1 => random.u64(1..=32),
        2..=5 => random.u64(33..=160),
        6 | 7 => random.u64(512..=700),
        8 => 1024,
        _ => random.u64(8192..=9000),
    };
    let lanes = random.usize(3..=8);
    let setup = (0..random.usize(0..=8))
        .map(|_| Step { lane: random.usize(..lanes), op: op(kind, units, &mut random) })
        .collect();
    let ops = 1 + 12 / lanes;
    let lanes = (0..lanes)
        .map(|_| (0..random.usize(1..=ops)).map(|_| op(kind, units, &mut random)).collect());
    let lanes = lanes.collect();
    let setup = Program { units, reserved: false, steps: setup };
    Race { setup, lanes, shared: random.u8(0..4) == 0 }
}

fn op(kind: Kind, units: u64, random: &mut Rng) -> Op {
    let max = units.ilog2();
    match random.u8(0..if kind == Kind::Plain { 16 } else { 30 }) {
        // A block of any size, a small one, or a large one.
        0..=2 => Op::Alloc { order: random.u32(0..=max) },
        3..=5 => Op::Alloc { order: random.u32(0..=max.min(5)) },
        6..=8 => Op::Alloc { order: max - random.u32(0..=max.min(2)) },
        9..=12 => Op::FreeSized { pick: random.usize(0..8) },
        13..=15 => Op::Free { pick: random.usize(0..8) },
        16 | 17 => {
            let start = random.u64(0..units);
            Op::Reserve { start, end: units.min(start + random.u64(1..=70)) }
        }
        18 => Op::Release { start: 0, end: units },
        19 => Op::Inspect,
        20 => Op::FreeSizedAt { index: random.u64(0..units), order: random.u32(0..=max) },
        21 => Op::Drain { order: max - random.u32(0..=max.min(2)) },
        // Exact sizes, places, resizing, parts and batches, most of them within three words.
        _ => {
            let (kind, pick, at) = (random.u8(..), random.usize(0..32), random.u64(..units));
            Op::Run(run_op(units, kind, pick, at, random.u64(0..80)))
        }
    }
}

/// Makes a race: one thread frees a unit, one allocates and frees another, and one or more allocate: all units are
/// neighbours.
pub fn neighbours(units: u64, lanes: usize) -> Race {
    let (alloc, free) = (Op::Alloc { order: 0 }, Op::FreeSized { pick: 0 });
    let mut ops = vec![vec![alloc.clone(); 1]; lanes];
    ops[0] = vec![free.clone()];
    ops[1] = vec![alloc.clone(), free];
    // This lane comes after all that, and asks for everything.
    ops[0].push(Op::Alloc { order: units.ilog2() });
    let setup = Program { units, reserved: false, steps: vec![Step { lane: 0, op: alloc }] };
    Race { setup, lanes: ops, shared: false }
}

/// Makes a race: threads take two slots each, from a pool of one slot more than they take together, and bring one back.
pub fn slots(lanes: usize) -> Race {
    let (alloc, free) = (Op::Alloc { order: 0 }, Op::FreeSized { pick: 0 });
    let setup = Program { units: 2 * lanes as u64 + 1, reserved: false, steps: vec![] };
    Race { setup, lanes: vec![vec![alloc.clone(), alloc, free]; lanes], shared: false }
}
