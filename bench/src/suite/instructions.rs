//! Counts the instructions of an operation with callgrind.
//!
//! The processor's own counters are not accessible on many machines, so a case of one thread runs once more, in a
//! separate process under `valgrind --tool=callgrind`. This counts what [`measured`] runs: the operations and the loop
//! around them, which takes as many instructions with every allocator (some 30 per operation of a back-end, 65 of a
//! heap). Compare differences.
//!
//! [`measured`]: super::gauge::measured

use std::process::Command;

use anyhow::{Context, ensure};

use super::measure::WorkloadCase;
use super::on_heap;
use crate::args::UNIT_BYTES;
use crate::market::Kind;
use crate::row::Row;

/// Checks that valgrind is installed, before anything is measured.
///
/// # Errors
/// It is not.
pub fn check() -> anyhow::Result<()> {
    const MISSING: &str = "valgrind is not installed, and counting instructions needs it";
    Command::new("valgrind").arg("--version").output().map(|_| ()).context(MISSING)
}

/// Fills in the row of a case that has one phase and one thread, and was verified. Cases with several phases are left
/// alone, as all phases would be counted together.
///
/// # Errors
/// Valgrind cannot run the case, or does not report a count.
pub fn count(case: &WorkloadCase<'_>, rows: &mut [Row]) -> anyhow::Result<()> {
    let phases = |row: &Row| rows.iter().filter(|other| other.allocator == row.allocator).count();
    let alone = |row: &Row| case.setting.threads == 1 && !row.is_wrong() && phases(row) == 1;
    let counted: Vec<bool> = rows.iter().map(alone).collect();
    for (row, _) in rows.iter_mut().zip(counted).filter(|(_, alone)| *alone) {
        row.instructions_per_op = Some(of(case, row)?);
    }
    Ok(())
}

fn of(case: &WorkloadCase<'_>, row: &Row) -> anyhow::Result<f64> {
    let heap = row.kind == Kind::Heap.name();
    let unit = if heap { 1 } else { UNIT_BYTES };
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg("--toggle-collect=*gauge::measured*");
    command.arg(std::env::current_exe()?);
    command.args(["bench", &*row.workload, "--allocators", &*row.allocator, "--json", "--once"]);
    command.args(["--threads", "1", "--rounds", "1", "--duration", "0.1"]);
    command.args([if heap { "--heap" } else { "--arena" }, &(case.units * unit).to_string()]);
    if heap {
        command.args(["--sizes", &(on_heap::UNIT << case.setting.order).to_string()]);
    } else {
        command.args(["--orders", &case.setting.order.to_string()]);
    }
    command.args(case.trace.and_then(|trace| trace.asked.as_ref()).into_iter().flatten());
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind failed: {said}");
    let collected =
        said.lines().find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok());
    let collected: f64 = collected.with_context(|| format!("valgrind counted nothing: {said}"))?;
    let row: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let ops = row["ops"].as_f64().filter(|&ops| ops > 0.0).context("no operation was counted")?;
    Ok((collected / ops * 10.0).round() / 10.0)
}
