//! The workload of the crate frusa, whose table has the nanoseconds of a pair on one thread, at 1, 2, 4 and 8 threads.

use crate::crew::Crew;
use crate::suite::heap_worker::HeapWorker;
use crate::suite::on_heap::HeapRound;
use crate::suite::round::Part;

/// Allocates a block of a random power of two of 16 to 2,048 bytes, and frees it at once: 10,000,000 times on each
/// thread, or until time is up.
pub fn random_pairs(round: &HeapRound<'_>) -> Vec<Part> {
    Crew::run(round.setting.threads, |crew, lane| {
        HeapWorker::stretch(round, (crew, lane), "pairs", |worker| {
            worker.up_to(10_000_000, |worker| {
                let bytes = 16 << worker.random.u32(0..8);
                worker.pair(bytes);
            });
        })
    })
}
