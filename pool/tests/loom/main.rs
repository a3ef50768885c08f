//! Tests under loom: what was done with a slot happens before what its next holder does, on every path by which slots
//! change hands, in every execution of loom's memory model.
#![cfg(not(miri))]

mod growth;
mod handles;
mod plot;
mod slots;
mod words;

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;
use plot::Watched;

#[track_caller]
fn model(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&executions);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        test();
    });
    let executions = executions.load(Ordering::Relaxed);
    println!("{}: nothing in any of {executions} executions", Location::caller());
    assert!(executions > 5, "{executions} executions are no race");
}

/// The part of a thread in a race.
type Lane = fn(&Watched);

/// Races lanes on fresh pools, and checks whether anything was lost.
#[track_caller]
fn race(
    preemptions: usize,
    fresh: impl Fn() -> Arc<Watched> + Sync + Send + 'static,
    lanes: &'static [Lane],
) {
    model(preemptions, move || {
        let watched = fresh();
        together(&watched, lanes);
        watched.check();
    });
}

/// The first lane is the calling thread's.
fn together(watched: &Arc<Watched>, lanes: &'static [Lane]) {
    let threads = lanes[1..].iter().map(|lane| {
        let watched = Arc::clone(watched);
        thread::spawn(move || lane(&watched))
    });
    let threads: Vec<_> = threads.collect();
    lanes[0](watched);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
