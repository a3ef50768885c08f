//! The barrier of `drain_all`, as an interrupt that is sent to a CPU and answered from its handler.
//!
//! The handler comes before a step of the CPU's own, which the race chooses, or after its last one. What the sender did
//! before it sent is seen from there on, and what the CPU did before it answered is seen by the sender from then on. That
//! is all: there is no fence, which an interrupt or `membarrier` has besides. Where CPU and sender are at other places, as
//! when the handler comes late, the race has another step for it.

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

/// Blocks who waits for it, so that loom has no rounds of waiting to tell apart.
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
    /// What is going to interrupt this thread, and how many steps it takes before.
    static COMING: RefCell<Option<(Arc<Barrier>, usize)>> = RefCell::new(None);
}

/// Nothing that loom knows of.
static CAME: Plain = Plain::new(false);

/// Whether a step was interrupted since this was asked last.
pub fn was_interrupted() -> bool {
    CAME.swap(false, Ordering::Relaxed)
}

/// Calls `body`, interrupted by the barrier, if there is one, before step number `step`, or else at the end.
pub fn on_cpu(barrier: Option<Arc<Barrier>>, step: usize, body: impl FnOnce()) {
    COMING.with(|coming| *coming.borrow_mut() = barrier.map(|barrier| (barrier, step)));
    body();
    if let Some((barrier, _)) = COMING.with(|coming| coming.borrow_mut().take()) {
        barrier.answer();
    }
}

/// To be called before every step.
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
