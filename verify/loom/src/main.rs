//! `verify-loom [--long] [--first] [NAME[/MODEL] ...]`: runs races on the allocator's own code under loom.
//!
//! Prints a line for each race and model of `SeqCst`: how many executions there were, and whether these are all of them
//! or those with up to a number of preemptions. Ends with 3 if anything was found, with 0 if not, and with another
//! status if it could not run. `--first` ends at the first finding; `--patients` runs the allocators that are known to
//! be broken.

mod barrier;
mod caches;
mod death;
#[cfg(feature = "patients")]
mod patients;
mod payload;
mod race;
mod races;
mod runs;
mod word;

use std::process::ExitCode;

use caches::CACHES;
use race::Outcome;
use races::RACES;
use runs::RUNS;

const FLAGS: [&str; 4] = ["--first", "--long", "--names", "--patients"];

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let (flags, names): (Vec<String>, Vec<String>) =
        arguments.partition(|argument| argument.starts_with("--"));
    if let Some(flag) = flags.iter().find(|flag| !FLAGS.contains(&flag.as_str())) {
        eprintln!("{flag} is none of the options {}", FLAGS.join(", "));
        return ExitCode::from(2);
    }
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    std::panic::set_hook(Box::new(|_| {}));
    if has("--patients") {
        return patients();
    }
    let only_names = has("--names");
    // With `--names`, nothing is chosen, and everything that could be is printed.
    let chosen = |name: &str, race: &str| {
        if only_names {
            println!("{name}");
            return false;
        }
        names.is_empty() || names.iter().any(|n| n == name || n == race)
    };
    let more = |bound: Option<usize>| if has("--long") { bound.map(|n| n + 1) } else { bound };
    let (mut ran, mut found) = (0, 0);
    let mut tell = |name: &str, bound, outcome: &Outcome| {
        report(name, bound, outcome);
        ran += 1;
        found += u32::from(outcome.failure.is_some());
        found > 0 && has("--first")
    };
    for race in RACES.iter().chain(RUNS) {
        for &(model, bound) in race.under.iter().filter(|(model, _)| model.is_of_this_build()) {
            let name = format!("{}/{model:?}", race.name);
            if chosen(&name, race.name) && tell(&name, bound, &race.run(model, more(bound))) {
                return ExitCode::from(3);
            }
        }
    }
    for race in CACHES {
        if chosen(race.name, race.name) && tell(race.name, race.bound, &race.run(more(race.bound)))
        {
            return ExitCode::from(3);
        }
    }
    match (ran, found) {
        (0, _) if only_names => ExitCode::SUCCESS,
        (0, _) => {
            eprintln!("no race is called {}; --names prints all names", names.join(", "));
            ExitCode::from(2)
        }
        (_, 0) => ExitCode::SUCCESS,
        _ => ExitCode::from(3),
    }
}

fn report(name: &str, bound: Option<usize>, outcome: &Outcome) {
    let bound = bound.map_or("all".to_owned(), |bound| format!("{bound} preemptions"));
    match &outcome.failure {
        None => println!("{name}: clean, {bound}, {outcome}"),
        Some(failure) => println!("{name}: FOUND, {bound}, {outcome}: {failure}"),
    }
}

#[cfg(not(feature = "patients"))]
fn patients() -> ExitCode {
    eprintln!("built without the feature `patients`");
    ExitCode::from(2)
}

#[cfg(feature = "patients")]
fn patients() -> ExitCode {
    patients::run()
}
