//! The plan: loops, the allocators that take part in them, and the number of operations of each hart.

use crate::market::Kind;

/// A loop that every hart runs.
#[derive(Debug)]
pub struct Loop {
    /// Its name, on the command line and in the program.
    pub name: &'static str,
    /// A short description of what it does.
    pub about: &'static str,
    /// The orders of the blocks, if they have any.
    pub orders: &'static [u32],
    /// The units of the arena, if there is one and no other is asked for.
    pub units: Option<u64>,
    /// The blocks that a hart holds at most.
    pub blocks_per_hart: u64,
    /// The units in use beside these.
    pub units_beside: u64,
    /// The contenders that take part, this project's first.
    pub contenders: &'static [&'static Contender],
    /// Whether harts share nothing in this loop, on this project's allocators.
    pub shares_nothing: bool,
}

/// An allocator, as the program calls it.
#[derive(Debug)]
pub struct Contender {
    pub name: &'static str,
    pub kind: Kind,
    pub safe: bool,
    pub private_caches: bool,
    /// Whether its harts wait for each other; the waiting is simulated, too.
    pub waits: bool,
    /// Whether it only has blocks of order 0.
    pub units_only: bool,
    /// Whether it belongs to this project.
    pub ours: bool,
    /// Whether it is broken on purpose, for the judge to find: it only takes part when asked for by name.
    pub patient: bool,
}

const fn ours(name: &'static str, kind: Kind) -> Contender {
    Contender {
        name,
        kind,
        safe: true,
        private_caches: false,
        waits: false,
        units_only: false,
        ours: true,
        patient: false,
    }
}

const fn other(name: &'static str, safe: bool, waits: bool) -> Contender {
    Contender { safe, waits, ours: false, ..ours(name, Kind::BackEnd) }
}

/// With the lanes that the metadata of an arena of its size has by itself.
pub static NBBS: Contender = ours("nbbs", Kind::BackEnd);
/// With a lane for each hart, as `MetadataBox::new` makes arenas on a machine with so many.
static LANES: Contender = ours("nbbs-lanes", Kind::BackEnd);
static CACHE: Contender = Contender { private_caches: true, ..ours("nbbs-cache", Kind::BackEnd) };
/// All harts on one lane.
static ONE_LANE: Contender = Contender { patient: true, ..ours("nbbs-one-lane", Kind::BackEnd) };
static POOL: Contender = ours("nbbs-pool", Kind::Pool);
static HEAP: Contender = ours("nbbs-heap", Kind::Heap);
static TICKET: Contender = other("linux-ticket", true, true);
static MCS: Contender = other("linux-mcs", true, true);
static NB1: Contender = other("nb1", false, false);
static NB4: Contender = other("nb4", false, false);
/// With blocks up to the whole arena, as nbbs has: every climb goes to the root.
static NB4_WHOLE: Contender = other("nb4-whole", false, false);
/// No allocator: the cost of handing blocks over by itself, in loops that do so.
static NOTHING: Contender = other("nothing", true, false);
static FREE_LIST: Contender = Contender { units_only: true, ..other("free-list", false, true) };

/// A counter for each hart, and one for all.
pub static PRIVATE: Contender = other("private", true, false);
pub static SHARED: Contender = other("shared", true, false);
/// Pairs of bare compare-and-swaps: what a pair on a shared structure takes at least.
pub static BARE: Contender = other("bare", true, false);

/// All contenders that hand out blocks of any order.
static BLOCKS: &[&Contender] = &[&NBBS, &LANES, &CACHE, &TICKET, &MCS, &NB1, &NB4, &NB4_WHOLE];
/// The same, and those that only have units.
static UNITS: &[&Contender] =
    &[&NBBS, &LANES, &CACHE, &TICKET, &MCS, &NB1, &NB4, &NB4_WHOLE, &FREE_LIST, &ONE_LANE];
static HANDED: &[&Contender] = &[&NBBS, &LANES, &CACHE, &MCS, &NB4, &NB4_WHOLE, &NOTHING];
static MERGED: &[&Contender] = &[&NBBS, &LANES, &CACHE, &MCS];

/// The counters by which the machine is judged, and beside which every other figure stands.
pub static COUNTERS: Loop = Loop {
    name: "counters",
    about: "add to a counter: one for each hart, and one for all; bare compare-and-swaps on a word for each",
    orders: &[],
    units: None,
    blocks_per_hart: 0,
    units_beside: 0,
    contenders: &[&PRIVATE, &SHARED, &BARE],
    shares_nothing: false,
};

/// The most units of an arena: the program has no more metadata.
pub const MAX_UNITS: u64 = 1 << 20;

/// 1 GiB in pages.
const UNITS_1G: Option<u64> = Some(1 << 18);

/// All other loops; the first is the one to read the others beside.
pub static LOOPS: &[Loop] = &[
    Loop {
        name: "pairs",
        about: "allocate a block, free it",
        orders: &[0, 5, 9],
        units: UNITS_1G,
        blocks_per_hart: 1,
        units_beside: 0,
        contenders: UNITS,
        shares_nothing: true,
    },
    Loop {
        name: "beside-merges",
        about: "the same, beside one hart that fills and drains with blocks of orders 5 and 10",
        orders: &[0],
        units: UNITS_1G,
        blocks_per_hart: 1,
        units_beside: 16 << 10,
        contenders: MERGED,
        shares_nothing: false,
    },
    Loop {
        name: "bulk",
        about: "allocate 64 blocks, free them, the last one first",
        orders: &[0],
        units: UNITS_1G,
        blocks_per_hart: 64,
        units_beside: 0,
        contenders: BLOCKS,
        shares_nothing: true,
    },
    Loop {
        name: "churn",
        about: "60 % full: replace a random one of 32 blocks of orders 0 to 3",
        orders: &[],
        units: UNITS_1G,
        // Blocks of orders 0 to 3, where three eighths of the arena are free.
        blocks_per_hart: 1024,
        units_beside: 0,
        contenders: BLOCKS,
        shares_nothing: true,
    },
    Loop {
        name: "ring",
        about: "allocate for the next hart, free what the previous one allocated",
        orders: &[0],
        units: UNITS_1G,
        blocks_per_hart: 17,
        units_beside: 0,
        contenders: HANDED,
        shares_nothing: false,
    },
    Loop {
        name: "ring-kept",
        about: "the same where every second unit stays in use",
        orders: &[0],
        units: UNITS_1G,
        blocks_per_hart: 273,
        units_beside: 0,
        contenders: HANDED,
        shares_nothing: false,
    },
    Loop {
        name: "producers",
        about: "every second hart allocates, the next one frees",
        orders: &[0],
        units: UNITS_1G,
        blocks_per_hart: 17,
        units_beside: 0,
        contenders: HANDED,
        shares_nothing: false,
    },
    Loop {
        name: "larson",
        about: "replace random blocks, then leave them to another core",
        orders: &[0],
        units: UNITS_1G,
        blocks_per_hart: 65,
        units_beside: 0,
        contenders: HANDED,
        shares_nothing: false,
    },
    Loop {
        name: "objects",
        about: "allocate 8 objects of 48 bytes, free them",
        orders: &[],
        units: None,
        blocks_per_hart: 0,
        units_beside: 0,
        contenders: &[&POOL, &HEAP],
        shares_nothing: true,
    },
];

/// The most harts on which contenders that wait are run, without `--long`.
pub const FEW: usize = 16;

/// How long a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Quick,
    Usual,
    Long,
}

/// Returns the units that a cache keeps at most of an order, by the library's default.
pub fn cached_units(order: u32) -> u64 {
    (64 << order).min(1024)
}

/// Returns the names of all contenders.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for contender in LOOPS.iter().flat_map(|of| of.contenders) {
        if !names.contains(&contender.name) {
            names.push(contender.name);
        }
    }
    names
}

impl Contender {
    /// Returns whether it takes part with this number of harts.
    pub fn comes(&self, harts: usize, depth: Depth) -> bool {
        !self.waits || harts <= FEW || depth == Depth::Long
    }

    /// Returns the operations of each hart: before measuring, and measured. Contenders that wait do fewer, as
    /// everything that happens while one hart works is simulated.
    pub fn operations(&self, harts: usize, depth: Depth) -> (u64, u64) {
        let all: u64 = if depth == Depth::Quick { 400 } else { 600 };
        let measured = if self.waits { (all / harts as u64).max(20) } else { all };
        (measured.min(100), measured)
    }
}

#[cfg(test)]
mod tests {
    use super::LOOPS;

    #[test]
    fn what_shares_nothing_has_one_of_ours() {
        for of_it in LOOPS.iter().filter(|of_it| of_it.shares_nothing) {
            assert!(of_it.contenders[0].ours, "{}", of_it.name);
        }
    }

    #[test]
    fn caches_take_part_in_all_loops_of_blocks() {
        for of_it in LOOPS.iter().filter(|of_it| of_it.units.is_some()) {
            let names: Vec<_> = of_it.contenders.iter().map(|contender| contender.name).collect();
            assert!(names.contains(&"nbbs-cache"), "{}", of_it.name);
        }
    }
}
