//! `processes SYSTEM SECONDS`: processes that attach to one system in shared memory, and act at random until they are
//! killed, one after the other, beside one or two that go on; for so long.
//!
//! One in four is killed by another process at any moment. The others kill themselves before an atomic step: one drawn
//! beforehand, or the one after a mark. Some stop there first, until the survivors have gone on, and are killed then or
//! continued for some steps more. After each death each survivor has to go on, and what was held by the dead is freed in its stead. In the end
//! nothing may be missing but what was at stake in the calls that were cut short, and that in place and number; the rest
//! must be whole.
//!
//! `processes lanes`: processes that name no lane begin in areas of their own, in Rust and in C.
//!
//! Ends with 3 if something was found; in a patient, if it is what that is known for. Ends with 0 if nothing was, with 1 if
//! not all was run.

mod aftermath;
mod lanes;
mod life;
mod member;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use life::{Figures, Life};
use testkit::{Symptom, Violation};

/// What the patients are known for. What else they do goes on.
const PATIENTS: [(&str, Symptom); 4] = [
    ("nb1", Symptom::Overlap),
    ("nb4", Symptom::Overlap),
    ("sl1", Symptom::Wait),
    ("sl4", Symptom::Wait),
];

/// Why a process ends before its time.
#[derive(Debug)]
enum End {
    /// A violation that is looked for.
    Found,
    /// Another violation.
    Other,
    /// It could not do its part, and why.
    NotRun(String),
}

impl End {
    /// What a violation of a system is. Prints it.
    fn of(system: &str, violation: &Violation) -> Self {
        eprintln!("{system}: {violation}");
        let known = PATIENTS.iter().find(|(name, _)| *name == system);
        let looked_for = known.is_none_or(|(_, symptom)| symptom.is_shown_by(violation));
        if looked_for { Self::Found } else { Self::Other }
    }

    fn status(&self) -> u8 {
        match self {
            Self::Found => 3,
            Self::Other => 4,
            Self::NotRun(reason) => {
                eprintln!("{reason}");
                1
            }
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = match arguments[..] {
        ["member", system, units, who, fate] => member::run(system, units, who, fate),
        ["lanes"] => lanes::run(),
        ["lanes", "member"] => lanes::member(),
        [system, seconds]
            if system == "nbbs" || PATIENTS.iter().any(|(name, _)| *name == system) =>
        {
            match seconds.parse() {
                Ok(seconds) => lives(system, Duration::from_secs(seconds)),
                Err(_) => Err(End::NotRun(format!("{seconds} is no number of seconds"))),
            }
        }
        _ => Err(End::NotRun("usage: processes SYSTEM SECONDS | processes lanes".to_string())),
    };
    ended.map_or_else(|end| ExitCode::from(end.status()), |()| ExitCode::SUCCESS)
}

fn lives(system: &str, time: Duration) -> Result<(), End> {
    // Two levels and three; few units, in which everybody is in everybody's way.
    let arenas: &[u64] = match system {
        "nbbs" => &[33, 64, 100, 600, 9000],
        "nb4" => &[32, 256],
        _ => &[16, 64],
    };
    let (begun, mut all) = (Instant::now(), Figures::default());
    while begun.elapsed() < time {
        let units = arenas[all.lives as usize % arenas.len()];
        // What a single death costs is known most exactly; many lie in each other's way.
        let deaths = [1, 2, 8][all.lives as usize % 3];
        // One alone shows whether it waits for the dead; two also work on what these have left.
        let survivors = 1 + all.lives as usize % 2;
        match Life::begin(system, units, survivors).and_then(|life| life.live(deaths)) {
            Ok(figures) => all = all.and(figures),
            Err(End::Other) => all.lives += 1,
            Err(end) => return Err(end),
        }
    }
    if all.cut_short == 0 || all.stopped == 0 || all.at_once == 0 {
        return Err(End::NotRun(format!("not every way to die was met: {all:?}")));
    }
    println!("{all}");
    Ok(())
}
