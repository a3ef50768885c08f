//! `nbbs compare`: two records beside each other.

use crate::cmd::{print, print_json};
use crate::report::args::Compare;
use crate::report::changes::Changes;
use crate::report::record::{Header, Record};

/// Runs the command; says whether no safe allocator that was verified before is found wrong now. Speed is for
/// the reader to judge.
pub fn run(args: &Compare) -> anyhow::Result<bool> {
    let (old, new) = (Record::open(&args.old)?, Record::open(&args.new)?);
    let changes = Changes::between(&old, &new);
    if args.json {
        changes.rows.iter().try_for_each(print_json)?;
    } else {
        for (name, record) in [("old", &old), ("new", &new)] {
            record.headers.iter().try_for_each(|header| print(&line(name, header)))?;
        }
        print(&changes.to_table(args.most))?;
        if !on_one_machine(&old, &new) {
            print("The records are of different machines: their ratios are too.")?;
        }
    }
    Ok(changes.all_verified())
}

fn line(name: &str, header: &Header) -> String {
    let Header { date, machine, versions, command, .. } = header;
    let (cpu, cpus, revision) = (&machine.cpu, machine.cpus, &versions.revision);
    format!(
        "{name}: {date}, {cpus} CPUs of {cpu}, revision {revision}, {}: {command}",
        versions.rustc
    )
}

fn on_one_machine(old: &Record, new: &Record) -> bool {
    let mut machines = old.headers.iter().chain(&new.headers).map(|header| &header.machine);
    let first = machines.next();
    machines.all(|machine| Some(machine) == first)
}
