//! The lives of segments, until so many members have died.

use std::process::ExitCode;

use crate::life::{Figures, live};
use crate::member;

/// Deaths in one segment.
const A_LIFE: u64 = 50;

pub fn main() -> ExitCode {
    let arguments = testkit::arguments();
    let ended = match arguments.first().map(String::as_str) {
        Some("member") => member::run(&arguments),
        // What `cargo test` passes on for the usual harness.
        Some("--list") => Ok(()),
        first => run(first.and_then(|deaths| deaths.parse().ok()).unwrap_or(200)),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(found) => {
            eprintln!("{found}");
            ExitCode::from(101)
        }
    }
}

fn run(deaths: u64) -> Result<(), String> {
    let mut figures = Figures::default();
    for life in 0..deaths.div_ceil(A_LIFE) {
        live(life, A_LIFE.min(deaths - life * A_LIFE), &mut figures)?;
    }
    println!("{figures}");
    if figures.cut_short * 10 < figures.killed {
        return Err("too few were killed in a call: nothing is shown by that".to_string());
    }
    Ok(())
}
