//! The stress test of D. Leijen's mimalloc, which mimalloc-bench calls mstress.

use std::mem::take;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};

use crate::crew::Crew;
use crate::suite::heap_worker::{HeapWorker, Held, layout};
use crate::suite::on_heap::HeapRound;
use crate::suite::round::Part;

/// The objects that wait for any thread.
type Transfers = [AtomicU64];

/// Runs rounds, until there were 50 or time is up. In each, a thread allocates objects of 8 to 128 bytes, or 100 times
/// as much in one of a hundred cases, and half as many of up to 512 bytes that stay until the round ends. After an
/// allocation it often frees a random object, and sometimes exchanges one with the objects that wait for any thread.
/// Half of those survive a round.
///
/// (The original starts new threads for each round, fills its objects, and draws 1,000 and 10,000 times the size now
/// and then, which takes more memory than heaps have here.)
pub fn mstress(round: &HeapRound<'_>) -> Vec<Part> {
    const ROUNDS: u32 = 50;
    let threads = round.setting.threads;
    // Some threads do more.
    let weight = |lane: usize| lane as u64 % 8 + 1;
    // What is live takes about 200 bytes for each of these.
    let most = round.bytes / 1024 / (0..threads).map(weight).sum::<u64>();
    let transfers: Vec<_> = (0..1000).map(|_| AtomicU64::new(0)).collect();
    let over = AtomicBool::new(false);
    Crew::run(threads, |crew, lane| {
        HeapWorker::stretch(round, (crew, lane), "rounds", |worker| {
            for number in 1..=ROUNDS {
                let is_whole = stress(worker, &transfers, most.clamp(1, 5000) * weight(lane));
                worker.short |= !is_whole;
                crew.wait_asleep();
                if lane == 0 {
                    over.store(number == ROUNDS || worker.is_late(), Release);
                    for waiting in &transfers {
                        if over.load(Acquire) || worker.random.bool() {
                            free(worker, waiting.swap(0, AcqRel));
                        }
                    }
                }
                crew.wait_asleep();
                if over.load(Acquire) {
                    worker.short |= number < ROUNDS;
                    break;
                }
            }
        })
    })
}

/// Runs a round. Returns `false` if time was up in the middle of it.
fn stress(worker: &mut HeapWorker<'_>, transfers: &Transfers, allocs: u64) -> bool {
    let (mut allocs, mut retains) = (allocs, allocs / 2);
    let (mut objects, mut retained) = (Vec::new(), Vec::new());
    let is_whole = worker.up_to(allocs + retains, |worker| {
        if retains == 0 || allocs > 0 && worker.random.bool() {
            allocs -= 1;
            objects.push(alloc(worker, 5));
        } else {
            retains -= 1;
            retained.push(alloc(worker, 7));
        }
        let percent = |worker: &mut HeapWorker<'_>| worker.random.u8(0..100);
        if !objects.is_empty() && percent(worker) < 66 {
            let place = worker.random.usize(..objects.len());
            free(worker, take(&mut objects[place]));
        }
        if !objects.is_empty() && percent(worker) < 25 {
            let place = worker.random.usize(..objects.len());
            let waiting = &transfers[worker.random.usize(..transfers.len())];
            // The thread that takes the object may free it: what was done to it before is visible there.
            objects[place] = waiting.swap(objects[place], AcqRel);
        }
    });
    retained.into_iter().chain(objects).for_each(|object| free(worker, object));
    is_whole
}

/// Allocates an object of 8 bytes, times a power of two. Returns it as a number that fits into an atomic, or 0: its
/// address, then 3 bits for the power and 1 bit for a hundred times the size.
fn alloc(worker: &mut HeapWorker<'_>, powers: u64) -> u64 {
    let large = worker.random.u8(0..100) == 0;
    let code = worker.random.u64(..powers) << 1 | u64::from(large);
    worker.alloc(bytes(code)).map_or(0, |(at, _)| at << 4 | code)
}

fn bytes(object: u64) -> usize {
    let factor = if object & 1 == 1 { 100 } else { 1 };
    (8 << (object >> 1 & 7)) * factor
}

fn free(worker: &mut HeapWorker<'_>, object: u64) {
    if object != 0 {
        let held: Held = (object >> 4, layout(bytes(object)));
        worker.free(held);
    }
}
