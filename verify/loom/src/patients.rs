//! The allocators that are known to be broken, which loom must catch, and a sound one of the same kind.

use std::process::ExitCode;

use baselines::Units;
use baselines::free_list::{Tagged, Untagged};
use baselines::paper::{Nb1, Nb4};
use loom::sync::Arc;
use testkit::BackEnd;

use crate::payload::Payload;
use crate::race::check;
use crate::report;
use crate::word::{LoomWord, Model};

/// The operations of a thread: it allocates a unit, or frees the first that it holds.
type Ops = &'static [bool];
const ALLOC: bool = true;
const FREE: bool = false;

/// One thread frees a unit, one allocates and frees another, and one allocates: all units are neighbours. The first
/// thread holds a unit from the start.
const NEIGHBOURS: &[Ops] = &[&[FREE], &[ALLOC, FREE], &[ALLOC]];
/// Two threads take slots, and one of them brings one back.
const SLOTS: &[Ops] = &[&[ALLOC, ALLOC], &[ALLOC, ALLOC, FREE]];

/// The most preemptions: the paper's error takes three threads and two preemptions.
const BOUND: Option<usize> = Some(3);

/// Runs all patients. Fails if one goes unnoticed, or if the sound allocator is accused.
pub fn run() -> ExitCode {
    let caught = [
        try_one("nb1", true, NEIGHBOURS, || Nb1::<LoomWord>::new(4, 2)),
        try_one("nb4", true, NEIGHBOURS, || Nb4::<LoomWord>::new(32, 5)),
        try_one("freelist-untagged", false, SLOTS, || Units(Untagged::<LoomWord>::new(3))),
    ];
    let accused = try_one("freelist-tagged", false, SLOTS, || Units(Tagged::<LoomWord>::new(3)));
    let count = caught.iter().filter(|&&caught| caught).count();
    println!("patients {count}/{}", caught.len());
    if count == caught.len() && !accused { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Returns whether loom finds that two threads hold the same unit, or that memory is lost.
fn try_one<B: BackEnd + Send + 'static>(
    name: &str,
    first_holds: bool,
    lanes: &'static [Ops],
    fresh: impl Fn() -> B + Send + Sync + 'static,
) -> bool {
    let outcome = check(Model::Leading, BOUND, move || {
        let allocator = fresh();
        let payload = Payload::new(allocator.units(), 0);
        let shared = Arc::new((allocator, payload));
        let mut held: Vec<Vec<u64>> = vec![Vec::new(); lanes.len()];
        if first_holds {
            step(&shared, 0, ALLOC, &mut held[0]);
        }
        let threads = held.into_iter().zip(lanes).enumerate().map(|(lane, (mut held, ops))| {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                ops.iter().for_each(|&op| step(&shared, lane, op, &mut held));
                held
            })
        });
        let threads: Vec<_> = threads.collect();
        let held = threads.into_iter().map(|thread| thread.join().expect("loom ends the run"));
        let held: Vec<Vec<u64>> = held.collect();
        // When the other threads are done, one thread can allocate whatever is free.
        let order = shared.0.max_order();
        if let Some(index) = shared.0.alloc(0, order) {
            shared.1.take(lanes.len(), index, order);
        }
        drop(held);
    });
    report(name, BOUND, &outcome);
    outcome.failure.is_some_and(|failure| failure.contains("overlap"))
}

fn step<B: BackEnd>(shared: &(B, Payload), lane: usize, op: bool, held: &mut Vec<u64>) {
    let (allocator, payload) = shared;
    if op == ALLOC {
        if let Some(index) = allocator.alloc(lane, 0) {
            payload.take(lane, index, 0);
            held.push(index);
        }
    } else if !held.is_empty() {
        let index = held.remove(0);
        payload.give(lane, index, 0);
        assert_eq!(allocator.free(lane, index, 0), Ok(()), "lost");
    }
}
