//! Prints what `run.sh` had run, side by side: what cargo said of the tests on standard input, and criterion's
//! estimates in the folder that is named. Fails if there is nothing to print.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead};
use std::path::Path;

use anyhow::{Context, ensure};
use comfy_table::{CellAlignment, Table};

/// Whose tests and benchmarks they are, in the order of the columns.
const TESTED: [&str; 2] = ["own", "nbbs"];
const MEASURED: [&str; 5] = ["system", "buddy", "slab", "tlsf", "nbbs"];

fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os().nth(1).context("usage: arceos CRITERION <TESTS")?;
    println!("{}", tests()?);
    println!("{}", benchmarks(Path::new(&folder))?);
    Ok(())
}

/// The lines `test own::pages::... ... ok`.
fn tests() -> anyhow::Result<Table> {
    let mut rows = BTreeMap::<String, [String; 2]>::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Some((name, result)) =
            line.strip_prefix("test ").and_then(|test| test.split_once(" ... "))
        else {
            continue;
        };
        let (whose, name) = name.split_once("::").context("a test of nobody's")?;
        let column = TESTED.iter().position(|tested| *tested == whose).context("whose test?")?;
        rows.entry(name.trim_end_matches(" - should panic").to_owned()).or_default()[column] =
            result.to_owned();
    }
    ensure!(!rows.is_empty(), "no test was run");
    let title = format!("test of ax-allocator {}", arceos::VERSION);
    let mut table = table(&[&title, "its own", "nbbs in its place"]);
    for (name, results) in rows {
        table.add_row([name].into_iter().chain(results.map(or_dash)));
    }
    Ok(table)
}

/// The medians.
fn benchmarks(folder: &Path) -> anyhow::Result<Table> {
    let mut rows = BTreeMap::<String, [String; 5]>::new();
    for (column, whose) in MEASURED.iter().enumerate() {
        let Ok(entries) = fs::read_dir(folder.join(whose)) else { continue };
        for entry in entries {
            let path = entry?.path();
            let Ok(said) = fs::read_to_string(path.join("new/estimates.json")) else { continue };
            let estimates: serde_json::Value = serde_json::from_str(&said)?;
            let median = estimates["median"]["point_estimate"].as_f64().context("no median")?;
            let name = path.file_name().context("no name")?.to_string_lossy().into_owned();
            rows.entry(name).or_default()[column] = format!("{:.2} ms", median / 1e6);
        }
    }
    ensure!(!rows.is_empty(), "nothing was measured in {}", folder.display());
    let title = format!("benchmark of ax-allocator {}", arceos::VERSION);
    let mut table = table(&[&[title.as_str()], &MEASURED[..]].concat());
    for (name, results) in rows {
        table.add_row([name].into_iter().chain(results.map(or_dash)));
    }
    Ok(table)
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset("  ── ══      ──    ").set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
