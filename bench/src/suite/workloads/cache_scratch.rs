//! Passive false sharing, as Hoard's benchmark cache-scratch provokes it: threads write to blocks of one cache line,
//! because a heap gives a thread the block that it freed, and others the blocks beside it.

use crate::crew::Crew;
use crate::row::Row;
use crate::suite::heap_worker::{HeapWorker, layout};
use crate::suite::on_heap::HeapRound;
use crate::suite::own::Own;
use crate::suite::round::Part;
use crate::table::{hundredths, or_dash};

/// How often each byte of a block is written to.
const TIMES: usize = 1000;

/// Frees a block that the main thread allocated, beside those of the others. Then allocates as much, writes to it, and
/// frees it: 1,000 times, or until time is up.
pub fn cache_scratch(round: &HeapRound<'_>) -> Vec<Part> {
    let bytes = round.block_bytes();
    let given: Vec<_> =
        (0..round.setting.threads).map(|_| round.heap.alloc(layout(bytes))).collect();
    Crew::run(round.setting.threads, |crew, lane| {
        HeapWorker::stretch(round, (crew, lane), "writes", |worker| {
            given[lane].into_iter().for_each(|at| worker.free((at, layout(bytes))));
            for _ in 0..1000 {
                if worker.is_late() {
                    break;
                }
                if let Some((at, layout)) = worker.alloc(bytes) {
                    round.heap.rewrite(at, layout, TIMES);
                    worker.free((at, layout));
                }
            }
        })
    })
}

/// The time of a write on one thread while the others do as much, at each number of threads.
pub static WRITE_OF_A_THREAD: Own = Own {
    set: |row, _, _| {
        let writes = row.size_bytes.unwrap_or(1) as f64 * TIMES as f64;
        let write = row.ns_per_op.map(|ns| ns * 2.0 * row.threads as f64 / writes);
        row.set("ns_per_write_of_a_thread", write);
    },
    columns: &[("ns a write, each thread", |rows| {
        let write = |row: &&Row| or_dash(row.figure("ns_per_write_of_a_thread"), hundredths);
        rows.iter().map(write).collect::<Vec<_>>().join(" / ")
    })],
};
