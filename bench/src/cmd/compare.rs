//! `nbbs compare`: two records beside each other.

use anyhow::ensure;

use crate::cmd::open_record;
use crate::output::{print, print_json};
use crate::report::args::Compare;
use crate::report::changes::Changes;
use crate::report::record::{Header, Machine, Record, Run, Versions};
use crate::table::bytes;

/// Runs the command. Returns whether no safe allocator that was verified before is found wrong now. The reader judges
/// speed.
pub fn run(args: &Compare) -> anyhow::Result<bool> {
    let (old, new) = (open_record(&args.old)?, open_record(&args.new)?);
    let changes = Changes::between(&old, &new);
    let Changes { rows, only_old, only_new } = &changes;
    ensure!(
        !rows.is_empty(),
        "the records have no case in common: {only_old} are only in the old one, {only_new} only in the new one"
    );
    if args.json {
        changes.rows.iter().try_for_each(print_json)?;
    } else {
        for (name, record) in [("old", &old), ("new", &new)] {
            record.runs.iter().try_for_each(|run| print(&line(name, run)))?;
        }
        print(&changes.to_table(args.most))?;
        if !on_one_machine(&old, &new) {
            print("The records are from different machines, so the ratios compare machines, too.")?;
        }
    }
    Ok(changes.all_verified())
}

fn line(name: &str, run: &Run) -> String {
    let Header { date, machine, versions, command, .. } = &run.header;
    let Machine { cpu, cpus, memory_bytes, system } = machine;
    let Versions { revision, rustc, .. } = versions;
    let memory = bytes(*memory_bytes);
    format!(
        "{name}: {date}, {cpus} CPUs of {cpu}, {memory}, {system}, revision {revision}, {rustc}: {command}"
    )
}

fn on_one_machine(old: &Record, new: &Record) -> bool {
    let mut machines = old.runs.iter().chain(&new.runs).map(|run| &run.header.machine);
    let first = machines.next();
    machines.all(|machine| Some(machine) == first)
}
