//! The loop of hermit-os/kernel#1984, "Poor multi-threaded allocation performance": 128 threads that only box 64 bytes.

use crate::crew::Crew;
use crate::suite::heap_worker::HeapWorker;
use crate::suite::on_heap::HeapRound;
use crate::suite::round::Part;

/// Allocates a block, and frees it at once: 10,001,000 times on each thread, or until time is up.
pub fn hermit(round: &HeapRound<'_>) -> Vec<Part> {
    Crew::run(round.setting.threads, |crew, lane| {
        HeapWorker::stretch(round, (crew, lane), "boxes", |worker| {
            worker.up_to(10_001_000, |worker| worker.pair(round.block_bytes()));
        })
    })
}
