//! `verify-shuttle [--long] [--first] [--share K/N]`: runs the allocator's own code under random and PCT schedules,
//! then the allocators that are known to be broken and their sound twins.
//!
//! Ends with 3 if ours is not clean, and with 1 if a patient is not caught at what it is known for. `--first` ends at
//! the first finding in ours, and leaves the patients out; `--long` runs fifty times as many races, and `--share` every
//! `N`th of them.

use std::process::ExitCode;
use std::time::Instant;

use testkit::BackEnd;
use testkit::program::{Arena, race, race_plain};
use verify_shuttle::patients::{PATIENTS, Patient};
use verify_shuttle::races::{Kind, make};
use verify_shuttle::schedule::{Chooser, Found, Schedules, together};
use verify_shuttle::share::Share;
use verify_shuttle::word::Scheduled;

/// The number of races in an ordinary run.
const RACES: u64 = 1_800;
/// The number of schedules of each kind for each race.
const EACH: usize = 12;
/// The number of schedules of each kind in which a patient must be caught.
const FOR_PATIENTS: usize = 20_000;
/// The number of schedules of each kind in which nothing may be found in a sound twin. For all kinds together, these
/// are more than the patients take.
const FOR_TWINS: usize = 4_000;

fn main() -> ExitCode {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    let Some(share) = Share::from_arguments() else {
        eprintln!("--share takes K/N, of which N is above 0");
        return ExitCode::from(2);
    };
    std::panic::set_hook(Box::new(|_| {}));
    let most = if has("--long") { 50 * RACES } else { RACES };
    let start = Instant::now();
    let (mut races, mut schedules, mut found) = (0, 0, 0);
    for seed in share.of(most) {
        races += 1;
        match ours(seed) {
            Ok(count) => schedules += count,
            Err(why) => {
                println!("ours: FOUND: {why}\nin race {seed}: {:?}", make(Kind::Everything, seed));
                found += 1;
                if has("--first") {
                    return ExitCode::from(3);
                }
            }
        }
    }
    println!(
        "ours: {races} races, {schedules} schedules, {found} findings, {:.1?}",
        start.elapsed()
    );
    if has("--first") {
        return ExitCode::SUCCESS;
    }
    let (broken, sound): (Vec<&Patient>, Vec<&Patient>) =
        PATIENTS.iter().partition(|patient| patient.symptom.is_some());
    let caught = broken.iter().filter(|patient| diagnose(patient)).count();
    let clean = sound.iter().filter(|patient| diagnose(patient)).count();
    println!("races {races}\nschedules {schedules}\npatients {caught}/{}", broken.len());
    let right = caught == broken.len() && clean == sound.len();
    ExitCode::from(if found > 0 { 3 } else { u8::from(!right) })
}

/// Runs a race under random schedules and under PCT schedules with one to five changes of priority.
fn ours(seed: u64) -> Result<u64, Found> {
    let pct = (2..=6).map(Chooser::Pct);
    let mut count = 0;
    for chooser in pct.chain([Chooser::Random, Chooser::Random]) {
        let schedules = Schedules { chooser, count: EACH, seed };
        let of = make(Kind::Everything, seed);
        count += schedules.run(move || {
            let arena = Arena::<Scheduled>::new(of.setup.units);
            race(&of, &arena.buddy(), together).map(|_| ())
        })?;
    }
    Ok(count)
}

/// Returns whether a patient is caught at what it is known for, or nothing is found in a sound twin.
fn diagnose(patient: &Patient) -> bool {
    let start = Instant::now();
    let result = examine(patient);
    let time = start.elapsed();
    match &result {
        Ok(schedules) => println!("{}: clean, {schedules} schedules, {time:.1?}", patient.name),
        Err(found) => println!("{}: FOUND, {time:.1?}: {found}", patient.name),
    }
    match patient.symptom {
        Some(symptom) => result.is_err_and(|found| symptom.is_shown_by(&found.violation)),
        None => result.is_ok(),
    }
}

/// Runs a patient's race. Violations other than what it is known for are ignored.
fn examine(patient: &Patient) -> Result<u64, Found> {
    let each = if patient.symptom.is_some() { FOR_PATIENTS } else { FOR_TWINS };
    let mut count = 0;
    let choosers = [Chooser::Pct(4), Chooser::Pct(5), Chooser::Random];
    for (lanes, chooser) in choosers.into_iter().flat_map(|chooser| [(3, chooser), (4, chooser)]) {
        let (of, with, symptom) = ((patient.race)(lanes), patient.with, patient.symptom);
        count += Schedules { chooser, count: each, seed: 1 }.run(move || {
            let result = with(of.setup.units, &mut |back_end: &dyn BackEnd| {
                race_plain(&of, &back_end, together)
            });
            result.or_else(|violation| match symptom {
                Some(symptom) if !symptom.is_shown_by(&violation) => Ok(()),
                _ => Err(violation),
            })
        })?;
    }
    Ok(count)
}
