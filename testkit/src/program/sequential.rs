//! Runs a program step by step.

use std::fmt;

use super::judged::{Judged, MANY_BLOCKS, Summary};
use super::{Op, Program, Step, Subject};
use crate::Violation;

/// A failure: where a program went wrong, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The step, counted from 0, and its operation, or `None` for the clearing up at the end.
    pub step: Option<(usize, Step)>,
    /// What went wrong.
    pub violation: Violation,
}

/// Runs a program on a fresh subject, in the state that the program demands. Then drains what is free at every order,
/// returns everything, and checks that the arena is whole.
///
/// # Errors
/// The first answer that differs from the specification's.
pub fn run<S: Subject + ?Sized>(program: &Program, subject: &S) -> Result<Summary, Failure> {
    let mut judged = Judged::new(subject, program.units, program.reserved);
    judged.steps(&program.steps)?;
    judged.clear_up(MANY_BLOCKS).map_err(|violation| Failure { step: None, violation })?;
    Ok(judged.summary)
}

impl<S: Subject + ?Sized> Judged<'_, S> {
    pub fn steps(&mut self, steps: &[Step]) -> Result<(), Failure> {
        steps.iter().enumerate().try_for_each(|(number, step)| {
            let step_of = |violation| Failure { step: Some((number, step.clone())), violation };
            self.step(step).map_err(step_of)
        })
    }

    fn step(&mut self, Step { lane, op }: &Step) -> Result<(), Violation> {
        let lane = *lane;
        match *op {
            Op::Alloc { order } => {
                let block = self.alloc(lane, order)?;
                self.held.extend(block);
                Ok(())
            }
            Op::Free { pick } => match pick_from(&self.held, pick) {
                Some(block) => self.free(lane, block.index, None),
                None => Ok(()),
            },
            Op::FreeSized { pick } => match pick_from(&self.held, pick) {
                Some(block) => self.free(lane, block.index, Some(block.order)),
                None => Ok(()),
            },
            Op::FreeAgain => match self.last_freed {
                Some(block) => self.free(lane, block.index, None),
                None => Ok(()),
            },
            Op::FreeAt { index } => self.free(lane, index, None),
            Op::FreeSizedAt { index, order } => self.free(lane, index, Some(order)),
            Op::OrderOf { index } => self.order_of(index),
            Op::Reserve { start, end } => self.reserve(start..end),
            Op::Release { start, end } => self.release(start..end),
            Op::Drain { order } => self.drain(lane, order),
            Op::Inspect => self.subject.inspect(&self.spec),
            Op::Run(ref op) => self.run_op(lane, op),
            Op::Cache(_) => Ok(()),
        }
    }
}

/// Returns number `pick` of `held`, modulo its length.
pub(super) fn pick_from<T: Clone>(held: &[T], pick: usize) -> Option<T> {
    (!held.is_empty()).then(|| held[pick % held.len()].clone())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.step {
            Some((number, Step { lane, op })) => {
                write!(f, "step {number}, {op:?} on lane {lane}: {}", self.violation)
            }
            None => write!(f, "clearing up: {}", self.violation),
        }
    }
}

impl std::error::Error for Failure {}
