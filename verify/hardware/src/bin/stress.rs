//! `stress SYSTEM SECONDS [--plain]`: runs threads on a system for this long, with delays between atomic steps, or on
//! the processor's own words.
//!
//! Ends with 0 if nothing was found, and with 3 if something was: in a patient, what it is known for. Another violation
//! of a patient ends a round, but not the run.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use hardware::{Delays, Payload, System, delayed, find};
use testkit::program::{Ask, No};
use testkit::{BackEnd, Load, Oracle, Report, Violation, stress};

fn main() -> ExitCode {
    let arguments = testkit::arguments();
    let (words, plain): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|word| *word != "--plain");
    let parsed = match words[..] {
        [name, seconds] => find(name).zip(seconds.parse().ok()),
        _ => None,
    };
    let Some((system, seconds)) = parsed else {
        eprintln!("usage: stress SYSTEM SECONDS [--plain]");
        return ExitCode::from(2);
    };
    let begun = Instant::now();
    let (mut total, mut runs) = (Report::default(), 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        match round(system, runs, !plain.is_empty()) {
            Ok(report) => total = [total, report].into_iter().sum(),
            Err(violation) => {
                eprintln!("{} after {:?}: {violation}", system.name, begun.elapsed());
                if system.under_stress.is_none_or(|symptom| symptom.is_shown_by(&violation)) {
                    return ExitCode::from(3);
                }
            }
        }
        runs += 1;
    }
    println!("{} operations in {runs} runs", total.allocations * 2 + total.refusals);
    ExitCode::SUCCESS
}

/// Runs a round. The same number gives the same arena and load.
fn round(system: &System, number: u64, plain: bool) -> Result<Report, Violation> {
    let (units, load) = load(system, number);
    let mut report = Report::default();
    system.lend(units, !plain, &mut |back_end| {
        let back_end = Payload::new(back_end);
        let oracle = Oracle::of(&back_end);
        report = if plain {
            stress(&back_end, &oracle, &load)?
        } else {
            stress(&Delayed { back_end, number }, &oracle, &load)?
        };
        Ok(())
    })?;
    Ok(report)
}

/// Draws a load: tiny arenas, in which threads are in each other's way, and larger ones; few orders and all; 2 to 16
/// threads.
fn load(system: &System, number: u64) -> (u64, Load) {
    let mut random = fastrand::Rng::with_seed(number);
    let arenas: &[u64] = match system.name {
        _ if system.pool => &[3, 8, 64],
        "nb4" => &[32, 64],
        "nbbs" => &[8, 33, 64, 100, 512, 600, 8192, 40_000],
        // The longer the path, the more places there are to stop.
        _ => &[64, 512, 600],
    };
    let units = arenas[random.usize(..arenas.len())];
    let max = if system.pool { 0 } else { units.ilog2() };
    let threads = [2, 3, 4, 4, 8, 16][random.usize(..6)];
    let operations = 6_000 / threads as u64;
    let load = Load::new(threads, operations, 0..=max);
    let load = match number % 3 {
        // The smallest and the largest order: every free merges, or tries to.
        0 if max > 0 => Load { orders: vec![0, 0, 0, 0, max], ..load },
        1 => load.by_size(),
        _ => load,
    };
    let occupancy = [5, 20, 60, 100][random.usize(..4)];
    let runs = if system.name == "nbbs" { [0, 30, 90][random.usize(..3)] } else { 0 };
    (units, load.occupancy(occupancy).runs(runs).seed(number))
}

/// An allocator whose callers are delayed at random.
struct Delayed<B> {
    back_end: B,
    number: u64,
}

impl<B: BackEnd> Delayed<B> {
    fn delayed<R>(&self, body: impl FnOnce() -> R) -> R {
        let one_in = [3, 10, 40, 200][(self.number / 3 % 4) as usize];
        delayed(Delays { one_in }, body)
    }
}

impl<B: BackEnd> BackEnd for Delayed<B> {
    fn units(&self) -> u64 {
        self.back_end.units()
    }

    fn max_order(&self) -> u32 {
        self.back_end.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.back_end.metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        self.delayed(|| self.back_end.alloc(lane, order))
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        self.delayed(|| self.back_end.free(lane, index, order))
    }

    fn offers_runs(&self) -> bool {
        self.back_end.offers_runs()
    }

    fn ask(&self, lane: usize, ask: Ask<'_>) -> Result<u64, No> {
        self.delayed(|| self.back_end.ask(lane, ask))
    }
}
