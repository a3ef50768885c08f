//! A word that calls a function before every access. Unlike [`testkit::steered::Steered`] it may be used
//! by a signal handler that interrupts such a function.

use std::cell::Cell;

use testkit::hooked::{self, Hook};

/// The word.
pub type Hooked = hooked::Hooked<Calls>;

/// Calls the thread's function, if it has one.
#[derive(Debug, Default)]
pub struct Calls;

impl Hook for Calls {
    #[inline]
    fn before_access() {
        if let Some(hook) = HOOK.get() {
            hook();
        }
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
