//! Plays the part of a lane in a case.

use std::ops::Range;

use testkit::program::{Held, No, Op, RunOp};
use testkit::{Block, Oracle, Violation};

use crate::call::{Answer, Call, Cost};
use crate::system::System;
use crate::word::{Past, Stop, advance};

/// A lane, and what it holds.
pub struct Player<'a> {
    system: &'a dyn System,
    oracle: &'a Oracle,
    /// Its number.
    pub lane: usize,
    /// Its blocks and runs, in the order in which it got them, without what it is in the middle of changing.
    pub held: Vec<Held>,
    /// The ranges that it has reserved.
    pub reservations: Vec<Range<u64>>,
    /// The operations that are still to be done.
    todo: &'a [Op],
    /// The call that it is in the middle of.
    call: Option<(Call, Past)>,
}

impl<'a> Player<'a> {
    /// Creates a lane that holds nothing.
    pub fn new(system: &'a dyn System, oracle: &'a Oracle, lane: usize) -> Self {
        let (held, reservations) = (Vec::new(), Vec::new());
        Self { system, oracle, lane, held, reservations, todo: &[], call: None }
    }

    /// Gives it operations to do.
    pub fn set(&mut self, todo: &'a [Op]) {
        self.todo = todo;
    }

    /// Returns whether it has done everything.
    pub fn is_done(&self) -> bool {
        self.call.is_none() && self.todo.is_empty()
    }

    /// Returns whether it is in the middle of a call.
    pub fn is_busy(&self) -> bool {
        self.call.is_some()
    }

    /// Returns the call that it is in the middle of.
    pub fn call(&self) -> Option<&Call> {
        self.call.as_ref().map(|(call, _)| call)
    }

    /// Returns what is lost if it never goes on.
    pub fn cost(&self) -> Cost {
        let cost = |(call, past): &_| self.system.cost(self.oracle, call, past);
        self.call.as_ref().map_or_else(Cost::default, cost)
    }

    /// Takes up to `left` steps, and subtracts them.
    ///
    /// # Errors
    /// The first violation.
    pub fn advance(&mut self, left: &mut u64, yields: bool) -> Result<Stop<()>, Violation> {
        loop {
            if self.call.is_none() {
                let Some((op, todo)) = self.todo.split_first() else { return Ok(Stop::Done(())) };
                if *left == 0 {
                    return Ok(Stop::Steps);
                }
                self.todo = todo;
                let Some(call) = self.resolve(op) else { continue };
                self.begin(&call)?;
                let past = Past::beside(self.system.kept(self.lane, &call));
                self.call = Some((call, past));
            }
            let Some((call, past)) = &mut self.call else { continue };
            match advance(past, left, yields, || self.system.call(self.lane, call)) {
                Stop::Done(answer) => {
                    let call = self.call.take().map(|(call, _)| call);
                    call.map_or(Ok(()), |call| self.end(call, answer))?;
                }
                Stop::Steps => return Ok(Stop::Steps),
                Stop::Waits => return Ok(Stop::Waits),
            }
        }
    }

    /// Returns the call for an operation, if there is something that it can act on.
    fn resolve(&self, op: &Op) -> Option<Call> {
        let picked = |pick: usize| {
            let len = self.held.len();
            (len > 0).then(|| self.held[pick % len])
        };
        Some(match *op {
            Op::Alloc { order } => Call::Alloc(order),
            Op::FreeSized { pick } => match picked(pick)? {
                Held { index, len } if Block::of(index, len).is_some() => {
                    Call::FreeSized(Block { index, order: len.trailing_zeros() })
                }
                run => Call::Run(RunOp::Free { pick }, Some(run), Vec::new()),
            },
            Op::Free { pick } => Call::Free(picked(pick)?),
            Op::Reserve { start, end } => Call::Reserve(start..end),
            Op::Release { start, end } => {
                self.reservations.contains(&(start..end)).then_some(Call::Release(start..end))?
            }
            Op::Run(ref run) => self.resolve_run(run, picked)?,
            ref look => Call::Look(look.clone()),
        })
    }

    fn resolve_run(&self, op: &RunOp, picked: impl FnOnce(usize) -> Option<Held>) -> Option<Call> {
        match *op {
            RunOp::Free { pick }
            | RunOp::Shrink { pick, .. }
            | RunOp::Grow { pick, .. }
            | RunOp::SplitOff { pick, .. }
            | RunOp::Split { pick, .. }
            | RunOp::FreePart { pick, .. } => {
                let held = picked(pick)?;
                let possible = held.len > 1 || !matches!(op, RunOp::SplitOff { .. });
                possible.then(|| Call::Run(op.clone(), Some(held), Vec::new()))
            }
            RunOp::FreeBatch { order } => {
                let of_order =
                    |held: &&Held| held.len == 1 << order && held.index.is_multiple_of(held.len);
                let blocks = self.held.iter().filter(of_order).map(|held| held.index);
                Some(Call::Run(op.clone(), None, blocks.collect()))
            }
            _ => Some(Call::Run(op.clone(), None, Vec::new())),
        }
    }

    /// Records what happens before the first step of a call.
    fn begin(&mut self, call: &Call) -> Result<(), Violation> {
        for held in call.given() {
            self.forget(held);
            self.give(held)?;
        }
        if let Some(held) = call.changed() {
            self.forget(held);
            if !call.kept().is_empty() || !call.gap().is_empty() {
                // What is freed may become free at any time from now on; the rest stays with the lane.
                self.give(held)?;
                call.kept().into_iter().try_for_each(|part| self.take(part))?;
            }
        }
        if let Call::Release(range) = call {
            self.reservations.retain(|other| other != range);
            self.oracle.release(range.clone())?;
        }
        Ok(())
    }

    /// Records what happens after the last step of a call.
    fn end(&mut self, call: Call, answer: Answer) -> Result<(), Violation> {
        let wrong = |answer| Err(Violation::wrong(format!("{call:?}"), "something else", answer));
        match (&call, answer) {
            (Call::Alloc(order), Answer::Yes(index)) => {
                self.obtain(Held { index, len: 1 << order })
            }
            (Call::Reserve(range), Answer::Yes(_)) => {
                self.oracle.reserve(range.clone())?;
                self.reservations.push(range.clone());
                Ok(())
            }
            (Call::Alloc(_), Answer::No(No::Exhausted)) => Ok(()),
            (Call::Reserve(_), Answer::No(No::InUse(_))) => Ok(()),
            (Call::FreeSized(block), Answer::Wrong(reason)) => {
                Err(Violation::FreeRefused { block: *block, reason })
            }
            (Call::Run(RunOp::Batch { order, .. }, ..), Answer::Blocks(blocks)) => {
                let mut held = blocks.into_iter().map(|index| Held { index, len: 1 << order });
                held.try_for_each(|held| self.obtain(held))
            }
            (Call::Run(op, held, _), answer @ (Answer::Yes(_) | Answer::No(_))) => {
                if self.end_run(&call, op, *held, &answer)? { Ok(()) } else { wrong(answer) }
            }
            (
                Call::Free(_) | Call::FreeSized(_) | Call::Release(_) | Call::Look(_),
                Answer::Yes(_),
            ) => Ok(()),
            (_, answer) => wrong(answer),
        }
    }

    /// Ends an operation on a run. Returns `false` if the answer cannot be right, whatever the others do.
    fn end_run(
        &mut self,
        call: &Call,
        op: &RunOp,
        held: Option<Held>,
        answer: &Answer,
    ) -> Result<bool, Violation> {
        let mut nothing = Vec::new();
        let Some(ask) = call.ask(&mut nothing) else { return Ok(false) };
        match (op, held, answer) {
            (RunOp::Free { .. } | RunOp::FreeBatch { .. }, _, Answer::Yes(_)) => {}
            (RunOp::Grow { .. }, Some(held), Answer::Yes(_)) => {
                self.give(held)?;
                ask.parts().into_iter().try_for_each(|grown| self.obtain(grown))?;
            }
            (RunOp::Grow { .. }, Some(held), Answer::No(No::InUse(_) | No::Contended)) => {
                self.held.push(held);
            }
            (_, Some(_), Answer::Yes(_)) => self.held.extend(ask.parts()),
            (_, Some(held), Answer::No(No::Contended)) => {
                for part in ask.parts() {
                    self.give(part)?;
                }
                self.obtain(held)?;
            }
            (_, None, Answer::Yes(index)) => {
                let Some(len) = ask.wanted() else { return Ok(false) };
                self.obtain(Held { index: *index, len })?;
            }
            (_, None, Answer::No(No::Exhausted | No::InUse(_))) => {}
            (_, None, Answer::No(No::Nowhere)) => return Ok(!ask.has_place()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn forget(&mut self, held: Held) {
        self.held.retain(|&other| other != held);
    }

    fn obtain(&mut self, held: Held) -> Result<(), Violation> {
        self.take(held)?;
        self.held.push(held);
        Ok(())
    }

    fn take(&self, Held { index, len }: Held) -> Result<(), Violation> {
        match Block::of(index, len) {
            Some(Block { order, .. }) => self.oracle.take(self.lane, index, order).map(|_| ()),
            None => {
                let mut units = index..index + len;
                units.try_for_each(|unit| self.oracle.take(self.lane, unit, 0).map(|_| ()))
            }
        }
    }

    fn give(&self, Held { index, len }: Held) -> Result<(), Violation> {
        match Block::of(index, len) {
            Some(block) => self.oracle.give(block),
            None => {
                let mut units = index..index + len;
                units.try_for_each(|index| self.oracle.give(Block { index, order: 0 }))
            }
        }
    }
}
