//! Tests under loom: what was done with a slot happens before what its next holder does, on every path by which slots
//! change hands, in every execution of loom's memory model.
#![cfg(not(miri))]

mod growth;
mod handles;
mod plot;
mod slots;
mod words;

use std::sync::Arc;

use loom::thread;
use plot::Watched;
use testkit_loom::model;

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
