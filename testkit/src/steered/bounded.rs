//! Runs every schedule with few preemptions, one after the other.
//!
//! A thread is preempted if another takes the next step although it could go on. Most races need one or
//! two preemptions in the right places (Musuvathi and Qadeer, "Iterative context bounding for systematic
//! testing of multithreaded programs"), and there are few enough schedules with that many to run all.

use std::fmt;

use super::turns::{Director, take_turns};
use crate::Violation;
use crate::program::Body;

/// A function that runs a race once on fresh words: it calls its argument with the bodies of the lanes.
pub type Together<'t> = dyn FnMut(Vec<Body<'_>>) -> Result<(), Violation> + 't;

/// The schedule under which a race went wrong, and the number of schedules that it took to find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// The lane that took each step.
    pub lanes: Vec<usize>,
    /// The number of schedules run, including this one.
    pub schedules: u64,
    /// What went wrong.
    pub violation: Violation,
}

/// Runs a race under every schedule with at most this many preemptions, and returns how many there are. The race must
/// do the same whenever the schedule is the same.
///
/// Where a thread [pauses](super::pause) because it waits for another, the one that has rested longest
/// goes on, and nothing else is tried.
///
/// # Errors
/// The first violation.
pub fn all_schedules(
    preemptions: u32,
    race: impl Fn(&mut Together<'_>) -> Result<(), Violation>,
) -> Result<u64, Box<Culprit>> {
    let mut walk = Walk { preemptions, ..Walk::default() };
    for schedules in 1.. {
        let result = race(&mut |bodies| {
            let result;
            (walk, result) = take_turns(std::mem::take(&mut walk), bodies);
            result
        });
        if let Err(violation) = result {
            let lanes = walk.steps.iter().map(|step| step.tried[step.tried.len() - 1]).collect();
            return Err(Box::new(Culprit { lanes, schedules, violation }));
        }
        if !walk.turn_back() {
            return Ok(schedules);
        }
    }
    unreachable!("a count of schedules ends before 2^64")
}

/// A walk through the tree of schedules, depth first.
#[derive(Debug, Default)]
struct Walk {
    preemptions: u32,
    /// The path from the root to the current place.
    steps: Vec<Step>,
    /// The number of steps of the running schedule so far.
    taken: usize,
    /// The number of preemptions in these steps.
    preempted: u32,
}

/// A point at which a lane takes a step.
#[derive(Debug)]
struct Step {
    /// The lanes that took it in the schedules so far; the last one takes it in the running schedule.
    tried: Vec<usize>,
    /// The lanes that take it in schedules to come.
    open: Vec<usize>,
}

impl Director for Walk {
    fn next(&mut self, running: Option<usize>, ready: &[usize]) -> usize {
        if self.taken == self.steps.len() {
            self.steps.push(self.new_step(running, ready));
        }
        let tried = &self.steps[self.taken].tried;
        let lane = tried[tried.len() - 1];
        self.taken += 1;
        self.preempted += u32::from(running.is_some_and(|running| running != lane));
        lane
    }
}

impl Walk {
    fn new_step(&self, running: Option<usize>, ready: &[usize]) -> Step {
        let first = running.unwrap_or(ready[0]);
        let may_switch = running.is_none() || self.preempted < self.preemptions;
        let others = ready.iter().rev().copied().filter(|&lane| may_switch && lane != first);
        Step { tried: vec![first], open: others.collect() }
    }

    /// Goes back to the last point at which another lane could go on. Returns `false` if there is none left.
    fn turn_back(&mut self) -> bool {
        (self.taken, self.preempted) = (0, 0);
        while let Some(mut step) = self.steps.pop() {
            if let Some(lane) = step.open.pop() {
                step.tried.push(lane);
                self.steps.push(step);
                return true;
            }
        }
        false
    }
}

impl fmt::Display for Culprit {
    /// Prints the schedule as turns: lane and number of steps.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (schedule {}:", self.violation, self.schedules)?;
        for turn in self.lanes.chunk_by(|a, b| a == b) {
            write!(f, " lane {} x {}", turn[0], turn.len())?;
        }
        write!(f, ")")
    }
}

impl std::error::Error for Culprit {}
