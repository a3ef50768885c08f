//! Models under loom.

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

/// Runs every execution of `test` with no more than so many preemptions.
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
    let place = std::panic::Location::caller();
    println!("{place}: nothing in any of {} executions", executions.load(Ordering::Relaxed));
}
