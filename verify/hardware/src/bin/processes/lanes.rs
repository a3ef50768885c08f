//! Checks where processes begin that name no lane.

use std::collections::BTreeMap;
use std::io::stdin;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use crate::End;
use hardware::Shared;

/// The units of an arena with 64 lanes, and of the area in which one of them begins.
const UNITS: u64 = 1 << 20;
const AREA: u64 = UNITS / 64;

/// The number of lanes that a process draws: for its thread, for C, and further ones. Five processes with consecutive
/// numbers have at least as many each before they meet.
const LANES: u64 = 8;
const IN_A_ROW: u32 = 5;

/// The number of wanted pairs of processes with such close numbers, and of processes that may be started for them.
const PAIRS: usize = 40;
const PROCESSES: usize = 400;

/// Starts processes one after the other.
pub fn run() -> Result<(), End> {
    let (mut areas, mut pairs) = (BTreeMap::<u32, Vec<u64>>::new(), 0);
    while pairs < PAIRS && areas.len() < PROCESSES {
        let (process, begins) = begin()?;
        for (other, theirs) in areas.range(process.saturating_sub(IN_A_ROW - 1)..process + IN_A_ROW)
        {
            pairs += 1;
            if let Some(area) = begins.iter().find(|area| theirs.contains(area)) {
                eprintln!(
                    "lanes collide: processes {other} and {process} both begin in area {area}"
                );
                return Err(End::Found);
            }
        }
        areas.insert(process, begins);
    }
    if pairs < PAIRS {
        return Err(End::NotRun(format!("{pairs} pairs of {} processes", areas.len())));
    }
    println!("{} processes begin in areas of their own", areas.len());
    Ok(())
}

/// Starts a process on a fresh arena. Returns its number, and the areas in which its lanes begin.
fn begin() -> Result<(u32, Vec<u64>), End> {
    let failed = |reason: &dyn ToString| End::NotRun(reason.to_string());
    let (file, _) = Shared::create(UNITS);
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let child = Command::new(program)
        .args(["lanes", "member"])
        .stdin(Stdio::from(file))
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    let process = child.id();
    let output = child.wait_with_output().map_err(|error| failed(&error))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let areas: Vec<u64> = said.split_whitespace().filter_map(|area| area.parse().ok()).collect();
    if areas.len() as u64 != LANES {
        return Err(failed(&format!("process {process} has {} areas", areas.len())));
    }
    Ok((process, areas))
}

/// Prints where lanes begin in the arena that is this process's standard input.
pub fn member() -> Result<(), End> {
    let file = stdin().as_fd().try_clone_to_owned();
    let file = file.map_err(|error| End::NotRun(error.to_string()))?;
    let shared = Shared::open(&file.into(), UNITS);
    let zones = shared.zones();
    let [zone, _] = zones.map_err(|violation| End::NotRun(violation.to_string()))?;
    // There are no further threads: they would take numbers between those of two processes.
    let drawn = (2..LANES).map(|_| zone.buddy.on(nbbs::next_lane()).alloc(0).ok());
    for unit in [zone.buddy.alloc(0).ok(), shared.alloc_as_c()].into_iter().chain(drawn) {
        println!("{}", unit.ok_or_else(|| End::NotRun("no unit".to_string()))? / AREA);
    }
    Ok(())
}
