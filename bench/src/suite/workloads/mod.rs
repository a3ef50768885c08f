//! The workloads, by where they come from.

mod llfree;
mod paper;
mod until_full;

use super::worker::{LONG, Worker};

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
    pub run: fn(&mut Worker<'_>),
}

const fn workload(name: &'static str, about: &'static str, run: fn(&mut Worker<'_>)) -> Workload {
    Workload { name, about, orders: Orders::Asked, orders_above: 0, blocks_per_thread: 4, run }
}

/// All of them.
pub static WORKLOADS: [Workload; 16] = [
    workload(
        "linux-scalability",
        "allocate a block, free it: 20,000,000 / threads",
        paper::linux_scalability,
    ),
    workload("threadtest", "allocate 10,000 / threads, free them; 200 times", paper::threadtest),
    workload("larson", "replace random blocks, which another thread goes on with", paper::larson),
    Workload {
        orders_above: 4,
        blocks_per_thread: 160,
        ..workload(
            "constant-occupancy",
            "replace a random one of 31 blocks of 5 orders: 20,000,000 / threads",
            paper::constant_occupancy,
        )
    },
    workload("cached", "allocate a block, free it: 5,000,000 a thread", paper::cached),
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
        ..workload("frag", "at 45 % full, free a tenth and allocate it: 100 rounds", llfree::frag)
    },
    Workload {
        orders: Orders::Units,
        ..workload("fill", "allocate the arena unit by unit", until_full::alloc_seq)
    },
];
