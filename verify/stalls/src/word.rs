//! Calls that can be stopped before any access, and go on later, all on one thread.
//!
//! A call that stops is unwound. When it goes on, it is made anew and given the answers that it had: only words are
//! shared, so it comes to the place where it stopped.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;

use baselines::Pause;
use nbbs::sync::{Ordering, Word};
use testkit::Block;

/// A word whose every access is a step.
#[derive(Debug, Default)]
pub struct Stepped(AtomicU64);

/// A change of the word at this address by a compare-and-swap.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub word: usize,
    pub from: u64,
    pub to: u64,
}

/// What is known about a call that has begun.
#[derive(Debug, Default)]
pub struct Past {
    /// For each step, the word's address, and its answer.
    answers: Vec<(usize, u64)>,
    /// The changes that it has made.
    pub changes: Vec<Change>,
    /// The blocks in the caches that it uses when it began.
    pub kept: Vec<Block>,
}

impl Past {
    /// Returns what is known about a call that is about to begin, beside these blocks in caches.
    pub fn beside(kept: Vec<Block>) -> Self {
        Self { kept, ..Self::default() }
    }
}

/// How far a call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop<R> {
    /// To its end.
    Done(R),
    /// Through all the steps that it was given.
    Steps,
    /// To a place where it waits for another lane.
    Waits,
}

/// The call that is being made.
#[derive(Default)]
struct Now {
    past: Past,
    /// The number of answers that it has been given again.
    again: usize,
    /// The number of steps that it may still take.
    left: u64,
    /// Whether it may go on later, and so keeps its answers.
    keeps: bool,
    /// Whether another lane may take a step when it waits.
    yields: bool,
    /// Whether it has taken a step since it was made anew: it does not stop again where it stopped before.
    is_fresh: bool,
}

/// The payload that unwinds a call that stops.
enum Unwound {
    Steps,
    Waits,
}

thread_local! {
    static NOW: RefCell<Option<Now>> = const { RefCell::new(None) };
}

/// Makes a call, or continues it, for at most `left` more steps, from which its steps are subtracted.
pub fn advance<R>(
    past: &mut Past,
    left: &mut u64,
    yields: bool,
    call: impl FnOnce() -> R,
) -> Stop<R> {
    let now = Now {
        past: std::mem::take(past),
        again: 0,
        left: *left,
        keeps: true,
        yields,
        is_fresh: false,
    };
    let (now, stop) = make(now, call);
    (*past, *left) = (now.past, now.left);
    stop
}

/// Makes an undisturbed call, and counts its steps. Returns `None` if there are more than `limit`.
pub fn alone<R>(limit: u64, call: impl FnOnce() -> R) -> Option<(R, u64)> {
    let now = Now { left: limit, ..Now::default() };
    match make(now, call) {
        (now, Stop::Done(result)) => Some((result, limit - now.left)),
        _ => None,
    }
}

fn make<R>(now: Now, call: impl FnOnce() -> R) -> (Now, Stop<R>) {
    NOW.set(Some(now));
    let outcome = catch_unwind(AssertUnwindSafe(call));
    let now = NOW.take().expect("it was set above");
    let stop = match outcome {
        Ok(result) => Stop::Done(result),
        Err(payload) => match payload.downcast_ref() {
            Some(Unwound::Steps) => Stop::Steps,
            Some(Unwound::Waits) => Stop::Waits,
            None => resume_unwind(payload),
        },
    };
    (now, stop)
}

/// Makes an access, and records its answer and change.
fn step(word: usize, access: impl FnOnce() -> (u64, Option<Change>)) -> u64 {
    let answer = NOW.with_borrow_mut(|now| {
        // Before and after a case lanes do not take turns.
        let Some(now) = now else { return Some(access().0) };
        if let Some(&(place, answer)) = now.past.answers.get(now.again) {
            assert_eq!(place, word, "a call that goes on does what it did");
            now.again += 1;
            return Some(answer);
        }
        now.left = now.left.checked_sub(1)?;
        let (answer, change) = access();
        if !now.keeps {
            return Some(answer);
        }
        now.past.answers.push((word, answer));
        now.again += 1;
        now.is_fresh = true;
        now.past.changes.extend(change);
        Some(answer)
    });
    answer.unwrap_or_else(|| resume_unwind(Box::new(Unwound::Steps)))
}

impl Stepped {
    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl Word for Stepped {
    fn load(&self, order: Ordering) -> u64 {
        step(self.place(), || (self.0.load(order), None))
    }

    fn store(&self, value: u64, order: Ordering) {
        step(self.place(), || {
            self.0.store(value, order);
            (value, None)
        });
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        let found =
            step(self.place(), || match self.0.compare_exchange(current, new, success, failure) {
                Ok(from) => (from, Some(Change { word: self.place(), from, to: new })),
                Err(found) => (found, None),
            });
        if found == current { Ok(found) } else { Err(found) }
    }
}

impl Pause for Stepped {
    fn pause() {
        let waits = |now: &Now| now.yields && now.is_fresh;
        if NOW.with_borrow(|now| now.as_ref().is_some_and(waits)) {
            resume_unwind(Box::new(Unwound::Waits));
        }
    }
}
