//! Runs every place at which lanes can stop.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use testkit::{Share, Violation};

use crate::aftermath::Steps;
use crate::case::{Case, Outcome, Turn};
use crate::scenes::Scenes;
use crate::subjects::{Kind, Subject};

/// The depth: how many of the places are tried.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// The stride among the places at which the second lane stops.
    pub stride: u64,
    /// The stride among the places at which the first lane stops.
    pub first: u64,
    /// Whether every order in which lanes go on is tried, for every pair of places.
    pub all_orders: bool,
    /// Which of the cases are tried.
    pub share: Share,
}

impl Depth {
    /// Returns the depth for an arena: in larger ones, and with caches, programs take more steps, and each run takes
    /// more time.
    pub fn of(self, kind: Kind, units: u64) -> Self {
        let is_whole = self.stride == 1;
        match kind {
            _ if is_whole => self,
            Kind::Caches => Self { stride: 21, first: 2, ..self },
            _ if units > 104 => Self { stride: 3 * self.stride, first: 6, ..self },
            _ => self,
        }
    }
}

/// The figures of what was run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// The number of runs in which a lane stopped for good in the middle of an operation.
    pub frozen: u64,
    /// The number of runs in which all lanes went on in the end.
    pub resumed: u64,
    /// The most steps that an operation took alone.
    pub steps: Steps,
}

/// A violation, and the case and script in which it occurred.
#[derive(Clone, Debug)]
pub struct Culprit {
    case: Case,
    script: Vec<Turn>,
    /// What went wrong.
    pub violation: Violation,
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { units, setup, lanes } = &self.case;
        write!(
            f,
            "{}\n  {units} units, before: {setup:?}\n  lanes: {lanes:?}\n  turns:",
            self.violation
        )?;
        for turn in &self.script {
            match *turn {
                Turn::Steps(lane, steps) => write!(f, " lane {lane} x {steps};")?,
                Turn::Last(lane, steps) => write!(f, " lane {lane} x {steps}, then never again;")?,
                Turn::Rest(lane) => write!(f, " lane {lane} to its end;")?,
                Turn::Alternate(one, two) => write!(f, " lanes {one} and {two} in turn;")?,
            }
        }
        Ok(())
    }
}

/// Runs every case of a subject in an arena of `units` units, on two threads.
///
/// # Errors
/// The first violation of the kind that is looked for; others are ignored.
pub fn run(
    subject: &Subject,
    units: u64,
    scenes: &Scenes,
    depth: Depth,
    looked_for: impl Fn(&Violation) -> bool + Copy + Sync,
) -> Result<Figures, Box<Culprit>> {
    let cases: Vec<(Case, usize)> = depth.share.of(scenes.cases(units)).collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(None));
    let work = || {
        let mut walk = Walk { subject, depth, looked_for, figures: Figures::default() };
        while let Some((case, program)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(culprit) = walk.case(case, *program) {
                next.store(cases.len(), Ordering::Relaxed);
                found.lock().expect("no thread panics").get_or_insert(culprit);
            }
        }
        walk.figures
    };
    let figures = thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.map(|thread| thread.join().expect("violations are values"))
    });
    if let Some(culprit) = found.into_inner().expect("no thread panics") {
        return Err(culprit);
    }
    Ok(figures.into_iter().sum())
}

impl std::iter::Sum for Figures {
    fn sum<I: Iterator<Item = Self>>(figures: I) -> Self {
        figures.fold(Self::default(), |sum, figures| Self {
            frozen: sum.frozen + figures.frozen,
            resumed: sum.resumed + figures.resumed,
            steps: sum.steps.max(figures.steps),
        })
    }
}

struct Walk<'a, L> {
    subject: &'a Subject,
    depth: Depth,
    looked_for: L,
    figures: Figures,
}

impl<L: Fn(&Violation) -> bool> Walk<'_, L> {
    /// Runs a case: the second lane stops after every step of its program, then the first after every step of its own,
    /// for good or for long.
    fn case(&mut self, case: &Case, program: usize) -> Result<(), Box<Culprit>> {
        let steps = match case.steps_of(self.subject.fresh, 1, program) {
            Ok(steps) => steps,
            Err(violation) if !(self.looked_for)(&violation) => return Ok(()),
            Err(violation) => {
                return Err(Box::new(Culprit {
                    case: case.clone(),
                    script: Vec::new(),
                    violation,
                }));
            }
        };
        // A lane that goes on late does nothing that would hide what it did.
        let mut short = case.clone();
        short.lanes[1].truncate(program);
        short.lanes[2].truncate(1);
        for second in (0..=steps).step_by(self.depth.stride as usize) {
            for first in
                (second / self.depth.stride % self.depth.first..).step_by(self.depth.first as usize)
            {
                let mut stopped = false;
                for order in 0..3 {
                    if self.depth.all_orders || (first + second) % 3 == order {
                        stopped |= self.freeze(case, first, second, order)?;
                    }
                }
                if !stopped {
                    break;
                }
                self.resume(&short, first, second)?;
            }
        }
        Ok(())
    }

    /// Stops the first lane for good. Returns `false` if it was done before.
    fn freeze(
        &mut self,
        case: &Case,
        first: u64,
        second: u64,
        order: u64,
    ) -> Result<bool, Box<Culprit>> {
        let mut script = vec![Turn::Steps(1, second), Turn::Last(0, first)];
        match order {
            0 => script.extend([Turn::Rest(2), Turn::Rest(1)]),
            1 => script.extend([Turn::Rest(1), Turn::Rest(2)]),
            _ => script.push(Turn::Alternate(2, 1)),
        }
        // Nothing can be said about a run that went wrong in another way.
        let Some(outcome) = self.run(case, script)? else { return Ok(true) };
        self.figures.frozen += u64::from(outcome.frozen);
        Ok(outcome.stopped)
    }

    /// Lets both lanes go on in the end, in the order in which they stopped or the other order.
    fn resume(&mut self, case: &Case, first: u64, second: u64) -> Result<(), Box<Culprit>> {
        let stops = [
            [Turn::Steps(1, second), Turn::Steps(0, first)],
            [Turn::Steps(0, first), Turn::Steps(1, second)],
        ];
        for (number, stops) in stops.into_iter().enumerate() {
            for last in 0..2 {
                if !self.depth.all_orders && (first + second) % 4 != 2 * last + number as u64 {
                    continue;
                }
                let ends =
                    [Turn::Rest(2), Turn::Rest(1 - last as usize), Turn::Rest(last as usize)];
                self.run(case, [&stops[..], &ends].concat())?;
                self.figures.resumed += 1;
            }
        }
        Ok(())
    }

    /// Runs a script. Returns `None` if something went wrong that is not looked for.
    fn run(&mut self, case: &Case, script: Vec<Turn>) -> Result<Option<Outcome>, Box<Culprit>> {
        match case.run(self.subject.fresh, &script) {
            Ok(outcome) => {
                self.figures.steps = self.figures.steps.max(outcome.steps);
                Ok(Some(outcome))
            }
            Err(violation) if !(self.looked_for)(&violation) => Ok(None),
            Err(violation) => Err(Box::new(Culprit { case: case.clone(), script, violation })),
        }
    }
}
