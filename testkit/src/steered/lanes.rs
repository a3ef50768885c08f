//! Lanes that take turns: each runs its body as a thread would, on a stack of its own. But all of them run on the
//! calling thread, so a turn does not need the operating system.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::thread;

use generator::{Generator, Gn};

use super::{Place, STEER, called, die, survive, with_hook};
use crate::Violation;
use crate::program::Body;

/// The policy that says whose turn it is.
pub(super) trait Turns {
    /// Returns the lane that takes the next step, which `lane` is about to take. `None` means that the lane dies.
    fn next(&mut self, lane: usize) -> Option<usize>;

    /// Returns whether the lane takes its step, now that its turn has come; otherwise it dies.
    fn takes(&self, _lane: usize) -> bool {
        true
    }

    /// Returns the lane that goes on while `lane` waits for another.
    fn rests(&mut self, lane: usize) -> usize;

    /// Returns the lane that goes on after `lane`, which is done. `None` means that all are done.
    fn leaves(&mut self, lane: usize) -> Option<usize>;

    /// Returns what the death of a lane means.
    fn death(&self, lane: usize) -> Result<(), Violation>;
}

/// The size of a stack in words. It is enough for the message of a panic.
const STACK: usize = 256 * 1024 / size_of::<usize>();

/// What a lane yields: nothing when its turn is over, or how it ended, if it did not die.
type Said = Option<Option<Result<(), Violation>>>;

type Lane = Generator<'static, (), Said>;

thread_local! {
    /// By lane, before which of its next steps it dies.
    static DEATHS: RefCell<HashMap<usize, u64>> = RefCell::default();
    static PAUSE: Place = const { RefCell::new(None) };
    /// Lanes that are done, for reuse: a new stack takes longer than most schedules.
    static IDLE: RefCell<Vec<Lane>> = const { RefCell::new(Vec::new()) };
}

/// Gives another thread a turn. Must be called by a thread that waits for another, between two reads.
pub fn pause() {
    if !called(&PAUSE) {
        thread::yield_now();
    }
}

/// Calls `body` in lane `lane`, which is the caller's own, and ends it before its step number `step`, as a crash would.
/// Returns `None` if it died. [`die_before`](super::die_before) does the same without lanes.
///
/// ```
/// use testkit::{program::{Arena, Body}, steered::{Steered, die_within, follow}};
///
/// let arena = Arena::<Steered>::new(64);
/// let body: Body = Box::new(|| {
///     assert!(die_within(0, 1, || arena.buddy().alloc(0)).is_none());
///     assert!(die_within(0, 1000, || arena.buddy().alloc(0)).is_some());
///     Ok(())
/// });
/// follow(&[], vec![body])?;
/// # Ok::<(), testkit::Violation>(())
/// ```
pub fn die_within<R>(lane: usize, step: u64, body: impl FnOnce() -> R) -> Option<R> {
    DEATHS.with_borrow_mut(|deaths| deaths.insert(lane, step));
    let ended = survive(body);
    DEATHS.with_borrow_mut(|deaths| deaths.remove(&lane));
    ended
}

/// Returns whether a lane is to die before its next step, once only: unwinding takes steps, too.
fn is_due(lane: usize) -> bool {
    DEATHS.with_borrow_mut(|deaths| {
        let Some(left) = deaths.get_mut(&lane) else { return false };
        match left.checked_sub(1) {
            Some(less) => *left = less,
            None => return deaths.remove(&lane).is_some(),
        }
        false
    })
}

/// Calls each body in a lane of its own, one at a time, beginning with `first`. Returns the policy.
///
/// # Errors
/// The error of the first body, in their order, that failed, panicked or died.
pub(super) fn take_turns<T: Turns + 'static>(
    turns: T,
    first: usize,
    bodies: Vec<Body<'_>>,
) -> (T, Result<(), Violation>) {
    let table = Rc::new(Table { turns: RefCell::new(turns), turn: Cell::new(first) });
    let (stepping, pausing) = (Rc::clone(&table), Rc::clone(&table));
    let run = || with_hook(&STEER, move || stepping.step(), || table.run(bodies));
    let result = with_hook(&PAUSE, move || pausing.rest(), run);
    let table = Rc::into_inner(table).expect("all lanes are done");
    (table.turns.into_inner(), result)
}

struct Table<T> {
    turns: RefCell<T>,
    turn: Cell<usize>,
}

impl<T: Turns> Table<T> {
    fn run(&self, bodies: Vec<Body<'_>>) -> Result<(), Violation> {
        let mut results: Vec<_> = bodies.iter().map(|_| Ok(())).collect();
        let mut lanes: Vec<_> = bodies.into_iter().map(lane_of).collect();
        let mut left = lanes.len();
        while left > 0 {
            let lane = self.turn.get();
            let Some(end) = lanes[lane].resume().flatten() else { continue };
            results[lane] = end.unwrap_or_else(|| self.turns.borrow().death(lane));
            self.turns.borrow_mut().leaves(lane).inspect(|&next| self.turn.set(next));
            left -= 1;
        }
        IDLE.with_borrow_mut(|idle| idle.append(&mut lanes));
        results.into_iter().collect()
    }

    /// Called before a step of the running lane.
    fn step(&self) {
        let lane = self.turn.get();
        let next = self.turns.borrow_mut().next(lane);
        self.hand_over(lane, next.unwrap_or_else(|| die()));
        if !self.turns.borrow().takes(lane) || is_due(lane) {
            die();
        }
    }

    fn rest(&self) {
        let lane = self.turn.get();
        let next = self.turns.borrow_mut().rests(lane);
        self.hand_over(lane, next);
    }

    fn hand_over(&self, lane: usize, next: usize) {
        if next != lane {
            self.turn.set(next);
            // The hook is too far from the lane's beginning to receive its scope.
            #[expect(deprecated)]
            generator::yield_with::<Said>(None);
        }
    }
}

/// Creates a lane that is done, or dropped, before what `body` borrows ends.
fn lane_of(body: Body<'_>) -> Lane {
    // SAFETY: `run` returns when all lanes are done; if it panics, it drops them, which unwinds or forgets them.
    // No body is used after that.
    #[expect(unsafe_code)]
    let body = unsafe { std::mem::transmute::<Body<'_>, Body<'static>>(body) };
    let judged = move || {
        let ended = catch_unwind(AssertUnwindSafe(|| survive(body)));
        Some(ended.unwrap_or_else(|payload| Some(Err(Violation::from_panic(&*payload)))))
    };
    match IDLE.with_borrow_mut(Vec::pop) {
        Some(mut lane) => {
            lane.init_code(judged);
            lane
        }
        None => Gn::<()>::new_opt(STACK, judged),
    }
}
