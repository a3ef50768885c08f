//! The workloads of L. Wrenger et al., "LLFree: Scalable and Optionally-Persistent Page-Frame Allocation".

use super::Worker;
use crate::suite::worker::LONG;

/// Returns the number of a thread's blocks: a share of half of the memory, divided among the most threads of the run.
fn blocks(worker: &Worker<'_>) -> u64 {
    let threads = worker.setting().max_threads as u64;
    ((worker.units() / threads / 2) >> worker.order()).max(1)
}

/// Allocates blocks of the order and keeps them.
fn alloc(worker: &mut Worker<'_>, blocks: u64) {
    worker.repeat(blocks, |worker| worker.hold(worker.order()));
}

/// Frees the blocks kept last, the last one first.
fn free(worker: &mut Worker<'_>, blocks: u64) {
    let blocks = blocks.min(worker.held.len() as u64);
    worker.repeat(blocks, Worker::free_last);
}

/// Allocates all blocks, then frees all in reverse order.
pub fn bulk(worker: &mut Worker<'_>) {
    let blocks = blocks(worker);
    worker.stretch("alloc", |worker| alloc(worker, blocks));
    worker.stretch("free", |worker| free(worker, blocks));
}

/// Runs pairs while half of the memory is held.
pub fn repeat(worker: &mut Worker<'_>) {
    /// The least number of pairs: fewer would say little.
    const LEAST: u64 = 100_000;
    worker.prepare(|worker| {
        let half = worker.share((worker.units() >> worker.order()) / 2);
        alloc(worker, half);
    });
    let pairs = blocks(worker).max(LEAST);
    worker.stretch("pairs", |worker| worker.up_to(pairs, Worker::pair));
}

/// Frees what other threads allocated, in random order.
pub fn rand(worker: &mut Worker<'_>) {
    worker.prepare(|worker| {
        alloc(worker, blocks(worker));
        worker.shuffle_over_all();
    });
    worker.stretch("free", |worker| worker.repeat_all(Worker::free_last));
}

/// Allocates and frees a hundredth of the memory, at several fills.
pub fn filling(worker: &mut Worker<'_>) {
    /// The number of repetitions, since a hundredth may be few blocks.
    const TIMES: u64 = 20;
    let all = worker.units() >> worker.order();
    let part = worker.share(all / 100).max(1);
    for (percent, name) in
        [(0, "0 % full"), (50, "50 % full"), (90, "90 % full"), (99, "99 % full")]
    {
        worker.prepare(|worker| {
            let more = worker.share(all * percent / 100).saturating_sub(worker.held.len() as u64);
            alloc(worker, more);
        });
        worker.stretch(name, |worker| {
            worker.up_to(TIMES, |worker| {
                alloc(worker, part);
                free(worker, part);
                true
            });
        });
    }
}

/// How often a fragmented memory's tenth is replaced.
const ROUNDS: u64 = 100;

/// How many blocks, at least, a thread replaces between two meetings of the threads. LLFree's meet after each round; fewer
/// meetings disturb the times less, and still none ends before the others begin, where processors are few.
const MEETS_AFTER: u64 = 20_000;

/// Frees and allocates a tenth of a fragmented memory, again and again. LLFree's benchmark allocates after each free, which
/// shows something else: a lane takes again what it has just freed.
pub fn frag(worker: &mut Worker<'_>) {
    worker.prepare(|worker| {
        let most = worker.share(worker.units() * 9 / 10);
        alloc(worker, most);
        worker.shuffle_over_all();
        let half = worker.held.len() as u64 / 2;
        free(worker, half);
    });
    // Not of what this thread holds: all have to meet equally often.
    let replaced = worker.units() * 9 / 200 / worker.threads() as u64;
    let together = MEETS_AFTER.div_ceil(replaced.max(1)).min(ROUNDS);
    let meetings = ROUNDS.div_ceil(together);
    for meeting in 0..meetings {
        worker.meet();
        let rounds = together.min(ROUNDS - meeting * together);
        worker.stretch_of(LONG.div_ceil(meetings), "rounds", |worker| replace(worker, rounds));
    }
}

/// Frees a tenth of the thread's blocks, at random, and allocates as many, the given number of times.
fn replace(worker: &mut Worker<'_>, times: u64) {
    worker.repeat(times, |worker| {
        let tenth = worker.held.len() as u64 / 10;
        worker.repeat(tenth, |worker| worker.free_any().is_some());
        alloc(worker, tenth);
        !worker.is_late()
    });
}
