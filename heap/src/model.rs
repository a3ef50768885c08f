//! Models under loom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
