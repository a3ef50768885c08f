//! A metadata word with a hook before every atomic step, by which a test steers the threads that use it: they stall
//! anywhere, take turns, or die.
//!
//! ```
//! use std::{cell::Cell, rc::Rc};
//! use testkit::{program::Arena, steered::{Steered, steer}};
//!
//! let arena = Arena::<Steered>::new(1 << 12);
//! let steps = Rc::new(Cell::new(0));
//! let counted = steps.clone();
//! steer(move || counted.set(counted.get() + 1), || arena.buddy().alloc(0))?;
//! assert!(steps.get() > 0);
//! # Ok::<(), nbbs::AllocError>(())
//! ```

mod bounded;
mod explore;
mod lanes;
mod schedule;
mod script;
mod turns;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Barrier;
use std::thread::{self, LocalKey};

use nbbs::Shape;

use crate::Violation;
use crate::hooked::{Hook, Hooked};
use crate::program::Body;
pub use bounded::{Culprit, Together, all_schedules};
pub use explore::{Found, explore, explore_with, replay};
pub use lanes::{die_within, pause};
pub use schedule::Schedule;
pub use script::{Turn, follow};

/// A word that calls the thread's hook, if it has one, before every access.
pub type Steered = Hooked<Steering>;

/// Such words of a shape of their own, in which few units have many levels.
pub type SteeredIn<const LEAF: u32, const FAN: u32> = Hooked<Steering<LEAF, FAN>>;

/// The hook of these words: it calls the thread's hook, which decides what happens before an access.
#[derive(Debug, Default)]
pub struct Steering<const LEAF: u32 = 5, const FAN: u32 = 4>;

impl<const LEAF: u32, const FAN: u32> Hook for Steering<LEAF, FAN> {
    const SHAPE: Shape = Shape::new(LEAF, FAN, if LEAF == 5 { 10 } else { 3 });

    fn before_access() {
        called(&STEER);
    }

    fn pause() {
        pause();
    }
}

/// A thread's hook, if it has one.
type Place = RefCell<Option<Rc<dyn Fn()>>>;

thread_local! {
    static STEER: Place = const { RefCell::new(None) };
}

/// Calls `body` with `hook` called before every access that this thread makes to a [`Steered`] word.
pub fn steer<R>(hook: impl FnMut() + 'static, body: impl FnOnce() -> R) -> R {
    let hook = RefCell::new(hook);
    with_hook(&STEER, move || hook.borrow_mut()(), body)
}

/// Calls `body` with `hook` in its place, and then restores what was there.
fn with_hook<R>(
    place: &'static LocalKey<Place>,
    hook: impl Fn() + 'static,
    body: impl FnOnce() -> R,
) -> R {
    struct Unhook(&'static LocalKey<Place>, Option<Rc<dyn Fn()>>);
    impl Drop for Unhook {
        fn drop(&mut self) {
            self.0.set(self.1.take());
        }
    }
    let _unhook = Unhook(place, place.replace(Some(Rc::new(hook))));
    body()
}

/// Calls the hook, if there is one. The place is not borrowed meanwhile: another lane may use it before the hook
/// returns.
fn called(place: &'static LocalKey<Place>) -> bool {
    let hook = place.with_borrow(Clone::clone);
    hook.inspect(|hook| hook()).is_some()
}

/// Calls `body`, and gives other threads a turn before one access in `one_in`, at random.
pub fn jitter<R>(seed: u64, one_in: u32, body: impl FnOnce() -> R) -> R {
    let mut random = fastrand::Rng::with_seed(seed);
    let hook = move || {
        if random.u32(0..one_in) == 0 {
            thread::yield_now();
        }
    };
    steer(hook, body)
}

/// Calls `body` and counts its accesses to [`Steered`] words, of which `limit` are allowed.
///
/// # Errors
/// [`Violation::Stuck`] if `body` was about to make one more than `limit`.
///
/// ```
/// use testkit::{program::Arena, steered::{Steered, count_steps}};
///
/// let arena = Arena::<Steered>::new(64);
/// let (block, steps) = count_steps(100, || arena.buddy().alloc(0))?;
/// assert!(block.is_ok() && steps > 0);
/// assert!(count_steps(3, || arena.buddy().alloc(5)).is_err());
/// # Ok::<(), testkit::Violation>(())
/// ```
pub fn count_steps<R>(limit: u64, body: impl FnOnce() -> R) -> Result<(R, u64), Violation> {
    let steps = Rc::new(Cell::new(0));
    let counted = Rc::clone(&steps);
    let hook = move || match counted.get() {
        taken if taken == limit => die(),
        taken => counted.set(taken + 1),
    };
    let result = survive(|| steer(hook, body));
    result.map(|result| (result, steps.get())).ok_or(Violation::Stuck { lane: 0, steps: limit })
}

/// The payload with which a thread that dies unwinds.
struct Died;

/// Calls `body`, and ends it before access number `step`, as a crash of its thread would. Returns `None` if it died.
pub fn die_before<R>(step: u64, body: impl FnOnce() -> R) -> Option<R> {
    let mut left = step;
    let hook = move || match left.checked_sub(1) {
        Some(less) => left = less,
        None => die(),
    };
    survive(|| steer(hook, body))
}

/// Unwinds to [`survive`], without the message of a panic.
fn die() -> ! {
    resume_unwind(Box::new(Died))
}

/// Returns the result of `body`, unless it dies on the way.
fn survive<R>(body: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => Some(result),
        Err(payload) if payload.is::<Died>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Calls each body on a thread of its own, all at the same time.
///
/// # Errors
/// The error of the first body, in their order, that failed or panicked.
pub fn at_once(bodies: Vec<Body<'_>>) -> Result<(), Violation> {
    let start = &Barrier::new(bodies.len());
    thread::scope(|scope| {
        let started = bodies.into_iter().map(|body| {
            scope.spawn(move || {
                // Otherwise the first thread is done before the last is created.
                start.wait();
                body()
            })
        });
        let threads: Vec<_> = started.collect();
        let results = threads.into_iter().map(|thread| {
            let result = thread.join();
            result.unwrap_or_else(|payload| Err(Violation::from_panic(&*payload)))
        });
        // All threads are joined before the first failure is chosen.
        results.collect::<Vec<_>>().into_iter().collect()
    })
}
