//! `linearizability [PART] [--long] [--first] [--share K/N]`: records the calls of small races, under shuttle, under
//! every schedule with few preemptions and on real threads, and checks them against the sequential buddy.
//!
//! Ends with 3 if ours breaks its promise, and with 1 if a patient goes unnoticed. `--first` ends at the first finding
//! in ours, and leaves the patients out. `--share` runs every `N`th of the random races.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use nbbs::{Caches, Caps, cache_words};
use testkit::history::{Call, History, record};
use testkit::program::{Arena, Body, Op, Program, Race, Step};
use testkit::steered::{Steered, all_schedules, at_once, jitter};
use testkit::{BackEnd, Share, Symptom, Violation};
use verify_shuttle::arguments::Arguments;
use verify_shuttle::patients::{PATIENTS, Patient};
use verify_shuttle::races::{Kind, make};
use verify_shuttle::schedule::{Chooser, Schedules, together};
use verify_shuttle::word::Scheduled;

/// Counts histories, and how many of them are not linearizable if refusals count.
#[derive(Debug, Default)]
struct Count {
    histories: AtomicU64,
    unlinearizable: AtomicU64,
    refusals: AtomicU64,
}

impl Count {
    /// Checks a history against the allocator's promises, and counts it.
    fn check(&self, history: &History) -> Result<(), Violation> {
        self.check_lanes(history, |_| true)?;
        if !history.is_linearizable() {
            self.unlinearizable.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Does so, and judges the refusals of these lanes only.
    fn check_lanes(&self, history: &History, lanes: fn(usize) -> bool) -> Result<(), Violation> {
        use testkit::history::Answer::Refused;
        let is_refusal = |call: &&Call| matches!(call.answer, Refused(_)) && lanes(call.lane);
        let refused = history.calls().iter().filter(is_refusal);
        self.histories.fetch_add(1, Ordering::Relaxed);
        self.refusals.fetch_add(refused.count() as u64, Ordering::Relaxed);
        judge(history, lanes)
    }
}

fn judge(history: &History, lanes: fn(usize) -> bool) -> Result<(), Violation> {
    let wrong =
        |fault| Violation::wrong("the history", "an order and honest refusals", Text(fault));
    history.check_refusals_of(lanes).map_err(|fault| wrong(fault.to_string()))
}

/// A text that is its own debugging form.
struct Text(String);

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn main() -> ExitCode {
    let asked = Arguments::read(&PARTS.map(|(name, _)| name));
    std::panic::set_hook(Box::new(|_| {}));
    let factor = if asked.long { 50 } else { 1 };
    let count = Arc::new(Count::default());
    let mut clean = true;
    for (name, part) in PARTS.into_iter().filter(|(name, _)| asked.asks_for(name)) {
        let start = Instant::now();
        let result = part(factor, asked.share, &count);
        match &result {
            Ok(()) => println!("ours, {name}: clean, {:.1?}", start.elapsed()),
            Err(why) => println!("ours, {name}: FOUND: {why}"),
        }
        clean &= result.is_ok();
        if !clean && asked.first {
            return ExitCode::from(3);
        }
    }
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (histories, refusals) = (of(&count.histories), of(&count.refusals));
    println!(
        "histories {histories}\nrefusals {refusals}\nunlinearizable {}",
        of(&count.unlinearizable)
    );
    if asked.first {
        return ExitCode::SUCCESS;
    }
    let counterexample = counterexample();
    match &counterexample {
        Some(history) => println!("refusals are not linearizable:\n{history}"),
        None => println!("the counterexample to the linearizability of refusals is gone"),
    }
    let mut caught = 0;
    let overlaps = |patient: &&Patient| patient.symptom == Some(Symptom::Overlap);
    for patient in PATIENTS.iter().filter(overlaps) {
        let found = hands_out_twice(patient.race, patient.with);
        println!("{}: {}", patient.name, found.as_deref().unwrap_or("NOT caught"));
        caught += usize::from(found.is_some());
    }
    let broken = PATIENTS.iter().filter(overlaps).count();
    println!("patients {caught}/{broken}");
    let right = caught == broken && counterexample.is_some();
    ExitCode::from(if clean { u8::from(!right) } else { 3 })
}

/// A way to make histories: from a multiple of the usual number of random races, and a share of those.
type Part = fn(u64, Share, &Arc<Count>) -> Result<(), String>;

const PARTS: [(&str, Part); 4] = [
    ("schedules", under_shuttle),
    ("caches", behind_a_cache),
    ("preemptions", under_all_schedules),
    ("threads", on_threads),
];

/// Runs random races of 3 to 8 lanes under random and PCT schedules.
fn under_shuttle(factor: u64, share: Share, count: &Arc<Count>) -> Result<(), String> {
    random_races(share.of(0..4_000 * factor), count, |of, count| {
        let arena = Arena::<Scheduled>::new(of.setup.units);
        count.check(&record(of, &arena.buddy(), together)?)
    })
}

/// Runs random races in which the first lane has a cache and the others have none, under random and PCT schedules. Of
/// its refusals no more is excused than without a cache: what it keeps itself must have become free. The others may be
/// refused what it keeps.
fn behind_a_cache(factor: u64, share: Share, count: &Arc<Count>) -> Result<(), String> {
    random_races(share.of(0..1_200 * factor), count, |of, count| {
        let arena = Arena::<Scheduled>::new(of.setup.units);
        let words: Vec<Scheduled> = (0..cache_words(1)).map(|_| Scheduled::default()).collect();
        let caps = (0..9).fold(Caps::new(), |caps, order| caps.units(order, 6 << order));
        let caches = Caches::new(arena.buddy(), &words).with_caps(caps.checked(false));
        count.check_lanes(&record(of, &caches, together)?, |lane| lane == 0)
    })
}

/// Runs the races of these seeds under random and PCT schedules.
fn random_races(
    seeds: impl Iterator<Item = u64>,
    count: &Arc<Count>,
    run: fn(&Race, &Count) -> Result<(), Violation>,
) -> Result<(), String> {
    for seed in seeds {
        for chooser in [Chooser::Pct(3), Chooser::Pct(5), Chooser::Random] {
            let (count, of) = (Arc::clone(count), make(Kind::Plain, seed));
            let result = Schedules { chooser, count: 8, seed }.run(move || run(&of, &count));
            result.map_err(|found| format!("race {seed}: {found}"))?;
        }
    }
    Ok(())
}

/// Runs races on full and nearly full arenas, under every schedule with two preemptions.
fn under_all_schedules(_factor: u64, _share: Share, count: &Arc<Count>) -> Result<(), String> {
    for of in [hidden_block(), merge_or_refuse(), whole_or_parts()] {
        let result = all_schedules(2, |turns| {
            let arena = Arena::<Steered>::new(of.setup.units);
            count.check(&record(&of, &arena.buddy(), |bodies| turns(bodies))?)
        });
        result.map_err(|culprit| culprit.to_string())?;
    }
    Ok(())
}

/// Runs random races on threads, which give each other turns now and then.
fn on_threads(factor: u64, share: Share, count: &Arc<Count>) -> Result<(), String> {
    for seed in share.of(0..20_000 * factor) {
        let of = make(Kind::Plain, seed);
        let arena = Arena::<Steered>::new(of.setup.units);
        let history = record(&of, &arena.buddy(), |bodies| {
            let bodies = bodies
                .into_iter()
                .zip(seed..)
                .map(|(body, seed)| -> Body<'_> { Box::new(move || jitter(seed, 8, body)) });
            at_once(bodies.collect())
        });
        let result = history.and_then(|history| count.check(&history));
        result.map_err(|violation| format!("race {seed}: {violation}"))?;
    }
    Ok(())
}

fn race_of(units: u64, setup: &[(usize, Op)], lanes: &[&[Op]]) -> Race {
    let step = |(lane, op): &(usize, Op)| Step { lane: *lane, op: op.clone() };
    let setup = Program { units, reserved: false, steps: setup.iter().map(step).collect() };
    Race { setup, lanes: lanes.iter().map(|ops| ops.to_vec()).collect(), shared: false }
}

const FREE: Op = Op::FreeSized { pick: 0 };

const fn alloc(order: u32) -> Op {
    Op::Alloc { order }
}

/// A race: lane 0 claims in a word that a larger block covers, and undoes the claim. Lane 1 gives back that block,
/// takes its parts, and misses the one that lane 0 has in its hands for a moment.
fn hidden_block() -> Race {
    let setup = [(1, alloc(5)), (2, alloc(5))];
    race_of(64, &setup, &[&[alloc(4)], &[FREE, alloc(4), alloc(4), alloc(4)]])
}

/// A race: the last blocks of two words become free, while others ask for the whole arena and are refused.
fn merge_or_refuse() -> Race {
    let setup = [(0, alloc(4)), (2, alloc(4)), (1, alloc(4)), (2, alloc(4)), (2, FREE), (2, FREE)];
    race_of(64, &setup, &[&[FREE, alloc(5)], &[FREE, alloc(5)], &[alloc(6)]])
}

/// A race: all lanes ask for the whole arena, or for a part.
fn whole_or_parts() -> Race {
    race_of(64, &[], &[&[alloc(6), FREE], &[alloc(4), alloc(6)], &[alloc(5), FREE]])
}

/// Finds the first history, under few preemptions, in which a refusal has no place in any order.
fn counterexample() -> Option<History> {
    let first = std::cell::RefCell::new(None);
    let of = hidden_block();
    let search = all_schedules(3, |turns| {
        let arena = Arena::<Steered>::new(of.setup.units);
        let history = record(&of, &arena.buddy(), |bodies| turns(bodies))?;
        if history.is_linearizable() {
            return Ok(());
        }
        first.replace(Some(history));
        Err(Violation::Panicked("found".to_owned()))
    });
    search.err().and_then(|_| first.take())
}

/// Finds the first history of a patient in which a unit is granted while it is held.
fn hands_out_twice(
    race: fn(usize) -> Race,
    with: verify_shuttle::patients::With,
) -> Option<String> {
    [Chooser::Pct(4), Chooser::Pct(5), Chooser::Random].into_iter().find_map(|chooser| {
        let of = race(3);
        let schedules = Schedules { chooser, count: 100_000, seed: 1 };
        let result = schedules.run(move || {
            with(of.setup.units, &mut |back_end: &dyn BackEnd| {
                // The patients promise nothing about refusals.
                let history = record(&of, &back_end, together)?;
                if history.grants_twice() { judge(&history, |_| true) } else { Ok(()) }
            })
        });
        let found = result.err()?;
        matches!(found.violation, Violation::WrongAnswer { .. }).then(|| found.to_string())
    })
}
