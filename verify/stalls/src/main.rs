//! `stalls ours [--long | --share K/N | SCENES]` or `stalls patients`: stops a thread, for good or for long, after every
//! step of every operation, lets the others go on, and checks what is left. Ends with 3 if something was found in nbbs,
//! and with 1 if something was not found in a patient. `--share` runs every `N`th case of all scenes, from the `K`th on.
//!
//! ```text
//! word        calls that can be stopped before any access, and go on later
//! system      what a system can be asked, and nbbs
//! subjects    nbbs and the others, by name
//! zones       two arenas of nbbs behind one handle
//! caches      CPUs with caches in front of nbbs
//! scenes      what is in use, and what the lanes do
//! case        one of these scenes on a fresh system, under a script
//! player      a lane: what it holds, and what it is in the middle of
//! call        the calls of a lane, and what they cost
//! places      the units that a call has claimed or cleared so far
//! matrix      every place at which the lanes can stop
//! aftermath   checks that only what was in hand is missing, the rest is whole, and no operation alone is long
//! ```
#![forbid(unsafe_code)]

mod aftermath;
mod caches;
mod call;
mod case;
mod matrix;
mod places;
mod player;
mod scenes;
mod subjects;
mod system;
mod word;
mod zones;

use std::process::ExitCode;

use aftermath::bound;
use matrix::{Culprit, Depth, Figures, run};
use scenes::Scenes;
use subjects::{OURS, PATIENTS, SOUND, Subject};
use testkit::{Share, Symptom, Violation};

fn main() -> ExitCode {
    let some = Depth { stride: 15, first: 1, all_orders: false, share: Share::ALL };
    let all = Depth { stride: 1, all_orders: true, ..some };
    let arguments = testkit::arguments();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ours"] => ours(some, None),
        ["ours", "--long"] => ours(all, None),
        ["ours", "--share", share] => match share.parse() {
            Ok(share) => ours(Depth { share, ..some }, None),
            Err(wrong) => usage(wrong),
        },
        ["ours", scenes] => ours(some, Some(scenes)),
        ["patients"] => patients(all),
        _ => usage("no such arguments"),
    }
}

fn usage(wrong: &str) -> ExitCode {
    eprintln!("{wrong}; usage: stalls ours [--long | --share K/N | SCENES] | stalls patients");
    ExitCode::from(2)
}

/// Runs everything about nbbs, or the scenes of one name. Fails at the first violation, and if nothing is run.
fn ours(depth: Depth, only: Option<&str>) -> ExitCode {
    let mut all = Figures::default();
    for (subject, units, name, scenes) in OURS.iter().flat_map(scenes_of) {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        match run(subject, units, &scenes, depth.of(subject.kind, units), |_| true) {
            Ok(figures) => {
                let (subject, bound) = (subject.name, bound(units));
                eprintln!("{subject}, {name}, {units} units: {figures:?}; bound {bound:?}");
                all = [all, figures].into_iter().sum();
            }
            Err(culprit) => {
                eprintln!("{}, {name}: {culprit}", subject.name);
                return ExitCode::from(3);
            }
        }
    }
    println!("{} frozen for good, {} resumed", all.frozen, all.resumed);
    if all.frozen == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Returns all scenes of a subject, by arena and name.
fn scenes_of(
    subject: &'static Subject,
) -> impl Iterator<Item = (&'static Subject, u64, &'static str, Scenes)> {
    subject.units.iter().flat_map(move |&units| {
        let scenes = Scenes::of(subject.kind, units).into_iter();
        scenes.map(move |(name, scenes)| (subject, units, name, scenes))
    })
}

/// Fails if a patient is not caught at what it does wrong, or if a sound system is accused.
fn patients(depth: Depth) -> ExitCode {
    let mut caught = 0;
    for (patient, symptoms) in PATIENTS {
        let unnoticed =
            symptoms.iter().filter(|symptom| match first(patient, depth, shows(**symptom)) {
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
    let wrong = SOUND.iter().filter_map(|sound| Some((sound.name, first(sound, depth, |_| true)?)));
    let wrong = wrong.inspect(|(name, culprit)| eprintln!("{name} is sound, but: {culprit}"));
    let sound = wrong.count() == 0;
    println!("{caught}/{}", PATIENTS.len());
    if caught == PATIENTS.len() && sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn shows(symptom: Symptom) -> impl Fn(&Violation) -> bool + Copy + Sync {
    move |violation| symptom.is_shown_by(violation)
}

/// Finds the first violation of the kind that is looked for, in any of the subject's arenas.
fn first(
    subject: &'static Subject,
    depth: Depth,
    looked_for: impl Fn(&Violation) -> bool + Copy + Sync,
) -> Option<Box<Culprit>> {
    scenes_of(subject)
        .find_map(|(_, units, _, scenes)| run(subject, units, &scenes, depth, looked_for).err())
}
