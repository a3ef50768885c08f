//! `processes SYSTEM SECONDS`: for this long, processes attach to one system in shared memory, and act at random until
//! they are killed, one after the other, beside one or two that go on.
//!
//! One in four is killed by another process at any moment. The others kill themselves before an atomic step: one drawn
//! beforehand, or the one after a mark. Some stop there first, until the survivors have gone on, and are then killed or
//! continued for some more steps. After each death each survivor has to go on, and what the dead process held is freed
//! on its behalf. At the end only what was at stake in the calls that were cut short may be missing, checked by place
//! and number; the rest must be whole.
//!
//! `processes lanes`: checks that processes that name no lane begin in areas of their own, in Rust and in C.
//!
//! Ends with 3 if something was found; in a patient, if it is what the patient is known for. Ends with 0 if nothing was
//! found, and with 1 if not everything was run.

mod aftermath;
mod lanes;
mod life;
mod member;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use life::{Figures, Life};
use testkit::{Symptom, Violation};

/// What the patients are known for. Other violations do not end a run.
const PATIENTS: [(&str, Symptom); 4] = [
    ("nb1", Symptom::Overlap),
    ("nb4", Symptom::Overlap),
    ("sl1", Symptom::Wait),
    ("sl4", Symptom::Wait),
];

/// Why a process ends early.
#[derive(Debug)]
enum End {
    /// A violation that is looked for.
    Found,
    /// Another violation.
    Other,
    /// It could not do its part, with the reason.
    NotRun(String),
}

impl End {
    /// Prints a violation of a system, and returns its kind.
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
    let arguments = testkit::arguments();
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
    // Two and three levels; few units, so that processes are in each other's way.
    let arenas: &[u64] = match system {
        "nbbs" => &[33, 64, 100, 600, 9000],
        "nb4" => &[32, 256],
        _ => &[16, 64],
    };
    let (begun, mut all) = (Instant::now(), Figures::default());
    while begun.elapsed() < time {
        let units = arenas[all.lives as usize % arenas.len()];
        // The cost of a single death is known most exactly; many deaths get in each other's way.
        let deaths = [1, 2, 8][all.lives as usize % 3];
        // One survivor alone shows whether it waits for the dead; two also work on what the dead have left.
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
