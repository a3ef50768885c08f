//! Calls that can be stopped before any access, and go on later, all on one thread.
//!
//! A call that stops is unwound. When it goes on, it is made anew and given the answers that it had: nothing but words
//! is shared, so it comes to where it stopped.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;

use baselines::Pause;
use nbbs::sync::{Ordering, Word};

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

/// What is known of a call that has begun.
#[derive(Debug, Default)]
pub struct Past {
    /// By step: the word's address, and what it answered.
    answers: Vec<(usize, u64)>,
    /// What it has changed.
    pub changes: Vec<Change>,
}

/// How far a call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop<R> {
    /// To its end.
    Done(R),
    /// It has taken all the steps that it was given.
    Steps,
    /// It waits for somebody else.
    Waits,
}

/// The call that is being made.
#[derive(Default)]
struct Now {
    past: Past,
    /// How many of its answers it has been given again.
    again: usize,
    /// Steps that it may still take.
    left: u64,
    /// Whether it may go on later, and so keeps its answers.
    keeps: bool,
    /// Whether somebody else may take a step where it waits.
    yields: bool,
    /// Whether it has taken a step since it was made anew: it does not stop where it has stopped already.
    is_fresh: bool,
}

/// What unwinds a call that stops.
enum Unwound {
    Steps,
    Waits,
}

thread_local! {
    static NOW: RefCell<Option<Now>> = const { RefCell::new(None) };
}

/// Makes a call, or goes on with it, for at most `left` more steps, which become fewer as it takes them.
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

/// Makes a call that nobody is in the way of, and counts its steps: `None` if there are more than `limit`.
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

/// An access: answers what `access` does, and what it changed.
fn step(word: usize, access: impl FnOnce() -> (u64, Option<Change>)) -> u64 {
    let answer = NOW.with_borrow_mut(|now| {
        // Before and after a case nobody takes turns.
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
