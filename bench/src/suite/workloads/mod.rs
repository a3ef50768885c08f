//! The workloads, by where they come from.

mod churn;
mod heap_random;
mod llfree;
mod paper;
mod replay;
mod until_full;

use super::on_heap::HeapRound;
use super::own::{self, Own};
use super::round::{OnPages, Part};
use super::worker::{LONG, Worker};
use crate::market::Kind;

/// What is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orders {
    /// Blocks of one order, which the command line gives.
    Asked,
    /// Single units.
    Units,
    /// Random orders.
    Mixed,
}

/// What each thread does.
pub struct Workload {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    pub orders: Orders,
    /// How many orders it goes above the one that is asked for.
    pub orders_above: u32,
    /// Blocks that a thread must have room for.
    pub blocks_per_thread: u64,
    /// What it can be run on.
    pub kinds: &'static [Kind],
    /// The fewest threads that it takes.
    pub least_threads: usize,
    pub memory: Memory,
    /// What is replayed.
    pub trace: Option<Replayed>,
    /// What rows of it have that no others have.
    pub own: Option<&'static Own>,
    pub run: Run,
}

/// How much memory it has, unless it is told: usually, and with --quick.
#[derive(Clone, Copy)]
pub struct Memory {
    pub arena_units: (u64, u64),
    pub heap_bytes: (u64, u64),
}

/// 1 GiB of pages, or less; 64 MiB of heap, or less.
const USUAL: Memory = Memory { arena_units: (1 << 18, 1 << 14), heap_bytes: (64 << 20, 16 << 20) };

/// A trace that is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// Page allocations.
    Pages,
    /// What a program asked of malloc.
    Heap,
}

/// What each thread does, by what it asks for.
#[derive(Clone, Copy)]
pub enum Run {
    /// Blocks by order.
    Blocks(fn(&mut Worker<'_>)),
    /// Memory by size and alignment.
    Heap(fn(&HeapRound<'_>) -> Vec<Part>),
    /// Objects of one size: module `pool`.
    Pool,
    /// A thread that is put to sleep: module `suspended`.
    #[cfg(unix)]
    Suspended,
    /// A trace of page allocations.
    Pages(OnPages),
}

const fn workload(name: &'static str, about: &'static str, run: fn(&mut Worker<'_>)) -> Workload {
    Workload {
        name,
        about,
        orders: Orders::Asked,
        orders_above: 0,
        blocks_per_thread: 4,
        kinds: &[Kind::BackEnd],
        least_threads: 1,
        memory: USUAL,
        trace: None,
        own: None,
        run: Run::Blocks(run),
    }
}

/// One of which the paper also says what it is on heaps.
const fn paper(name: &'static str, about: &'static str, run: fn(&mut Worker<'_>)) -> Workload {
    Workload { kinds: &[Kind::BackEnd, Kind::Heap], ..workload(name, about, run) }
}

/// One whose sizes are no matter of the command line.
const fn mixed(
    name: &'static str,
    about: &'static str,
    kinds: &'static [Kind],
    run: Run,
) -> Workload {
    let orders = Orders::Mixed;
    Workload { orders, blocks_per_thread: 0, kinds, run, ..workload(name, about, |_| {}) }
}

/// All of them.
pub static WORKLOADS: &[Workload] = &[
    paper(
        "linux-scalability",
        "allocate a block, free it: 20,000,000 / threads",
        paper::linux_scalability,
    ),
    paper("threadtest", "allocate 10,000 / threads, free them; 200 times", paper::threadtest),
    paper("larson", "replace random blocks, which another thread goes on with", paper::larson),
    Workload {
        orders_above: 4,
        blocks_per_thread: 160,
        ..paper(
            "constant-occupancy",
            "replace a random one of 31 blocks of 5 orders: 20,000,000 / threads",
            paper::constant_occupancy,
        )
    },
    paper("cached", "allocate a block, free it: 5,000,000 a thread", paper::cached),
    workload("alloc-seq", "allocate until full, in equal shares", until_full::alloc_seq),
    Workload {
        orders: Orders::Mixed,
        ..workload("alloc-rnd", "allocate random orders until full", until_full::alloc_rnd)
    },
    workload("free-seq", "free what alloc-seq allocated", until_full::free_seq),
    Workload {
        orders: Orders::Mixed,
        ..workload("free-rnd", "free what alloc-rnd allocated, at random", until_full::free_rnd)
    },
    Workload {
        orders: Orders::Mixed,
        ..workload(
            "stress",
            "random orders up to 95 % full, down to 5 %, again",
            until_full::stress,
        )
    },
    workload("bulk", "allocate half of a share, free it last in first out", llfree::bulk),
    workload("repeat", "half of the memory held: allocate a block, free it", llfree::repeat),
    workload("rand", "free what others allocated, at random", llfree::rand),
    workload("filling", "a hundredth of the memory, at 0 to 99 % full", llfree::filling),
    Workload {
        orders: Orders::Units,
        own: Some(&own::RECOVERED),
        ..workload("frag", "at 45 % full, free a tenth and allocate it: 100 rounds", llfree::frag)
    },
    Workload {
        orders: Orders::Units,
        own: Some(&own::SPEED),
        ..workload("fill", "allocate the arena unit by unit", until_full::alloc_seq)
    },
    Workload {
        orders: Orders::Mixed,
        ..workload(
            "churn",
            "a program that has run for a while: random frees, a steady fill, five mixes of orders",
            churn::churn,
        )
    },
    Workload {
        memory: Memory { heap_bytes: (160 << 20, 16 << 20), ..USUAL },
        ..mixed(
            "heap-random",
            "random sizes and alignments, the oldest freed, until the heap is full, and on",
            &[Kind::Heap],
            Run::Heap(heap_random::heap_random),
        )
    },
    Workload {
        memory: Memory { heap_bytes: (256 << 20, 128 << 20), ..USUAL },
        trace: Some(Replayed::Heap),
        ..mixed(
            "replay-heap",
            "what a program asked of malloc: git, or --heap-trace",
            &[Kind::Heap],
            Run::Heap(replay::replay_heap),
        )
    },
    Workload {
        memory: Memory { arena_units: (1 << 18, 1 << 18), ..USUAL },
        trace: Some(Replayed::Pages),
        ..mixed(
            "replay",
            "page allocations of Linux under redis-benchmark",
            &[Kind::BackEnd],
            Run::Pages(replay::replay),
        )
    },
    mixed(
        "pool",
        "objects of 48 bytes: in bulk, in pairs, handed over, in bursts",
        &[Kind::Pool],
        Run::Pool,
    ),
    #[cfg(unix)]
    Workload {
        // Somebody must go on, on a processor of its own.
        least_threads: 2,
        own: Some(&own::STALLED),
        run: Run::Suspended,
        ..paper("suspended", "pairs, while a thread sleeps in the middle of an operation", |_| {})
    },
];
