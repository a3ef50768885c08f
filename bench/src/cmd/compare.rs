//! `nbbs compare`: two records beside each other.

use crate::cmd::open_record;
use crate::output::{print, print_json};
use crate::report::args::Compare;
use crate::report::changes::Changes;
use crate::report::record::{Header, Record, Run};

/// Runs the command. Returns whether no safe allocator that was verified before is found wrong now. The reader judges
/// speed.
pub fn run(args: &Compare) -> anyhow::Result<bool> {
    let (old, new) = (open_record(&args.old)?, open_record(&args.new)?);
    let changes = Changes::between(&old, &new);
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
    let (cpu, cpus, revision) = (&machine.cpu, machine.cpus, &versions.revision);
    format!(
        "{name}: {date}, {cpus} CPUs of {cpu}, revision {revision}, {}: {command}",
        versions.rustc
    )
}

fn on_one_machine(old: &Record, new: &Record) -> bool {
    let mut machines = old.runs.iter().chain(&new.runs).map(|run| &run.header.machine);
    let first = machines.next();
    machines.all(|machine| Some(machine) == first)
}
