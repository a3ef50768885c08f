//! Puts a thread to sleep in the middle of its work, by a signal whose handler waits.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use nix::sys::pthread::{Pthread, pthread_kill};
use nix::sys::signal::Signal;

/// The place at which to suspend a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// In the middle of an operation.
    Inside,
    /// Between two operations.
    Between,
}

/// The handler has nothing to do.
const IDLE: u64 = 0;
/// The handler is to wait if it finds its thread inside an operation.
const ASK_INSIDE: u64 = 1;
/// The handler is to wait if it finds its thread between two operations.
const ASK_BETWEEN: u64 = 2;
/// The handler did not find its thread there.
const MISSED: u64 = 3;
/// The handler waits until this changes.
const SUSPENDED: u64 = 4;

static STATE: AtomicU64 = AtomicU64::new(IDLE);

/// How often a thread was suspended and released: odd while it is suspended.
static TURNS: AtomicU64 = AtomicU64::new(0);

/// There is only one state, so only one suspender at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The right to suspend a thread.
pub struct Suspender(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Suspender {
    /// Waits until no one else has the right.
    pub fn new() -> Self {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            #[allow(unsafe_code)]
            // SAFETY: the handler uses atomics, a thread-local without destructor, and sleep: nanosleep.
            let handled = unsafe { signal_hook_registry::register(Signal::SIGUSR1 as i32, handle) };
            handled.expect("SIGUSR1 can be handled");
        });
        Self(ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Suspends the thread at that place, runs `meanwhile`, and lets the thread go on.
    pub fn suspend<R>(&self, thread: Pthread, place: Where, meanwhile: impl FnOnce() -> R) -> R {
        let ask = if place == Where::Inside { ASK_INSIDE } else { ASK_BETWEEN };
        loop {
            // Release and Acquire, here and in `handle`: a thread that sees a state sees what was done before it.
            STATE.store(ask, Ordering::Release);
            pthread_kill(thread, Signal::SIGUSR1).expect("the thread lives");
            let answer = loop {
                match STATE.load(Ordering::Acquire) {
                    answer @ (MISSED | SUSPENDED) => break answer,
                    _ => thread::yield_now(),
                }
            };
            if answer == SUSPENDED {
                break;
            }
            thread::sleep(Duration::from_micros(20));
        }
        let result = meanwhile();
        TURNS.fetch_add(1, Ordering::AcqRel);
        STATE.store(IDLE, Ordering::Release);
        result
    }
}

fn handle() {
    let wanted = if INSIDE.get() { ASK_INSIDE } else { ASK_BETWEEN };
    match STATE.load(Ordering::Acquire) {
        ask @ (ASK_INSIDE | ASK_BETWEEN) if ask == wanted => {
            TURNS.fetch_add(1, Ordering::AcqRel);
            STATE.store(SUSPENDED, Ordering::Release);
            while STATE.load(Ordering::Acquire) == SUSPENDED {
                thread::sleep(Duration::from_micros(50));
            }
        }
        ASK_INSIDE | ASK_BETWEEN => STATE.store(MISSED, Ordering::Release),
        _ => {}
    }
}

/// Returns how often a thread was suspended and released.
pub fn turns() -> u64 {
    TURNS.load(Ordering::Relaxed)
}

/// Runs an operation, within which this thread may be suspended.
pub fn inside<R>(operation: impl FnOnce() -> R) -> R {
    INSIDE.set(true);
    compiler_fence(Ordering::SeqCst);
    let result = operation();
    compiler_fence(Ordering::SeqCst);
    INSIDE.set(false);
    result
}
