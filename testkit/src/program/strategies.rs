//! Draws arenas, programs and races for property tests, with shrinking.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Op, Program, Race, RunOp, Step};

/// Sizes at which the structure changes: full and cut words at every level, and one unit more or less.
pub const BOUNDARIES: [u64; 34] = [
    1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 511, 512, 513, 543, 544, 545, 1023, 1025,
    4095, 4096, 8191, 8192, 8193, 8704, 8705, 16383, 131_071, 131_072, 131_073, 131_616,
];

/// Draws the units of an arena, up to a little more than 2^17: most are small, many at a [boundary](BOUNDARIES), some
/// odd.
pub fn geometries() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 1_u64..=80,
        3 => 81_u64..=1200,
        2 => prop::sample::select(&BOUNDARIES[..]),
        1 => (1201_u64..=9000).prop_map(|units| units | 1),
    ]
}

/// Draws programs of up to `steps` steps on arenas of [these sizes](geometries).
pub fn programs(steps: usize) -> impl Strategy<Value = Program> {
    let parts = (geometries(), prop::bool::weighted(0.1), vec((0..4_usize, raw_ops()), 0..=steps));
    parts.prop_map(|(units, reserved, raw)| {
        let steps = raw.into_iter().map(|(lane, raw)| Step { lane, op: raw.of(units) });
        Program { units, reserved, steps: steps.collect() }
    })
}

/// Draws races of two or three lanes of one to `ops` operations, on arenas of one to four levels.
pub fn races(ops: usize) -> impl Strategy<Value = Race> {
    let units = prop_oneof![6 => 1_u64..=100, 2 => 512_u64..=600, 1 => 8192_u64..=9000];
    let lanes = vec(vec(raw_ops(), 1..=ops), 2..=3);
    let parts = (units, vec((0..3_usize, raw_ops()), 0..=6), lanes, any::<bool>());
    parts.prop_map(|(units, setup, lanes, shared)| {
        let steps = setup.into_iter().map(|(lane, raw)| Step { lane, op: raw.of(units) }).collect();
        let ops = |raw: Vec<Raw>| raw.into_iter().map(|raw| raw.of(units)).collect();
        let setup = Program { units, reserved: false, steps };
        Race { setup, lanes: lanes.into_iter().map(ops).collect(), shared }
    })
}

/// An operation with its numbers not yet fitted to an arena, so that the arena can shrink alone.
#[derive(Clone, Debug)]
pub(super) enum Raw {
    Alloc(u32),
    /// A small order, whatever the arena.
    AllocSmall(u32),
    /// One of the largest orders.
    AllocLarge(u32),
    Free(usize),
    FreeSized(usize),
    FreeAgain,
    FreeAt(u64),
    FreeSizedAt(u64, u32),
    OrderOf(u64),
    Reserve(u64, u64),
    Release(u64, u64),
    Drain(u32),
    Inspect,
    /// An operation on runs: its kind, and its numbers.
    Run(u8, usize, u64, u64),
}

fn raw_ops() -> impl Strategy<Value = Raw> {
    let unit = || 0_u64..1 << 20;
    let length = || prop_oneof![0_u64..40, 0_u64..700];
    let order = || 0_u32..1 << 10;
    prop_oneof![
        8 => order().prop_map(Raw::Alloc),
        5 => (0_u32..4).prop_map(Raw::AllocLarge),
        11 => (0_u32..7).prop_map(Raw::AllocSmall),
        8 => (0_usize..64).prop_map(Raw::Free),
        6 => (0_usize..64).prop_map(Raw::FreeSized),
        2 => Just(Raw::FreeAgain),
        3 => unit().prop_map(Raw::FreeAt),
        3 => (unit(), order()).prop_map(|(unit, order)| Raw::FreeSizedAt(unit, order)),
        2 => unit().prop_map(Raw::OrderOf),
        2 => (unit(), length()).prop_map(|(unit, length)| Raw::Reserve(unit, length)),
        2 => (unit(), length()).prop_map(|(unit, length)| Raw::Release(unit, length)),
        1 => (3_u32..1 << 10).prop_map(Raw::Drain),
        1 => Just(Raw::Inspect),
        20 => (any::<u8>(), 0_usize..64, unit(), length()).prop_map(|(kind, pick, at, len)| Raw::Run(kind, pick, at, len)),
    ]
}

impl Raw {
    /// Returns the operation in an arena of `units` units: most numbers fit, some miss by a little.
    pub(super) fn of(self, units: u64) -> Op {
        let max = units.ilog2();
        let order = |raw: u32| raw % (max + 2);
        let index = |raw: u64| raw % (units + 3);
        match self {
            Self::Alloc(raw) => Op::Alloc { order: order(raw) },
            Self::AllocLarge(raw) => Op::Alloc { order: max.saturating_sub(raw) },
            Self::AllocSmall(raw) => Op::Alloc { order: raw.min(max) },
            Self::Free(pick) => Op::Free { pick },
            Self::FreeSized(pick) => Op::FreeSized { pick },
            Self::FreeAgain => Op::FreeAgain,
            Self::FreeAt(raw) => Op::FreeAt { index: index(raw) },
            Self::FreeSizedAt(raw, k) => Op::FreeSizedAt { index: index(raw), order: order(k) },
            Self::OrderOf(raw) => Op::OrderOf { index: index(raw) },
            Self::Reserve(raw, len) => Op::Reserve { start: index(raw), end: index(raw) + len },
            Self::Release(raw, len) => Op::Release { start: index(raw), end: index(raw) + len },
            // Draining small orders of large arenas takes long and shows little.
            Self::Drain(raw) => Op::Drain { order: order(raw).max(max.saturating_sub(10)) },
            Self::Inspect => Op::Inspect,
            Self::Run(kind, pick, at, len) => Op::Run(run_op(units, kind, pick, at, len)),
        }
    }
}

/// Makes an operation on runs in an arena of `units` units from four numbers: its kind, the pick, the place, and the
/// number of units.
#[must_use]
pub fn run_op(units: u64, kind: u8, pick: usize, at: u64, len: u64) -> RunOp {
    let small = u32::from(kind >> 4) % (units.ilog2() + 1);
    let some = 1 + len % units;
    match kind % 16 {
        0..=2 => RunOp::Alloc { units: some },
        3 | 4 => RunOp::At { index: at % units, units: some },
        5 | 6 => {
            let (start, end) = (at % units / 2, units - pick as u64 % 32 % units);
            let order = small.min(units.ilog2());
            RunOp::Within { units: some, order, start, end, top_down: kind & 16 != 0 }
        }
        7 | 8 => RunOp::Free { pick },
        9 => RunOp::Shrink { pick, units: at },
        10 | 11 => RunOp::Grow { pick, units: len },
        12 => RunOp::SplitOff { pick, units: at },
        13 => RunOp::Split { pick, order: small },
        14 => RunOp::FreePart { pick, skip: at, units: len },
        _ if kind & 32 == 0 => RunOp::Batch { order: small.min(6), count: pick * 3 },
        _ => RunOp::FreeBatch { order: small.min(6) },
    }
}
