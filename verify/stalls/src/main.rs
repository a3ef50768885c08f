//! Stops a thread, for good or for long, after every step of every operation, lets the others go on, and
//! looks at what is left: `stalls ours [--long]` or `stalls patients`. Ends with 3 if something was found in
//! nbbs, with 1 if something was not found in a patient.
//!
//! ```text
//! system      nbbs and the others, with all that they can do
//! scenes      what is in use, and what the lanes do
//! case        one of these on a fresh system, under a script
//! player      a lane: what it holds, and what it is in the middle of
//! claims      which block that is, before it is given
//! matrix      every place at which the lanes can stop
//! aftermath   nothing missing but what was in hand, everything else whole, no operation alone is long
//! ```
#![forbid(unsafe_code)]

mod aftermath;
mod case;
mod claims;
mod matrix;
mod player;
mod scenes;
mod system;

use std::process::ExitCode;

use aftermath::bound;
use matrix::{Culprit, Depth, Figures, run};
use system::{OURS, PATIENTS, SOUND, Subject};
use testkit::{Symptom, Violation};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ours"] => ours(Depth { stride: 9, all_orders: false }),
        ["ours", "--long"] => ours(Depth { stride: 1, all_orders: true }),
        ["patients"] => patients(),
        _ => {
            eprintln!("usage: stalls ours [--long] | stalls patients");
            ExitCode::from(2)
        }
    }
}

/// Everything about nbbs; fails at the first violation.
fn ours(depth: Depth) -> ExitCode {
    let mut all = Figures::default();
    for &units in OURS.units {
        // In larger arenas programs take more steps, and each run more time.
        let stride = if units > 64 { depth.stride * 3 } else { depth.stride };
        match run(&OURS, units, Depth { stride, ..depth }, |_| true) {
            Ok(figures) => {
                let (steps, bound) = (figures.steps, bound(units));
                eprintln!("nbbs, {units} units: {figures:?}; bound {bound:?}");
                assert!(steps.alloc <= bound.alloc && steps.free <= bound.free);
                all = [all, figures].into_iter().sum();
            }
            Err(culprit) => {
                eprintln!("nbbs: {culprit}");
                return ExitCode::from(3);
            }
        }
    }
    println!("{} frozen for good, {} resumed", all.frozen, all.resumed);
    ExitCode::SUCCESS
}

/// Fails if a patient is not caught at what it does, or a system is that stands this.
fn patients() -> ExitCode {
    let mut caught = 0;
    for (patient, symptoms) in PATIENTS {
        let unnoticed = symptoms.iter().filter(|symptom| match first(patient, shows(**symptom)) {
            Some(culprit) => {
                eprintln!("{} {symptom}: {culprit}", patient.name);
                false
            }
            None => {
                eprintln!("UNNOTICED: {} {symptom}", patient.name);
                true
            }
        });
        caught += usize::from(unnoticed.count() == 0);
    }
    let wrong = SOUND.iter().filter_map(|sound| Some((sound.name, first(sound, |_| true)?)));
    let wrong = wrong.inspect(|(name, culprit)| eprintln!("{name} is sound, but: {culprit}"));
    let sound = wrong.count() == 0;
    println!("{caught}/{}", PATIENTS.len());
    if caught == PATIENTS.len() && sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn shows(symptom: Symptom) -> impl Fn(&Violation) -> bool + Copy + Sync {
    move |violation| symptom.is_shown_by(violation)
}

/// The first violation that is looked for, in any of the subject's arenas.
fn first(
    subject: &Subject,
    looked_for: impl Fn(&Violation) -> bool + Copy + Sync,
) -> Option<Box<Culprit>> {
    let depth = Depth { stride: 1, all_orders: true };
    subject.units.iter().find_map(|&units| run(subject, units, depth, looked_for).err())
}
