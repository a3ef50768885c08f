//! Records each call, when it was made and its answer, and checks whether one thread alone could have got the same
//! answers.
//!
//! [`Recorder`] stands in front of an allocator and records each call. A [`History`] is then checked against the
//! [`Spec`](crate::Spec):
//!
//! - [`History::check`]: there is an order of the calls in which every grant, every free and every refused free is
//!   right, and in which a call that returned before another began comes first. Each refusal of an allocation is
//!   *honest*: at one instant of its call every block of the order was in use, or in the hands of an allocation or a
//!   free that had not returned.
//! - [`History::is_linearizable`]: the same with every refused allocation in that order, too, at a point where no block
//!   of its order is free. This is more than the allocator promises: an allocation that claims a block, finds the area
//!   taken by a larger one, and undoes its claim, hides the block from others for a moment.

mod honest;
mod order;

use std::fmt;
use std::sync::{Mutex, PoisonError};

use nbbs::sync::{AtomicU64, Ordering};

use crate::program::{Body, Op, Race};
use crate::{BackEnd, Block, Violation};

/// A request, and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A block was asked for, and granted.
    Granted(Block),
    /// A block of this order was asked for, and refused.
    Refused(u32),
    /// A block was freed.
    Freed(Block),
    /// The free of a block was refused.
    NotFreed(Block),
}

/// A call: a request, its answer, and the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The caller's lane.
    pub lane: usize,
    /// When it was made. All times are different.
    pub start: u64,
    /// When it returned.
    pub end: u64,
    /// What happened.
    pub answer: Answer,
}

/// A history: all calls, in the order of their beginnings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    units: u64,
    calls: Vec<Call>,
}

/// A fault: something that no sequential buddy explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No order of the calls makes all answers right.
    Unordered(History),
    /// An allocation was refused although this block was free and in no operation's hands all the time.
    Dishonest(Call, Block, History),
}

/// The most calls of a history that can be checked.
pub const MAX_CALLS: usize = 128;

impl History {
    /// Creates the history of an arena of `units` units from its calls, in any order.
    ///
    /// # Panics
    /// If there are more than [`MAX_CALLS`].
    #[must_use]
    pub fn new(units: u64, mut calls: Vec<Call>) -> Self {
        assert!(calls.len() <= MAX_CALLS, "{} calls are too many", calls.len());
        calls.sort_unstable_by_key(|call| call.start);
        Self { units, calls }
    }

    /// Returns the calls, in the order of their beginnings.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Checks the history against the allocator's promises; see [the module](self).
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), Fault> {
        self.check_refusals_of(|_| true)
    }

    /// Checks the history as [`check`](Self::check) does, but only the refusals of these lanes. Others may be refused
    /// what a cache keeps.
    ///
    /// # Errors
    /// The first fault.
    pub fn check_refusals_of(&self, lanes: impl Fn(usize) -> bool) -> Result<(), Fault> {
        let ordered =
            order::find(self.units, &self.calls, |answer| !matches!(answer, Answer::Refused(_)));
        if !ordered {
            return Err(Fault::Unordered(self.clone()));
        }
        for &call in self.calls.iter().filter(|call| lanes(call.lane)) {
            if let Some(witness) = honest::witness_against(self.units, &self.calls, call) {
                return Err(Fault::Dishonest(call, witness, self.clone()));
            }
        }
        Ok(())
    }

    /// Returns whether a unit was granted while it was held: no order of all grants and frees is right.
    #[must_use]
    pub fn grants_twice(&self) -> bool {
        let counts = |answer: &Answer| matches!(answer, Answer::Granted(_) | Answer::Freed(_));
        !order::find(self.units, &self.calls, counts)
    }

    /// Returns whether there is an order in which every answer is right, including refused allocations.
    #[must_use]
    pub fn is_linearizable(&self) -> bool {
        order::find(self.units, &self.calls, |_| true)
    }
}

/// An allocator that passes every operation on to another and records it.
///
/// ```
/// use testkit::{BackEnd, history::Recorder};
///
/// let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// let recorder = Recorder::new(nbbs::Buddy::new(metadata.words(), 64)?, 1);
/// let block = recorder.alloc(0, 6).expect("the whole arena");
/// assert_eq!(recorder.alloc(0, 0), None);
/// recorder.free(0, block, 6)?;
/// let history = recorder.history();
/// assert!(history.check().is_ok() && history.is_linearizable());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Recorder<B> {
    back_end: B,
    clock: AtomicU64,
    /// The calls by lane, so that threads on different lanes do not wait for each other.
    calls: Box<[Mutex<Vec<Call>>]>,
}

impl<B: BackEnd> Recorder<B> {
    /// Wraps an allocator of which nothing is held, for callers on `lanes` lanes.
    pub fn new(back_end: B, lanes: usize) -> Self {
        let calls = (0..lanes).map(|_| Mutex::default()).collect();
        Self { back_end, clock: AtomicU64::new(0), calls }
    }

    /// Returns the recorded history.
    ///
    /// # Panics
    /// If there were more than [`MAX_CALLS`] calls.
    pub fn history(&self) -> History {
        let of_lane =
            |calls: &Mutex<Vec<Call>>| calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        History::new(self.back_end.units(), self.calls.iter().flat_map(of_lane).collect())
    }

    fn now(&self) -> u64 {
        // SeqCst: the times agree with the order of events.
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn note(&self, lane: usize, start: u64, answer: Answer) {
        let call = Call { lane, start, end: self.now(), answer };
        let calls = &self.calls[lane % self.calls.len()];
        calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

impl<B: BackEnd> BackEnd for Recorder<B> {
    fn units(&self) -> u64 {
        self.back_end.units()
    }

    fn max_order(&self) -> u32 {
        self.back_end.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.back_end.metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        let start = self.now();
        let index = self.back_end.alloc(lane, order);
        let answer =
            index.map_or(Answer::Refused(order), |index| Answer::Granted(Block { index, order }));
        self.note(lane, start, answer);
        index
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        let (block, start) = (Block { index, order }, self.now());
        let result = self.back_end.free(lane, index, order);
        let freed = result.is_ok();
        self.note(lane, start, if freed { Answer::Freed(block) } else { Answer::NotFreed(block) });
        result
    }
}

/// Runs a race of `Alloc`, `Free` and `FreeSized` on a fresh allocator and records it, without another judge.
/// `together` is as in [`race`](crate::program::race).
///
/// # Errors
/// The error of `together`.
///
/// # Panics
/// If the race has other operations, or more than [`MAX_CALLS`] calls.
pub fn record<B: BackEnd>(
    race: &Race,
    back_end: &B,
    together: impl FnOnce(Vec<Body<'_>>) -> Result<(), Violation>,
) -> Result<History, Violation> {
    let in_setup = race.setup.steps.iter().map(|step| step.lane + 1).max();
    let lanes = race.lanes.len().max(in_setup.unwrap_or(0));
    let recorder = Recorder::new(back_end, lanes);
    let mut held = vec![Vec::new(); lanes];
    for step in &race.setup.steps {
        perform(&recorder, step.lane, &step.op, &mut held[step.lane]);
    }
    let bodies =
        held.iter_mut().zip(&race.lanes).enumerate().map(|(lane, (held, ops))| -> Body<'_> {
            let recorder = &recorder;
            Box::new(move || {
                ops.iter().for_each(|op| perform(recorder, lane, op, held));
                Ok(())
            })
        });
    together(bodies.collect())?;
    Ok(recorder.history())
}

fn perform<B: BackEnd>(back_end: &B, lane: usize, op: &Op, held: &mut Vec<Block>) {
    match *op {
        Op::Alloc { order } => {
            held.extend(back_end.alloc(lane, order).map(|index| Block { index, order }));
        }
        Op::Free { .. } | Op::FreeSized { .. } if held.is_empty() => {}
        Op::Free { pick } | Op::FreeSized { pick } => {
            let block = held.remove(pick % held.len());
            // A refused free is recorded in the history.
            let _ = back_end.free(lane, block.index, block.order);
        }
        ref other => panic!("not every allocator can do {other:?}"),
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>3} to {:>3}, lane {}: ", self.start, self.end, self.lane)?;
        match self.answer {
            Answer::Granted(block) => write!(f, "was granted the {block}"),
            Answer::Refused(order) => write!(f, "was refused order {order}"),
            Answer::Freed(block) => write!(f, "freed the {block}"),
            Answer::NotFreed(block) => write!(f, "could not free the {block}"),
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.calls.iter().try_for_each(|call| writeln!(f, "  {call}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unordered(history) => write!(f, "no order explains these calls:\n{history}"),
            Self::Dishonest(call, witness, history) => {
                write!(
                    f,
                    "the {witness} was free at every instant of the call\n  {call}\nin\n{history}"
                )
            }
        }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests;
