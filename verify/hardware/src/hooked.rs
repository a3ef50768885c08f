//! A word that calls a function before every access. Unlike [`testkit::steered::Steered`] it may be used
//! by a signal handler that interrupts such a function.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;

use baselines::Pause;
use nbbs::sync::{Ordering, Word};

/// The word.
#[derive(Debug, Default)]
pub struct Hooked(AtomicU64);

impl From<u64> for Hooked {
    fn from(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
}

thread_local! {
    static HOOK: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// Calls `body` with `hook` called before every access that this thread makes to a [`Hooked`] word.
pub fn with_hook<R>(hook: fn(), body: impl FnOnce() -> R) -> R {
    let before = HOOK.replace(Some(hook));
    let result = body();
    HOOK.set(before);
    result
}

#[inline]
fn before_step() {
    if let Some(hook) = HOOK.get() {
        hook();
    }
}

impl Word for Hooked {
    fn load(&self, order: Ordering) -> u64 {
        before_step();
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        before_step();
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        before_step();
        self.0.compare_exchange(current, new, success, failure)
    }
}

impl Pause for Hooked {
    fn pause() {
        before_step();
        std::hint::spin_loop();
    }
}
