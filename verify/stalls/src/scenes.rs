//! Scenes: every operation, in the situations in which it does something different.

use testkit::program::{CacheOp, Op, RunOp};

use crate::case::Case;
use crate::subjects::Kind;

/// Frees the lane's oldest block or run, by its size.
const FREE: Op = Op::FreeSized { pick: 0 };
/// Frees the lane's oldest block or run, by its index alone.
const FREE_UNSIZED: Op = Op::Free { pick: 0 };

const fn alloc(order: u32) -> Op {
    Op::Alloc { order }
}

const fn units(units: u64) -> Op {
    Op::Run(RunOp::Alloc { units })
}

const fn at(index: u64, units: u64) -> Op {
    Op::Run(RunOp::At { index, units })
}

const fn batch(order: u32, count: usize) -> Op {
    Op::Run(RunOp::Batch { order, count })
}

const fn free_batch(order: u32) -> Op {
    Op::Run(RunOp::FreeBatch { order })
}

/// Empties the caches of all.
const DRAIN_ALL: Op = Op::Cache(CacheOp::DrainAll);

const fn ask(cpu: usize) -> Op {
    Op::Cache(CacheOp::Ask { cpu })
}

/// Scenes: situations, and programs for them.
pub struct Scenes {
    /// What is in use.
    setups: Vec<Vec<(usize, Op)>>,
    /// The programs of a lane that stops on the way.
    programs: Vec<Vec<Op>>,
    /// The operations of a lane that goes on.
    workload: Vec<Op>,
}

impl Scenes {
    /// Returns the scenes for what a system can do, by name.
    pub fn of(kind: Kind, units: u64) -> Vec<(&'static str, Self)> {
        match kind {
            Kind::Nbbs if units < 64 => {
                vec![("blocks", Self::of_nbbs(units)), ("batches", Self::of_batches(units))]
            }
            Kind::Nbbs => vec![
                ("blocks", Self::of_nbbs(units)),
                ("runs", Self::of_runs(units)),
                ("cuts", Self::of_cuts(units)),
                ("batches", Self::of_batches(units)),
            ],
            Kind::Zones => vec![("zones", Self::of_zones())],
            Kind::Caches => vec![("caches", Self::of_caches(units))],
            Kind::Buddy => vec![("blocks", Self::of_buddies(units))],
            Kind::Pool => vec![("slots", Self::of_slots())],
        }
    }

    /// Returns scenes with blocks, unsized frees and reservations.
    fn of_nbbs(units: u64) -> Self {
        let scenes = Self::of_buddies(units);
        let end = units.min(40);
        let reserve = |start, end| Op::Reserve { start, end };
        let release = |start, end| Op::Release { start, end };
        let mut setups = scenes.setups;
        setups.push(vec![(0, reserve(5, end)), (1, alloc(0)), (1, alloc(0))]);
        let mut programs = scenes.programs;
        programs.push(vec![release(5, end), reserve(3, end), release(3, end)]);
        programs.push(vec![Op::Inspect, Op::OrderOf { index: 1 }]);
        programs.push(vec![FREE_UNSIZED, FREE_UNSIZED]);
        Self { setups, programs, ..scenes }
    }

    /// Returns scenes for a system of blocks of `2^order` units.
    fn of_buddies(units: u64) -> Self {
        let max = units.ilog2();
        let middle = max.saturating_sub(1).min(5);
        let leaf = max.min(4);
        let setups = vec![
            vec![],
            vec![(0, alloc(0))],
            // One block each.
            vec![(0, alloc(0)), (1, alloc(3.min(max))), (2, alloc(leaf))],
            // The last block in a word whose neighbours are in use: its free merges.
            vec![(0, alloc(leaf)), (0, alloc(leaf)), (1, alloc(leaf)), (2, alloc(leaf))],
            // The last block in each of two words, while the lane's own word is a third: both frees merge, in one word.
            vec![
                (0, alloc(leaf)),
                (2, alloc(leaf)),
                (1, alloc(leaf)),
                (2, alloc(leaf)),
                (2, FREE),
                (2, alloc(leaf)),
                (2, alloc(leaf)),
                (2, FREE),
                (2, FREE),
            ],
            // A block that fills words of its own, and little else.
            vec![(0, alloc(middle)), (1, alloc(0))],
            // The lane remembers a word that is now part of a large block: its claim is undone.
            vec![(0, alloc(0)), (0, FREE), (1, alloc(max))],
            // All units except one are in use: searches for large blocks are in vain.
            vec![(1, alloc(max)), (0, alloc(0)), (1, FREE), (2, alloc(max - 1))],
        ];
        let programs = vec![
            vec![alloc(0), FREE],
            vec![alloc(leaf)],
            vec![alloc(max), FREE],
            vec![FREE, FREE],
            vec![FREE, alloc(max)],
            vec![alloc(middle), FREE],
        ];
        let workload = vec![alloc(0), alloc(middle), FREE, alloc(max), FREE, alloc(0)];
        Self { setups, programs, workload }
    }

    /// Returns scenes with runs, in one word and across words, wherever there is room, at a place, and in a range.
    fn of_runs(arena: u64) -> Self {
        let top = RunOp::Within { units: 20, order: 1, start: 8, end: 90, top_down: true };
        let setups = vec![
            vec![],
            // One run each: one in a word, and one across words.
            vec![(0, units(7)), (1, at(20, 30))],
            vec![(0, at(20, 42)), (1, units(9))],
            // Words that a lane remembers are now part of a block.
            vec![(0, alloc(0)), (1, units(3)), (0, FREE), (1, FREE), (2, at(0, 64))],
            // Single units are in the way.
            vec![(2, at(31, 1)), (2, at(64, 1)), (0, units(5)), (1, units(40))],
        ];
        let programs = vec![
            vec![units(5), FREE_UNSIZED],
            vec![units(40), FREE],
            vec![at(30, 36)],
            vec![at(33, 4), FREE_UNSIZED],
            vec![Op::Run(top)],
            vec![FREE_UNSIZED],
            vec![FREE, units(64)],
            vec![alloc(0), alloc(arena.ilog2())],
        ];
        let workload = vec![alloc(0), units(5), FREE_UNSIZED, units(34), at(0, 33), alloc(5), FREE];
        Self { setups, programs, workload }
    }

    /// Returns scenes with cuts and growth of blocks and runs, also in words below their own.
    fn of_cuts(arena: u64) -> Self {
        let max = arena.ilog2();
        let shrink = |units| Op::Run(RunOp::Shrink { pick: 0, units });
        let grow = |units| Op::Run(RunOp::Grow { pick: 0, units });
        let split_off = |units| Op::Run(RunOp::SplitOff { pick: 0, units });
        let free_part = |skip, units| Op::Run(RunOp::FreePart { pick: 0, skip, units });
        let setups = vec![
            // A run in a word each; one across words beside one in a word.
            vec![(0, units(7)), (1, units(9))],
            vec![(0, at(18, 30)), (1, at(50, 12))],
            // A block of many words, in which lies what another lane remembers.
            vec![(1, alloc(0)), (1, FREE), (0, alloc(max)), (1, at(arena - 6, 3))],
            vec![(1, units(3)), (1, FREE), (0, at(0, 64)), (1, at(66, 7))],
        ];
        let programs = vec![
            vec![shrink(3)],
            vec![shrink(20)],
            vec![grow(3), FREE_UNSIZED],
            vec![grow(35)],
            vec![split_off(16), FREE],
            vec![Op::Run(RunOp::Split { pick: 0, order: 2 }), FREE],
            vec![free_part(2, 3)],
            vec![free_part(33, 8), FREE_UNSIZED],
            vec![FREE],
            vec![alloc(0), units(6)],
        ];
        let workload = vec![alloc(0), units(5), alloc(5), FREE, units(34), grow(2)];
        Self { setups, programs, workload }
    }

    /// Returns scenes with many blocks at once.
    fn of_batches(arena: u64) -> Self {
        let most = arena as usize;
        let large = arena.ilog2().min(5);
        let setups = vec![
            vec![],
            vec![(0, batch(0, 5)), (1, batch(0, 5))],
            vec![(0, batch(0, most * 2 / 5)), (1, batch(large - 1, 1))],
            // Words that a lane remembers are now part of a block.
            vec![(0, batch(0, 3)), (0, free_batch(0)), (1, alloc(arena.ilog2()))],
        ];
        let programs = vec![
            vec![batch(0, 7)],
            vec![batch(0, most.min(40)), free_batch(0)],
            vec![batch(large, 2), free_batch(large)],
            vec![free_batch(0)],
            vec![free_batch(large - 1), alloc(large)],
            vec![FREE_UNSIZED, batch(1, 3)],
        ];
        let workload = vec![alloc(0), batch(2, 3), free_batch(2), alloc(large), FREE];
        Self { setups, programs, workload }
    }

    /// Returns scenes with everything that zones can do, in two zones; the lanes prefer different ones.
    fn of_zones() -> Self {
        let setups = vec![
            vec![],
            vec![(0, alloc(0)), (1, alloc(0))],
            // The first zone has no room for more.
            vec![(0, alloc(6)), (1, alloc(3))],
            vec![(0, units(40)), (1, batch(0, 3))],
            // Words that a lane remembers are now part of a block.
            vec![(0, alloc(0)), (0, FREE), (2, alloc(6)), (1, units(6))],
        ];
        let programs = vec![
            vec![alloc(0), FREE],
            vec![alloc(5), FREE_UNSIZED],
            vec![units(20)],
            vec![batch(0, 70), free_batch(0)],
            vec![FREE],
            vec![Op::Run(RunOp::Shrink { pick: 0, units: 2 })],
            vec![Op::Run(RunOp::Grow { pick: 0, units: 5 })],
            vec![at(50, 14), FREE],
        ];
        let workload = vec![alloc(0), units(5), alloc(6), FREE, batch(3, 2), alloc(5)];
        Self { setups, programs, workload }
    }

    /// Returns scenes with caches, which are empty, full, asked to give back, or all that others want.
    fn of_caches(units: u64) -> Self {
        let max = units.ilog2();
        let keeping = vec![
            (0, alloc(0)),
            (0, alloc(0)),
            (0, alloc(2)),
            (0, FREE),
            (1, alloc(1)),
            (1, alloc(0)),
            (1, FREE),
            (2, alloc(0)),
        ];
        let asks = (0..2).map(|cpu| (2, ask(cpu)));
        let asked = keeping.iter().cloned().chain(asks).collect();
        let full = [vec![(0, alloc(0)); 6], vec![(0, FREE); 4], vec![(1, alloc(3)), (1, FREE)]];
        let wanted = vec![
            (2, alloc(max - 1)),
            (1, alloc(max - 2)),
            (0, alloc(3)),
            (0, alloc(2)),
            (0, FREE),
            (1, alloc(1)),
        ];
        let setups = vec![vec![], keeping, asked, full.concat(), wanted];
        let programs = vec![
            vec![alloc(0), FREE],
            vec![FREE, FREE],
            vec![alloc(3), FREE_UNSIZED],
            vec![alloc(max)],
            vec![DRAIN_ALL],
            vec![Op::Cache(CacheOp::Drain), alloc(1)],
            vec![ask(0), ask(1), alloc(0)],
        ];
        let workload = vec![alloc(0), FREE, DRAIN_ALL, alloc(2), alloc(max - 1), FREE, alloc(0)];
        Self { setups, programs, workload }
    }

    /// Returns scenes for a pool.
    fn of_slots() -> Self {
        let programs = vec![vec![alloc(0), FREE], vec![FREE], vec![alloc(0), alloc(0), FREE]];
        let setups = vec![vec![], vec![(0, alloc(0)), (1, alloc(0))]];
        Self { setups, programs, workload: vec![alloc(0), alloc(0), FREE, alloc(0)] }
    }

    /// Returns the cases of two lanes that stop and a third that does not, and how many operations of the second lane
    /// are its program.
    pub fn cases(&self, units: u64) -> impl Iterator<Item = (Case, usize)> + '_ {
        self.setups.iter().flat_map(move |setup| {
            let pairs = self
                .programs
                .iter()
                .flat_map(|one| self.programs.iter().map(move |two| (one, two)));
            pairs.map(move |(one, two)| {
                let then = two.iter().chain(&self.workload).cloned().collect();
                let lanes = vec![one.clone(), then, self.workload.clone()];
                (Case { units, setup: setup.clone(), lanes }, two.len())
            })
        })
    }
}
