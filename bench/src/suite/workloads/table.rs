//! All workloads, in the order in which they are listed.

use super::{Cases, Orders, QUICK, Run, USUAL, Usual, Workload};
use super::{cache_scratch, hermit, larson_sizes, mstress, xmalloc};
use super::{churn, first_failure, frusa, heap_random, llfree, paper, replay, talc, until_full};
use crate::market::Kind;
use crate::replay::report as replay_report;
use crate::suite::own;
use crate::suite::report;
use crate::suite::worker::Worker;
use crate::{cores, limit, pool, requests};

const fn workload(name: &'static str, about: &'static str, run: fn(&mut Worker<'_>)) -> Workload {
    Workload {
        name,
        about,
        orders: Orders::Asked,
        orders_above: 0,
        blocks_per_thread: 4,
        kinds: &[Kind::BackEnd],
        threads: (1, usize::MAX),
        of_all: true,
        usual: USUAL,
        quick: QUICK,
        by_operation: false,
        traces: None,
        crowded: false,
        own: None,
        table: report::table,
        footer: report::FOOTER,
        run: Run::Blocks(run),
    }
}

/// Defines a workload with cases of its own.
const fn apart(
    name: &'static str,
    about: &'static str,
    kinds: &'static [Kind],
    footer: &'static str,
    cases: Cases,
) -> Workload {
    let mixed = mixed(name, about, kinds, Run::Cases(cases));
    Workload { of_all: false, footer, ..mixed }
}

/// Defines a workload of the paper, which also describes it for heaps.
const fn paper(name: &'static str, about: &'static str, run: fn(&mut Worker<'_>)) -> Workload {
    Workload { kinds: &[Kind::BackEnd, Kind::Heap], ..workload(name, about, run) }
}

/// Defines a workload whose sizes the command line does not set.
const fn mixed(
    name: &'static str,
    about: &'static str,
    kinds: &'static [Kind],
    run: Run,
) -> Workload {
    let orders = Orders::Mixed;
    Workload { orders, blocks_per_thread: 0, kinds, run, ..workload(name, about, |_| {}) }
}

/// All workloads.
pub static WORKLOADS: &[Workload] = &[
    paper(
        "linux-scalability",
        "allocate a block, free it: 20,000,000 / threads",
        paper::linux_scalability,
    ),
    paper("threadtest", "allocate 10,000 / threads, free them; 200 times", paper::threadtest),
    paper("larson", "replace random blocks, then leave them to another thread", paper::larson),
    Workload {
        orders_above: 4,
        blocks_per_thread: 160,
        ..paper(
            "constant-occupancy",
            "replace a random one of 31 blocks of 5 orders: 20,000,000 / threads",
            paper::constant_occupancy,
        )
    },
    paper("cached", "allocate a block, free it: 5,000,000 per thread", paper::cached),
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
            "random orders up to 95 % full, down to 5 %, repeatedly",
            until_full::stress,
        )
    },
    workload("bulk", "allocate half of a share, free it last in first out", llfree::bulk),
    workload(
        "repeat",
        "while half of the memory is held: allocate a block, free it",
        llfree::repeat,
    ),
    workload("rand", "free what others allocated, at random", llfree::rand),
    workload(
        "filling",
        "allocate a hundredth of the memory and free it, at 0 to 99 % full",
        llfree::filling,
    ),
    Workload {
        orders: Orders::Units,
        own: Some(&own::RECOVERED),
        ..workload(
            "frag",
            "at 45 % full, free a tenth and allocate it: 100 rounds, none far ahead",
            llfree::frag,
        )
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
        usual: Usual { heap_bytes: 160 << 20, ..USUAL },
        ..mixed(
            "heap-random",
            "random sizes and alignments, the oldest freed, until the heap is full, and beyond",
            &[Kind::Heap],
            Run::Heap(heap_random::heap_random),
        )
    },
    Workload {
        usual: Usual { heap_bytes: 128 << 20, ..USUAL },
        quick: Usual { heap_bytes: 128 << 20, ..QUICK },
        ..mixed(
            "random-actions",
            "allocate, free, resize at random, at least 300 blocks per thread, five size limits",
            &[Kind::Heap],
            Run::Heap(talc::random_actions),
        )
    },
    Workload {
        usual: Usual { heap_bytes: 128 << 20, ..USUAL },
        quick: Usual { heap_bytes: 16 << 20, ..QUICK },
        own: Some(&own::EFFICIENCY),
        ..mixed(
            "heap-efficiency",
            "allocate, free, resize at random until something is refused: how much is in use then",
            &[Kind::Heap],
            Run::Heap(talc::heap_efficiency),
        )
    },
    Workload {
        own: Some(&own::PAIR_OF_A_THREAD),
        ..mixed(
            "random-pairs",
            "allocate 16 to 2,048 bytes, free them",
            &[Kind::Heap],
            Run::Heap(frusa::random_pairs),
        )
    },
    mixed(
        "larson-sizes",
        "mimalloc-bench's: larson with 8 to 999 bytes",
        &[Kind::Heap],
        Run::Heap(larson_sizes::larson_sizes),
    ),
    Workload {
        // One allocates, one frees.
        threads: (2, usize::MAX),
        ..mixed(
            "xmalloc",
            "mimalloc-bench's: batches of 8 to 2,048 bytes, which other threads free",
            &[Kind::Heap],
            Run::Heap(xmalloc::xmalloc),
        )
    },
    mixed(
        "mstress",
        "mimalloc-bench's: many small sizes, few large ones, kept, freed, exchanged, in rounds",
        &[Kind::Heap],
        Run::Heap(mstress::mstress),
    ),
    Workload {
        orders: Orders::Asked,
        usual: Usual { sizes: &[0], ..USUAL },
        quick: Usual { sizes: &[0], ..QUICK },
        own: Some(&cache_scratch::WRITE_OF_A_THREAD),
        ..mixed(
            "cache-scratch",
            "Hoard's: free a block beside those of other threads; allocate one, write to it, free it",
            &[Kind::Heap],
            Run::Heap(cache_scratch::cache_scratch),
        )
    },
    Workload {
        orders: Orders::Asked,
        usual: Usual { threads: &[1, 2, 4, 8, 16, 32, 128], sizes: &[3], ..USUAL },
        own: Some(&own::PAIR_OF_A_THREAD),
        ..mixed(
            "hermit",
            "hermit-os/kernel#1984's: allocate a block, free it, on up to 128 threads",
            &[Kind::Heap],
            Run::Heap(hermit::hermit),
        )
    },
    Workload {
        usual: Usual { heap_bytes: 256 << 20, ..USUAL },
        quick: Usual { heap_bytes: 128 << 20, ..QUICK },
        traces: Some(replay::heap_traces),
        ..mixed(
            "replay-heap",
            "what a program asked of malloc: git, or --heap-trace",
            &[Kind::Heap],
            Run::Heap(replay::replay_heap),
        )
    },
    Workload {
        threads: (1, 1),
        traces: Some(replay::heap_traces),
        crowded: true,
        own: Some(&own::EFFICIENCY),
        ..mixed(
            "first-failure",
            "the same on one thread, until something is refused: how much is in use then",
            &[Kind::Heap],
            Run::Heap(first_failure::first_failure),
        )
    },
    Workload {
        usual: Usual { threads: &[1], ..USUAL },
        quick: Usual { threads: &[1], ..QUICK },
        by_operation: true,
        traces: Some(replay::page_traces),
        own: Some(&own::REPLAYED),
        table: replay_report::table,
        footer: replay_report::FOOTER,
        ..mixed(
            "replay",
            "page allocations of Linux under redis-benchmark, or --traces",
            &[Kind::BackEnd],
            Run::Pages(replay::replay),
        )
    },
    Workload {
        of_all: true,
        ..apart(
            "pool",
            "objects of 48 bytes: in bulk, in pairs, handed over, in bursts",
            &[Kind::Pool],
            report::FOOTER,
            pool::CASES,
        )
    },
    #[cfg(unix)]
    Workload {
        // Another thread must go on, on a processor of its own.
        threads: (2, usize::MAX),
        usual: Usual { threads: &[2], ..USUAL },
        quick: Usual { threads: &[2], ..QUICK },
        own: Some(&own::STALLED),
        run: Run::Suspended,
        ..paper("suspended", "pairs, while a thread sleeps in the middle of an operation", |_| {})
    },
    Workload {
        orders: Orders::Asked,
        usual: limit::USUAL,
        quick: limit::QUICK,
        ..apart(
            "limit",
            "single operations of nbbs and its heap beside bare compare-and-swaps",
            &[Kind::BackEnd, Kind::Heap],
            limit::report::FOOTER,
            limit::CASES,
        )
    },
    Workload {
        threads: (1, 1),
        usual: Usual { threads: &[1], rounds: 11, ..USUAL },
        quick: Usual { threads: &[1], rounds: 3, ..QUICK },
        ..apart(
            "requests",
            "exact sizes, batches, growth in place and placement, by nbbs",
            &[Kind::BackEnd],
            requests::report::FOOTER,
            requests::MEASURED,
        )
    },
    Workload {
        // As many harts as the simulated machine has.
        threads: (1, 64),
        usual: Usual { threads: &[2, 4, 8, 16, 32, 64], ..USUAL },
        quick: Usual { threads: &[2, 4, 8], ..QUICK },
        own: Some(&own::SCALING),
        ..apart(
            "cores",
            "throughput on 1 to 64 cores, on a simulated machine",
            &[Kind::BackEnd, Kind::Pool, Kind::Heap],
            cores::report::FOOTER,
            cores::CASES,
        )
    },
];
