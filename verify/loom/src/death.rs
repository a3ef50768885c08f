//! Deaths: a thread ends before one of its steps, in the middle of a call.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

loom::thread_local! {
    /// How many steps this thread takes until it dies.
    static LEFT: Cell<Option<usize>> = Cell::new(None);
}

/// What a thread unwinds with that dies.
struct Died;

/// Calls `body`, and ends it after so many steps. Returns whether it died.
pub fn dies_after(steps: usize, body: impl FnOnce()) -> bool {
    LEFT.with(|left| left.set(Some(steps)));
    let ended = catch_unwind(AssertUnwindSafe(body));
    LEFT.with(|left| left.set(None));
    match ended {
        Ok(()) => false,
        Err(payload) if payload.is::<Died>() => true,
        Err(payload) => resume_unwind(payload),
    }
}

/// Must be called before every step.
pub fn before_step() {
    before_fence();
    LEFT.with(|left| left.set(left.get().map(|steps| steps - 1)));
}

/// Must be called before every fence: whoever dies before the step behind it has not passed it.
pub fn before_fence() {
    if LEFT.with(Cell::get) == Some(0) {
        resume_unwind(Box::new(Died));
    }
}
