//! Runs a race under many schedules.

use std::fmt;

use super::{Schedule, Steered};
use crate::Violation;
use crate::program::{Arena, LaneReport, Race, race};

/// The schedule under which a race went wrong: [`replay`] repeats it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The schedule.
    pub schedule: Schedule,
    /// What went wrong.
    pub violation: Violation,
}

/// Runs a race on fresh arenas under `schedules` schedules, with 0 to 4 stalls in turn.
///
/// # Errors
/// The first violation, and the schedule that led to it.
pub fn explore(of: &Race, schedules: u64, seed: u64) -> Result<(), Found> {
    explore_with(of, schedules, seed, |_| Ok(()))
}

/// Does the same as [`explore`], and also judges what the lanes report of each run.
///
/// # Errors
/// The first violation, and the schedule that led to it.
pub fn explore_with(
    of: &Race,
    schedules: u64,
    seed: u64,
    judge: impl Fn(&[LaneReport]) -> Result<(), Violation>,
) -> Result<(), Found> {
    let mut steps = 100;
    for number in 0..schedules {
        let schedule = Schedule { seed: seed ^ number, stalls: number as u32 % 5, steps };
        let (taken, result) = replay(of, schedule);
        let verdict = result.and_then(|reports| judge(&reports));
        verdict.map_err(|violation| Found { schedule, violation })?;
        // The stalls are spread over the length of the longest run so far.
        steps = if number == 0 { taken } else { steps.max(taken) };
    }
    Ok(())
}

/// Runs a race under one schedule. Also returns the number of steps that it took.
pub fn replay(of: &Race, schedule: Schedule) -> (u64, Result<Vec<LaneReport>, Violation>) {
    let arena = Arena::<Steered>::new(of.setup.units);
    let buddy = if of.setup.reserved { arena.all_reserved() } else { arena.buddy() };
    let mut steps = 0;
    let result = race(of, &buddy, |bodies| {
        steps = schedule.run(bodies)?;
        Ok(())
    });
    (steps, result)
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (under {:?})", self.violation, self.schedule)
    }
}

impl std::error::Error for Found {}
