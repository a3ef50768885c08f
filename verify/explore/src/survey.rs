//! Chooses the programs to run, and collects the results.

use std::fmt;
use std::rc::Rc;

use fastrand::Rng;

use crate::calls::Call;
use crate::explore::Scene;
use crate::scenes::{self, Plan};
use crate::search::{Finding, MOST_LANES, Seen};
use crate::tell;
use crate::word::Form;

/// The most preemptions of a schedule.
const PREEMPTIONS: u8 = 3;

/// The options of the command line.
#[derive(Debug, Default)]
pub struct Options {
    pub long: bool,
    /// Whether to end with the first finding.
    pub first: bool,
    /// Whether to search once more without reductions, and compare the ends.
    pub compare: bool,
    pub seed: u64,
    /// Run one in this many programs of the usual share.
    pub thin: u64,
    /// Texts that programs to run must have in their names. If there are any, all such programs run, not a share.
    pub only: Vec<String>,
    /// Whether to run triples of these instead of pairs.
    pub triples: bool,
}

/// The share of programs to run: one in this many.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub pairs: u64,
    pub triples: u64,
    /// Triples of a change beside two claims, which few schedules refuse at its last step.
    pub changes: u64,
}

/// The figures of a survey.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pairs: u64,
    triples: u64,
    schedules: u64,
    states: u64,
    capped: u64,
    compared: u64,
    found: u64,
}

/// Runs programs, one scene after the other.
pub struct Survey {
    pub options: Options,
    all: Figures,
}

/// The name of a program: the scene, and each lane's task.
struct Name<'a>(&'a str, &'a [Vec<Call>]);

impl Survey {
    /// Creates a survey that has run nothing yet.
    pub fn new(options: Options) -> Self {
        Self { options, all: Figures::default() }
    }

    /// Returns the figures so far.
    pub fn figures(&self) -> Figures {
        self.all
    }

    /// Runs programs in each scene of an arena of `units` units, and prints a line for each.
    pub fn run<F: Form>(&mut self, units: u64, share: Share) {
        for plan in scenes::plans(units, 1 << F::LEAF) {
            if self.is_over() {
                return;
            }
            let lanes = if units >> F::LANE < 2 { ", one lane" } else { "" };
            let title = format!("{}, {units} units, {} slots{lanes}", plan.name, 1 << F::FAN);
            let figures = self.scene::<F>(&title, units, &plan, share);
            if figures.programs() > 0 || figures.found > 0 {
                println!("{title}: {figures}");
            }
            self.all = self.all + figures;
        }
    }

    fn is_over(&self) -> bool {
        self.options.first && self.all.found > 0
    }

    /// Returns the number of states after which the search through a program ends.
    fn most_states(&self) -> u64 {
        if self.options.long || !self.options.only.is_empty() { 4_000_000 } else { 100_000 }
    }

    /// Runs programs in a scene, up to the first finding.
    fn scene<F: Form>(&self, title: &str, units: u64, plan: &Plan, share: Share) -> Figures {
        let mut figures = Figures::default();
        let scene = match Scene::<F>::new(units, &plan.calls, self.most_states()) {
            Ok(scene) => Rc::new(scene),
            Err(finding) => {
                report::<F>(title, units, &finding);
                figures.found += 1;
                return figures;
            }
        };
        for tasks in self.programs(title, units, &scene, share) {
            match scene.explore(&tasks, PREEMPTIONS) {
                Ok(seen) => {
                    figures.count(tasks.len(), seen);
                    if self.options.compare && !self.agrees(&scene, &tasks, seen, &mut figures) {
                        println!(
                            "FOUND {}: fewer ends than without reductions",
                            Name(title, &tasks)
                        );
                        figures.found += 1;
                    }
                }
                Err(finding) => {
                    report::<F>(&Name(title, &tasks).to_string(), units, &finding);
                    figures.found += 1;
                }
            }
            if figures.found > 0 {
                break;
            }
        }
        figures
    }

    /// Returns whether the program has the same ends without reductions, if both searches complete.
    fn agrees<F: Form>(
        &self,
        scene: &Rc<Scene<F>>,
        tasks: &[Vec<Call>],
        seen: Seen,
        figures: &mut Figures,
    ) -> bool {
        match scene.explore_in_full(tasks, PREEMPTIONS) {
            Ok(full) if full.capped || seen.capped => true,
            Ok(full) => {
                figures.compared += 1;
                (full.ends, full.sum) == (seen.ends, seen.sum)
            }
            Err(_) => false,
        }
    }

    /// Returns the programs to run in a scene.
    fn programs<F: Form>(
        &self,
        title: &str,
        units: u64,
        scene: &Scene<F>,
        share: Share,
    ) -> Vec<Vec<Vec<Call>>> {
        let menu =
            |lane| scenes::menu(scene.held(lane), scene.reservations(lane), units, 1 << F::LEAF);
        let menus: [_; MOST_LANES] = std::array::from_fn(menu);
        let mut random = Rng::with_seed(self.options.seed);
        let only = !self.options.only.is_empty();
        let (mut pairs, mut triples) = (Vec::new(), Vec::new());
        for one in &menus[0] {
            for two in &menus[1] {
                if only || random.u64(0..share.pairs) == 0 {
                    pairs.push(vec![one.clone(), two.clone()]);
                }
                for three in &menus[2] {
                    let is_change = one[0].is_change() && two[0].is_claim() && three[0].is_claim();
                    let of = if is_change { share.changes } else { share.triples };
                    if if only { self.options.triples } else { random.u64(0..of) == 0 } {
                        triples.push(vec![one.clone(), two.clone(), three.clone()]);
                    }
                }
            }
        }
        if only && self.options.triples {
            pairs.clear();
        }
        pairs.append(&mut triples);
        pairs.retain(|tasks| self.is_chosen(&Name(title, tasks)));
        pairs
    }

    /// Returns whether a program has all required texts in its name; blanks do not count.
    fn is_chosen(&self, name: &Name<'_>) -> bool {
        let only = &self.options.only;
        only.is_empty() || {
            let name = name.to_string().replace(' ', "");
            only.iter().all(|text| name.contains(&text.replace(' ', "")))
        }
    }
}

/// Prints a finding, and, to standard error, the schedule that led there.
fn report<F: Form>(name: &str, units: u64, finding: &Finding) {
    for line in tell::schedule::<F>(units, &finding.steps) {
        eprintln!("  {line}");
    }
    println!("FOUND {name}: {}", finding.violation);
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(scene, tasks) = self;
        let tasks: Vec<String> = tasks.iter().map(|task| format!("{task:?}")).collect();
        write!(f, "{scene}: {}", tasks.join(" | "))
    }
}

impl Figures {
    fn count(&mut self, lanes: usize, seen: Seen) {
        if lanes == 2 {
            self.pairs += 1;
        } else {
            self.triples += 1;
        }
        self.schedules += seen.schedules;
        self.states += seen.states;
        self.capped += u64::from(seen.capped);
    }

    /// Returns the number of programs that were run.
    pub fn programs(&self) -> u64 {
        self.pairs + self.triples
    }

    /// Violations.
    pub fn found(&self) -> u64 {
        self.found
    }
}

impl std::ops::Add for Figures {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            pairs: self.pairs + other.pairs,
            triples: self.triples + other.triples,
            schedules: self.schedules + other.schedules,
            states: self.states + other.states,
            capped: self.capped + other.capped,
            compared: self.compared + other.compared,
            found: self.found + other.found,
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pairs, triples, schedules, states, capped, compared, .. } = self;
        let programs = self.programs();
        write!(f, "{programs} programs, {schedules} schedules, {states} states")?;
        write!(f, " ({pairs} pairs, {triples} triples; {capped} not to the end")?;
        if *compared > 0 {
            write!(f, "; {compared} compared")?;
        }
        write!(f, ")")
    }
}
