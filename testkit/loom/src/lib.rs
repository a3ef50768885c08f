//! Races under loom, as the tests of pools, heaps and segments run them.
//!
//! It is a crate of its own, so that what else takes `testkit` does not take loom, which does not build on 32 bits.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::sync::atomic::AtomicUsize as RacedUsize;

/// A word `W` of loom's.
///
/// Loom's search forgets a load as soon as somebody else loads the same word, and so tries no schedule in which one of
/// their writes comes before it. Here every access is preceded by one that it does not forget, and that orders nothing.
#[derive(Default)]
pub struct Raced<W> {
    word: W,
    turn: RacedUsize,
}

impl<W> Raced<W> {
    /// Returns the word, for one access.
    pub fn turn(&self) -> &W {
        self.turn.fetch_add(0, Ordering::Relaxed);
        &self.word
    }
}

/// Runs every execution of `test` with no more than so many preemptions, and prints how many there are.
///
/// # Panics
/// `test` panics in one of them, loom finds fault with one, or they are too few to be a race, which without preemptions
/// they need not be.
#[track_caller]
pub fn model(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
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
    assert!(preemptions == 0 || executions > 5, "{executions} executions are no race");
}
