//! The barrier of `drain_all`, as an interrupt that is sent to a CPU and answered from its handler.
//!
//! The handler comes before a step of the CPU, which the race chooses, or after its last step. From there on the CPU
//! sees what the sender did before it sent the interrupt, and after the answer the sender sees what the CPU did before
//! it answered. That is all: there is no fence, which an interrupt or `membarrier` has as well. If CPU and sender are
//! at other places, as when the handler comes late, the race has another step for it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool as Plain, Ordering};

use loom::sync::{Arc, Condvar, Mutex};

/// An interrupt from one thread to another.
#[derive(Debug, Default)]
pub struct Barrier {
    sent: Flag,
    answered: Flag,
}

impl Barrier {
    /// Sends the interrupt, and waits for the answer.
    pub fn pass(&self) {
        self.sent.raise();
        self.answered.wait();
    }

    fn answer(&self) {
        self.sent.wait();
        self.answered.raise();
    }
}

/// A flag that blocks waiting threads, so that loom has no rounds of waiting to distinguish.
#[derive(Debug, Default)]
struct Flag(Mutex<bool>, Condvar);

impl Flag {
    fn raise(&self) {
        *self.0.lock().expect("nobody panics") = true;
        self.1.notify_one();
    }

    fn wait(&self) {
        let mut raised = self.0.lock().expect("nobody panics");
        while !*raised {
            raised = self.1.wait(raised).expect("nobody panics");
        }
    }
}

loom::thread_local! {
    /// The barrier that is going to interrupt this thread, and the number of steps before it does.
    static COMING: RefCell<Option<(Arc<Barrier>, usize)>> = RefCell::new(None);
}

/// Loom does not track this.
static CAME: Plain = Plain::new(false);

/// Returns whether a step was interrupted since the last call.
pub fn was_interrupted() -> bool {
    CAME.swap(false, Ordering::Relaxed)
}

/// Calls `body`; the barrier, if there is one, interrupts it before step number `step`, or otherwise at the end.
pub fn on_cpu(barrier: Option<Arc<Barrier>>, step: usize, body: impl FnOnce()) {
    COMING.with(|coming| *coming.borrow_mut() = barrier.map(|barrier| (barrier, step)));
    body();
    if let Some((barrier, _)) = COMING.with(|coming| coming.borrow_mut().take()) {
        barrier.answer();
    }
}

/// Must be called before every step.
pub fn before_step() {
    let due = COMING.with(|coming| {
        let mut coming = coming.borrow_mut();
        match &mut *coming {
            Some((_, 0)) => coming.take(),
            Some((_, steps)) => {
                *steps -= 1;
                None
            }
            None => None,
        }
    });
    if let Some((barrier, _)) = due {
        CAME.store(true, Ordering::Relaxed);
        barrier.answer();
    }
}
