//! The workloads of R. Marotta et al., "NBBS: A Non-Blocking Buddy System for Multi-core Machines", and of their suite.

use super::Worker;

/// Runs the Linux scalability benchmark.
pub fn linux_scalability(worker: &mut Worker<'_>) {
    let pairs = worker.share(20_000_000);
    worker.stretch("pairs", |worker| worker.up_to(pairs, Worker::pair));
}

/// Runs the same pairs, with a fixed number on each thread.
pub fn cached(worker: &mut Worker<'_>) {
    worker.stretch("pairs", |worker| worker.up_to(5_000_000, Worker::pair));
}

/// Runs Hoard's threadtest: allocates a share, frees it, again and again.
pub fn threadtest(worker: &mut Worker<'_>) {
    let room = worker.share(worker.units() >> worker.order()) / 2;
    let blocks = worker.share(10_000).clamp(1, room.max(1));
    worker.stretch("all", |worker| {
        worker.up_to(200, |worker| {
            worker.up_to(blocks, |worker| worker.hold(worker.order()));
            let held = worker.held.len() as u64;
            worker.up_to(held, Worker::free_last);
            true
        });
    });
}

/// Runs Larson's server: each thread replaces the blocks that another allocated.
pub fn larson(worker: &mut Worker<'_>) {
    /// The number of replacements before the blocks go to another thread.
    const TURN: u64 = 1000;
    let room = worker.share(worker.units() >> worker.order()) / 4;
    let blocks = room.clamp(1, 1000);
    worker.prepare(|worker| {
        worker.repeat(blocks, |worker| worker.hold(worker.order()));
        worker.swap_with(worker.lane);
        worker.repeat(blocks, |worker| worker.hold(worker.order()));
    });
    let mut to = worker.lane;
    worker.stretch("replacements", |worker| {
        worker.until_late(|worker| {
            for time in 0..TURN {
                if time.is_multiple_of(32) && worker.is_late() {
                    return false;
                }
                worker.free_any();
                worker.hold(worker.order());
            }
            to = (to + 1) % worker.threads();
            worker.swap_with(to);
            true
        });
    });
}

/// Replaces blocks in a pool of 31, with more small ones than large ones.
pub fn constant_occupancy(worker: &mut Worker<'_>) {
    worker.prepare(|worker| {
        for above in 0..=4 {
            worker.repeat(16 >> above, |worker| worker.hold(worker.order() + above));
        }
    });
    let times = worker.share(20_000_000);
    worker.stretch("replacements", |worker| {
        worker
            .up_to(times, |worker| worker.free_any().is_some_and(|block| worker.hold(block.order)));
    });
}
