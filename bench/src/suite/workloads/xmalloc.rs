//! The workload of C. Lever and D. Boreham, "malloc() Performance in a Multithreaded Linux Environment", which
//! mimalloc-bench calls xmalloc-test: one half of the threads allocates, the other half frees.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use crate::crew::Crew;
use crate::suite::heap_worker::{HeapWorker, Held};
use crate::suite::on_heap::HeapRound;
use crate::suite::round::Part;

/// The sizes, each as likely as the others, and their mean.
const SIZES: [usize; 17] =
    [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048];
const MEAN: u64 = 421;

/// What a thread does with batches of blocks.
enum Role {
    /// Allocates them, and sends them to the threads that free, in turn.
    Allocates(Vec<SyncSender<Vec<Held>>>),
    Frees(Receiver<Vec<Held>>),
}

/// Allocates batches of 4,096 blocks, or of as many as fit, on every second thread until time is up, and frees them on
/// the others. (The original queues up to 100 batches for all of them; here one waits for each thread that frees.)
pub fn xmalloc(round: &HeapRound<'_>) -> Vec<Part> {
    let threads = round.setting.threads;
    // A batch and a half for each thread, in its hands or on its way.
    let blocks = (round.bytes / 4 / MEAN / threads as u64).clamp(1, 4096) as usize;
    let roles: Vec<_> = roles(threads).into_iter().map(|role| Mutex::new(Some(role))).collect();
    Crew::run(threads, |crew, lane| {
        let role = roles[lane].lock().unwrap_or_else(PoisonError::into_inner).take();
        HeapWorker::stretch(round, (crew, lane), "batches", |worker| match role {
            Some(Role::Allocates(to)) => allocate(worker, blocks, to.iter().cycle().skip(lane / 2)),
            Some(Role::Frees(from)) => {
                from.iter().flatten().for_each(|held| worker.free(held));
            }
            None => {}
        })
    })
}

/// Returns the role of each thread. The channels end with the threads that allocate.
fn roles(threads: usize) -> Vec<Role> {
    let (to, from): (Vec<_>, Vec<_>) = (0..threads / 2).map(|_| sync_channel(1)).unzip();
    let mut from = from.into_iter().map(Role::Frees);
    let allocates = || Role::Allocates(to.clone());
    let role = |lane: usize| if lane.is_multiple_of(2) { None } else { from.next() };
    (0..threads).map(role).map(|role| role.unwrap_or_else(allocates)).collect()
}

fn allocate<'a>(
    worker: &mut HeapWorker<'_>,
    blocks: usize,
    mut to: impl Iterator<Item = &'a SyncSender<Vec<Held>>>,
) {
    while !worker.is_late() {
        let block = |_| {
            let bytes = SIZES[worker.random.usize(..SIZES.len())];
            worker.alloc(bytes)
        };
        let batch = (0..blocks).filter_map(block).collect();
        // A thread that frees ends only after all that allocate, or by a panic, which ends this round, too.
        let Some(Ok(())) = to.next().map(|to| to.send(batch)) else { return };
    }
}
