//! Races made from a seed.

use std::iter;

use fastrand::Rng;

use crate::class::UNIT;

/// A heap, and what lanes do with it.
#[derive(Clone, Debug)]
pub struct Race {
    /// log2 of the units that the heap has at least.
    pub order: u32,
    /// The units of regions that lanes may add.
    pub more: Vec<usize>,
    /// The number of caches. Lanes beyond them share those of others, or have none.
    pub caches: usize,
    /// Whether only the lane of that number uses a cache, as a thread does its own.
    pub nested: bool,
    /// What lanes do before the race.
    pub setup: Vec<(usize, Op)>,
    /// What each lane does.
    pub lanes: Vec<Vec<Op>>,
}

/// What a lane does.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Allocates so many blocks, which go into the array of all lanes.
    Alloc { size: usize, align: usize, count: usize, zeroed: bool },
    /// Allocates a block that is freed by its address, and may be longer.
    AllocAtLeast { size: usize },
    /// Frees so many blocks of the array, from one of them on: of all lanes', or only of those it allocated itself.
    Free { pick: usize, count: usize, own: bool, by_address: bool },
    /// Makes a block of the array larger or smaller.
    Resize { pick: usize, size: usize, by_address: bool },
    /// Adds a region, if one is left.
    Add,
    /// Empties its cache, and returns the memory of slabs that are whole.
    Trim,
    /// Empties its cache, as the end of a thread does.
    Drain,
    /// Gives pages away.
    Discard,
    /// Looks what is where.
    Look { pick: usize },
}

/// What a race is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Theme {
    /// Slabs that empty, and are listed and taken: lanes of which most have no cache.
    Slabs,
    /// Everything, with one to three sizes.
    Caches,
    /// Pages that are given away beside memory that is asked for as zero, in stretches of 64 units.
    Pages,
    /// Blocks that become larger and smaller, most of them runs, beside those behind them.
    Sizes,
    /// Runs that caches keep, for which the heap must be large.
    Kept,
}

impl Race {
    /// Makes a race of three to five lanes, in a heap of 8 to 128 units, or a few more.
    pub fn of(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let theme = match random.u8(0..6) {
            0 | 1 => Theme::Slabs,
            2 | 3 => Theme::Caches,
            4 => Theme::Pages,
            _ => Theme::Sizes,
        };
        Self::about(theme, random)
    }

    /// Makes a race about runs that caches keep.
    pub fn of_kept_runs(seed: u64) -> Self {
        Self::about(Theme::Kept, Rng::with_seed(seed))
    }

    fn about(theme: Theme, mut random: Rng) -> Self {
        let order = match theme {
            Theme::Slabs | Theme::Caches => random.u32(3..=6),
            Theme::Pages | Theme::Sizes => random.u32(6..=7),
            Theme::Kept => 12,
        };
        let regions = if theme == Theme::Slabs { 0 } else { random.usize(0..=2) };
        let more = (0..regions).map(|_| random.usize(1..=32)).collect();
        let lanes = random.usize(3..=5);
        let most_sizes = match theme {
            Theme::Slabs => 1,
            Theme::Caches | Theme::Pages | Theme::Kept => 3,
            Theme::Sizes => 6,
        };
        let sizes =
            (0..random.usize(1..=most_sizes)).map(|_| size(order, theme, &mut random)).collect();
        let mut draws = Draws { sizes, theme, random };
        let setup = draws.setup(lanes);
        let (caches, nested) = match theme {
            Theme::Slabs => (1, true),
            _ => (draws.random.usize(1..=lanes), draws.random.bool()),
        };
        let ops = (0..lanes).map(|_| {
            let most = match theme {
                Theme::Slabs => 3,
                Theme::Kept => 8,
                _ => 1 + 14 / lanes,
            };
            (0..draws.random.usize(1..=most)).map(|_| draws.op(10)).collect()
        });
        Self { order, more, caches, nested, lanes: ops.collect(), setup }
    }
}

/// Draws a size: of a run of any part of the heap, or mostly of slots of which a slab has 8 or 16.
fn size(order: u32, theme: Theme, random: &mut Rng) -> usize {
    match random.u8(0..16) {
        _ if theme == Theme::Pages => random.usize(1..=UNIT << order),
        0..=14 if theme == Theme::Kept => random.usize((32 << 10) + 1..=36 << 10),
        0..=11 if theme == Theme::Sizes => random.usize(1..=UNIT << (order - 1)),
        0..=7 => 128,
        8..=10 => 64,
        _ if theme == Theme::Slabs => 128,
        11 => 16,
        12 | 13 => 512 << random.u8(0..3),
        14 => random.usize(2049..=5000),
        _ => random.usize(1..=UNIT << (order - 1)),
    }
}

/// What the operations of a race are drawn from.
struct Draws {
    sizes: Vec<usize>,
    theme: Theme,
    random: Rng,
}

impl Draws {
    /// Draws what happens before the race, so that few operations lead far: slabs of which no slot, or one, is free, or
    /// full caches.
    fn setup(&mut self, lanes: usize) -> Vec<(usize, Op)> {
        if self.theme != Theme::Slabs {
            let count = self.random.usize(0..=8);
            return (0..count).map(|_| (self.random.usize(..lanes), self.op(40))).collect();
        }
        let count = 8 * self.random.usize(1..=3);
        let alloc = Op::Alloc { size: self.sizes[0], align: 1, count, zeroed: false };
        let random = &mut self.random;
        let free = |pick| Op::Free { pick, count: 1, own: false, by_address: false };
        let frees = (0..random.usize(0..=3)).map(|_| free(random.usize(..64)));
        // By a lane without a cache.
        iter::once(alloc).chain(frees).map(|op| (1, op)).collect()
    }

    /// Draws an operation, seldom on more than eight blocks.
    fn op(&mut self, most: usize) -> Op {
        let random = &mut self.random;
        let size = self.sizes[random.usize(..self.sizes.len())];
        // Few, all of a slab, or any number.
        let count = match random.u8(0..8) {
            _ if matches!(self.theme, Theme::Pages | Theme::Sizes | Theme::Kept) => 1,
            0..=4 => random.usize(1..=2),
            5 | 6 => 8,
            _ => random.usize(1..=most),
        };
        let pick = random.usize(..64);
        let mut one_in = |n: u8| random.u8(..n) == 0;
        let zeroed = one_in(if matches!(self.theme, Theme::Pages | Theme::Sizes) { 2 } else { 8 });
        let (own, by_address) = (one_in(4), one_in(4));
        let is_aligned = self.theme != Theme::Slabs && one_in(4);
        let align = if is_aligned { 1 << random.u8(0..=13) } else { 1 };
        match random.u8(0..64) {
            50.. if self.theme == Theme::Slabs => Op::Trim,
            44..=47 if self.theme != Theme::Slabs => Op::Add,
            44.. if self.theme == Theme::Pages => Op::Discard,
            0..=10 if self.theme == Theme::Kept => Op::AllocAtLeast { size },
            48..=52 if self.theme == Theme::Kept => Op::Resize { pick, size, by_address },
            30..=56 if self.theme == Theme::Sizes => Op::Resize { pick, size, by_address },
            57..=59 if matches!(self.theme, Theme::Sizes | Theme::Kept) => Op::Discard,
            0..=19 => Op::Alloc { size, align, count, zeroed },
            20..=47 => Op::Free { pick, count, own, by_address },
            48..=56 => Op::Trim,
            57..=59 => Op::Drain,
            60..=62 => Op::Resize { pick, size, by_address },
            _ => Op::Look { pick },
        }
    }
}
