//! Larson's server with the sizes of mimalloc-bench, whose parameters are `5 8 1000 5000 100 4141`.

use std::mem::swap;
use std::sync::{Mutex, PoisonError};

use crate::crew::Crew;
use crate::suite::heap_worker::{HeapWorker, Held, layout};
use crate::suite::on_heap::HeapRound;
use crate::suite::round::Part;

/// The sizes that are allocated, and their mean.
const SIZES: std::ops::Range<usize> = 8..1000;
const MEAN: u64 = 504;

/// Replaces random ones of 5,000 blocks, or of as many as fit, until time is up. After as many replacements the blocks
/// go to another thread. (The original ends the thread and starts another one, which goes on with its blocks.)
pub fn larson_sizes(round: &HeapRound<'_>) -> Vec<Part> {
    let threads = round.setting.threads;
    // A set in use and a set on its way for each thread take half of the heap at most.
    let blocks = (round.bytes / 4 / MEAN / threads as u64).clamp(1, 5000) as usize;
    let allocated = |random: &mut fastrand::Rng| {
        let block = |_| {
            let layout = layout(random.usize(SIZES));
            Some((round.heap.alloc(layout)?, layout))
        };
        (0..blocks).filter_map(block).collect::<Vec<Held>>()
    };
    let mail: Vec<Mutex<Vec<Held>>> = (0..threads).map(|_| Mutex::default()).collect();
    let swap_with = |lane: usize, held: &mut Vec<Held>| {
        swap(held, &mut mail[lane].lock().unwrap_or_else(PoisonError::into_inner));
    };
    let free =
        |held: Vec<Held>| held.into_iter().for_each(|(at, layout)| round.heap.free(at, layout));
    let parts = Crew::run(threads, |crew, lane| {
        let mut random = fastrand::Rng::with_seed(lane as u64);
        let mut held = allocated(&mut random);
        swap_with(lane, &mut held);
        held.extend(allocated(&mut random));
        let missing = blocks - held.len();
        let mut part = HeapWorker::stretch(round, (crew, lane), "replacements", |worker| {
            let mut to = lane;
            while !worker.is_late() {
                worker.up_to(blocks as u64, |worker| {
                    if !held.is_empty() {
                        let place = worker.random.usize(..held.len());
                        worker.free(held.swap_remove(place));
                    }
                    let bytes = worker.random.usize(SIZES);
                    held.extend(worker.alloc(bytes));
                });
                to = (to + 1) % threads;
                swap_with(to, &mut held);
            }
        });
        free(held);
        part.refused += missing as u64;
        part
    });
    mail.into_iter()
        .for_each(|held| free(held.into_inner().unwrap_or_else(PoisonError::into_inner)));
    parts
}
