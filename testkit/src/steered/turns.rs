//! Threads that take turns on [`Steered`](super::Steered) words; a director says whose turn it is.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::{die, on_threads, steer, survive};
use crate::Violation;
use crate::program::Body;

/// Says who takes the next step.
pub(super) trait Director: Send {
    /// One of `ready`, which are the lanes that are not done; `running` took the last step, unless it is
    /// done.
    fn next(&mut self, running: Option<usize>, ready: &[usize]) -> usize;

    /// Whether the lane takes no further step. It is only [told](Self::next) to go on when all others are
    /// done or wait for it, and is ended then.
    fn stands_still(&self, _lane: usize) -> bool {
        false
    }
}

/// So many steps and no end: some thread waits for another that is never told to go on.
const TOO_MANY: u64 = 100_000;

type Hook = Box<dyn FnMut()>;

thread_local! {
    static PAUSE: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// To be called by a thread that waits for another, between two looks: another thread gets a turn.
pub fn pause() {
    PAUSE.with_borrow_mut(|hook| match hook {
        Some(hook) => hook(),
        None => thread::yield_now(),
    });
}

/// Calls each body on a thread of its own, one at a time; returns the director.
pub(super) fn take_turns<D: Director + 'static>(
    mut director: D,
    bodies: Vec<Body<'_>>,
) -> (D, Result<(), Violation>) {
    let ready: Vec<usize> = (0..bodies.len()).collect();
    let turn = director.next(None, &ready);
    let state = State {
        director,
        turn,
        resting: ready.iter().copied().filter(|&lane| lane != turn).collect(),
        started: vec![false; ready.len()],
        ready,
        steps: 0,
    };
    let turns = Turns {
        state: Mutex::new(state),
        changed: bodies.iter().map(|_| Condvar::new()).collect(),
    };
    let turns = Arc::new(turns);
    let bodies = bodies.into_iter().enumerate().map(|(lane, body)| -> Body<'_> {
        let turns = Arc::clone(&turns);
        Box::new(move || turns.live(lane, body))
    });
    let result = on_threads(bodies.collect());
    let turns = Arc::into_inner(turns).expect("all threads are joined");
    let state = turns.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    (state.director, result)
}

struct Turns<D> {
    state: Mutex<State<D>>,
    /// By lane: its turn may have come.
    changed: Box<[Condvar]>,
}

struct State<D> {
    director: D,
    turn: usize,
    /// The lanes that are not done.
    ready: Vec<usize>,
    /// The same without the running one, longest at rest first.
    resting: Vec<usize>,
    /// By lane: whether it has taken a step.
    started: Vec<bool>,
    steps: u64,
}

impl<D: Director + 'static> Turns<D> {
    fn live(self: Arc<Self>, lane: usize, body: Body<'_>) -> Result<(), Violation> {
        struct Leave<D: Director + 'static>(Arc<Turns<D>>, usize);
        impl<D: Director + 'static> Drop for Leave<D> {
            fn drop(&mut self) {
                PAUSE.take();
                self.0.leave(self.1);
            }
        }
        self.wait(self.state(), lane);
        let _leave = Leave(Arc::clone(&self), lane);
        let (stepping, pausing) = (Arc::clone(&self), Arc::clone(&self));
        PAUSE.set(Some(Box::new(move || pausing.rest(lane))));
        survive(|| steer(move || stepping.step(lane), body)).unwrap_or_else(|| {
            let frozen = self.state().director.stands_still(lane);
            if frozen { Ok(()) } else { Err(Violation::Stuck { lane, steps: TOO_MANY }) }
        })
    }

    fn step(&self, lane: usize) {
        let mut state = self.state();
        state.steps += 1;
        if state.steps >= TOO_MANY {
            drop(state);
            die();
        }
        // A lane that begins was told to take this step.
        if std::mem::replace(&mut state.started[lane], true) {
            let State { director, ready, .. } = &mut *state;
            let next = director.next(Some(lane), ready);
            self.hand_over(state, lane, next);
            state = self.state();
        }
        if state.director.stands_still(lane) {
            drop(state);
            die();
        }
    }

    /// Whoever has rested longest goes on: no director can make threads wait for each other forever.
    fn rest(&self, lane: usize) {
        let state = self.state();
        let next = state.resting.first().copied().unwrap_or(lane);
        self.hand_over(state, lane, next);
    }

    fn hand_over(&self, mut state: MutexGuard<'_, State<D>>, lane: usize, next: usize) {
        if next != lane {
            state.resting.retain(|&other| other != next);
            state.resting.push(lane);
            state.turn = next;
            self.changed[next].notify_one();
            self.wait(state, lane);
        }
    }

    fn leave(&self, lane: usize) {
        let mut state = self.state();
        state.ready.retain(|&other| other != lane);
        if !state.ready.is_empty() {
            let State { director, ready, .. } = &mut *state;
            let next = director.next(None, ready);
            state.resting.retain(|&other| other != next);
            state.turn = next;
            self.changed[next].notify_one();
        }
    }

    fn wait(&self, mut state: MutexGuard<'_, State<D>>, lane: usize) {
        while state.turn != lane {
            state = self.changed[lane].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State<D>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
