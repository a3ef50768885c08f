//! `verify-shuttle [blocks | caches] [--long] [--first] [--share K/N]`: runs the allocator's own code under random and
//! PCT schedules, by itself and behind caches or only one of these, then the allocators that are known to be broken and
//! their sound twins.
//!
//! Ends with 3 if ours is not clean, and with 1 if a patient is not caught at what it is known for. `--first` ends at
//! the first finding in ours, and leaves the patients out; `--long` runs fifty times as many races, and `--share` every
//! `N`th of them.

use std::fmt::Debug;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use testkit::program::{Arena, race, race_caches, race_plain};
use testkit::{BackEnd, Violation};
use verify_shuttle::arguments::Arguments;
use verify_shuttle::caches;
use verify_shuttle::patients::{PATIENTS, Patient};
use verify_shuttle::races::{Kind, make};
use verify_shuttle::schedule::{Chooser, Found, Schedules, together};
use verify_shuttle::word::Scheduled;

/// The number of schedules of each kind for each race.
const EACH: usize = 12;
/// The number of schedules of each kind in which a patient must be caught.
const FOR_PATIENTS: usize = 20_000;
/// The number of schedules of each kind in which nothing may be found in a sound twin. For all kinds together, these
/// are more than the patients take.
const FOR_TWINS: usize = 4_000;

/// A kind of race: its name, the number of races in an ordinary run, and what runs one under its schedules.
type Part = (&'static str, u64, fn(u64, &mut Totals) -> Result<(), String>);

const PARTS: [Part; 2] = [("blocks", 1_800, blocks), ("caches", 480, behind_caches)];

/// What has been run.
#[derive(Default)]
struct Totals {
    races: u64,
    schedules: u64,
    found: u64,
    /// Allocations through caches.
    granted: Arc<AtomicU64>,
    refused: Arc<AtomicU64>,
}

fn main() -> ExitCode {
    let asked = Arguments::read(&PARTS.map(|(name, ..)| name));
    std::panic::set_hook(Box::new(|_| {}));
    let mut all = Totals::default();
    for (name, races, run) in PARTS.into_iter().filter(|(name, ..)| asked.asks_for(name)) {
        let (start, most) = (Instant::now(), if asked.long { 50 * races } else { races });
        let before = all.races;
        for seed in asked.share.of(0..most) {
            all.races += 1;
            if let Err(why) = run(seed, &mut all) {
                println!("ours, {name}: FOUND: {why}");
                all.found += 1;
                if asked.first {
                    return ExitCode::from(3);
                }
            }
        }
        println!("ours, {name}: {} races, {:.1?}", all.races - before, start.elapsed());
    }
    let Totals { races, schedules, found, granted, refused } = all;
    let (granted, refused) = (granted.load(Ordering::Relaxed), refused.load(Ordering::Relaxed));
    println!("ours: {found} findings");
    if asked.first {
        return ExitCode::SUCCESS;
    }
    let (broken, sound): (Vec<&Patient>, Vec<&Patient>) =
        PATIENTS.iter().partition(|patient| patient.symptom.is_some());
    let caught = broken.iter().filter(|patient| diagnose(patient)).count();
    let clean = sound.iter().filter(|patient| diagnose(patient)).count();
    println!("races {races}\nschedules {schedules}\ngranted {granted}\nrefused {refused}");
    println!("patients {caught}/{}", broken.len());
    let right = caught == broken.len() && clean == sound.len();
    ExitCode::from(if found > 0 { 3 } else { u8::from(!right) })
}

/// Runs a race on the buddy by itself.
fn blocks(seed: u64, totals: &mut Totals) -> Result<(), String> {
    let of = make(Kind::Everything, seed);
    totals.under_schedules(seed, &of, |of| {
        let arena = Arena::<Scheduled>::new(of.setup.units);
        race(of, &arena.buddy(), together).map(|_| ())
    })
}

/// Runs a race on caches.
fn behind_caches(seed: u64, totals: &mut Totals) -> Result<(), String> {
    let (granted, refused) = (Arc::clone(&totals.granted), Arc::clone(&totals.refused));
    totals.under_schedules(seed, &caches::make(seed), move |of| {
        let report = race_caches::<Scheduled>(of, together)?;
        granted.fetch_add(report.granted, Ordering::Relaxed);
        refused.fetch_add(report.refused, Ordering::Relaxed);
        Ok(())
    })
}

impl Totals {
    /// Runs a race under random schedules and under PCT schedules with one to five changes of priority.
    fn under_schedules<R: Clone + Debug + Send + Sync + 'static>(
        &mut self,
        seed: u64,
        of: &R,
        run: impl Fn(&R) -> Result<(), Violation> + Clone + Send + Sync + 'static,
    ) -> Result<(), String> {
        let pct = (2..=6).map(Chooser::Pct);
        for chooser in pct.chain([Chooser::Random, Chooser::Random]) {
            let schedules = Schedules { chooser, count: EACH, seed };
            let (race, run) = (of.clone(), run.clone());
            self.schedules += schedules
                .run(move || run(&race))
                .map_err(|why| format!("{why}\nin race {seed}: {of:?}"))?;
        }
        Ok(())
    }
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
