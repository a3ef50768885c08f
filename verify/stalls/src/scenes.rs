//! Every operation, in the situations in which it does something different.

use testkit::program::Op;

use crate::case::Case;

/// Frees the lane's oldest block.
const FREE: Op = Op::FreeSized { pick: 0 };

const fn alloc(order: u32) -> Op {
    Op::Alloc { order }
}

/// Situations, and programs for them.
pub struct Scenes {
    /// What is in use.
    pub setups: Vec<Vec<(usize, Op)>>,
    /// What a lane does that stops on the way.
    pub programs: Vec<Vec<Op>>,
    /// What a lane does that goes on.
    pub workload: Vec<Op>,
}

impl Scenes {
    /// Those for a system of blocks of `2^order` units, and holes.
    pub fn of_nbbs(units: u64) -> Self {
        let scenes = Self::of_buddies(units);
        let end = units.min(40);
        let hole = |start, end| Op::Reserve { start, end };
        let fill = |start, end| Op::Release { start, end };
        let mut setups = scenes.setups;
        setups.push(vec![(0, hole(5, end)), (1, alloc(0)), (1, alloc(0))]);
        let mut programs = scenes.programs;
        programs.push(vec![fill(5, end), hole(3, end), fill(3, end)]);
        programs.push(vec![Op::Inspect, Op::OrderOf { index: 1 }]);
        Self { setups, programs, ..scenes }
    }

    /// Those for a system of blocks of `2^order` units.
    pub fn of_buddies(units: u64) -> Self {
        let max = units.ilog2();
        let middle = max.saturating_sub(1).min(5);
        let leaf = max.min(4);
        let setups = vec![
            vec![],
            vec![(0, alloc(0))],
            // One block each.
            vec![(0, alloc(0)), (1, alloc(3.min(max))), (2, alloc(leaf))],
            // The last in a word whose neighbours are in use: its free merges.
            vec![(0, alloc(leaf)), (0, alloc(leaf)), (1, alloc(leaf)), (2, alloc(leaf))],
            // The last in each of two words, the lane's own word being a third: both frees merge, in one word.
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
            // The lane remembers a word that is a part of a large block by now: its claim is undone.
            vec![(0, alloc(0)), (0, FREE), (1, alloc(max))],
            // All but one unit: large ones are sought in vain.
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

    /// Those for a pool.
    pub fn of_slots() -> Self {
        let programs = vec![vec![alloc(0), FREE], vec![FREE], vec![alloc(0), alloc(0), FREE]];
        let setups = vec![vec![], vec![(0, alloc(0)), (1, alloc(0))]];
        Self { setups, programs, workload: vec![alloc(0), alloc(0), FREE, alloc(0)] }
    }

    /// Two lanes that stop, with a third that does not: the cases, and how many operations of the second
    /// lane are its program.
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
