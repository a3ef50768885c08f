//! Passes rows on: prints them as tables, JSON or values, and keeps them.

use std::io::{self, Write};

use anyhow::Context;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::report::keep::Kept;
use crate::row::Row;

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Tables,
    Json,
    Csv,
    /// Not at all: only a page is wanted.
    Nothing,
}

/// The output of a run: where its rows go, and whether all was well so far.
pub struct Output {
    format: Format,
    pub bar: ProgressBar,
    kept: Kept,
    good: bool,
    csv: crate::csv::Csv,
}

impl Output {
    /// Creates the output of a run with nothing measured yet.
    pub fn new(format: Format, kept: Kept) -> Self {
        let (bar, csv) = (crate::progress::bar(), crate::csv::Csv::default());
        Self { format, bar, kept, good: true, csv }
    }

    /// Keeps rows, and prints them at once unless they become a table.
    ///
    /// # Errors
    /// Standard output is closed, or the record cannot be written.
    pub fn add(&mut self, rows: &[Row]) -> anyhow::Result<()> {
        self.good &= rows.iter().all(Row::is_good);
        self.kept.add(rows)?;
        match self.format {
            Format::Json => self.bar.suspend(|| rows.iter().try_for_each(print_json)),
            Format::Csv => self.bar.suspend(|| rows.iter().try_for_each(|row| self.csv.print(row))),
            _ => Ok(()),
        }
    }

    /// Prints a paragraph among the tables.
    ///
    /// # Errors
    /// Nobody reads it.
    pub fn print(&self, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.format != Format::Tables {
            return Ok(());
        }
        self.bar.suspend(|| print(&text()))
    }

    /// Notes on standard error, and in the record, what is not measured.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn skip(&mut self, what: &str) -> anyhow::Result<()> {
        warn(&format!("left out: {what}"));
        self.kept.skip(what)
    }

    /// Ends the run with the text below the tables. Returns whether all allocators that are meant to be safe were
    /// verified.
    ///
    /// # Errors
    /// Standard output is closed, or the record or page cannot be written.
    pub fn finish(self, footer: &str) -> anyhow::Result<bool> {
        self.bar.finish_and_clear();
        self.print(|| footer.to_owned())?;
        self.kept.finish()?;
        Ok(self.good)
    }
}

/// What is said if standard output is closed, or full.
pub const UNWRITABLE: &str = "standard output cannot be written";

/// Prints a paragraph.
pub fn print(text: &str) -> anyhow::Result<()> {
    // Not `println!`, which panics if standard output is closed.
    writeln!(io::stdout(), "{text}").context(UNWRITABLE)
}

/// Prints a line to standard error, if that is open.
pub fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints a row of `--json`.
pub fn print_json(row: &impl Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string(row)?)
}

/// Runs each of some contenders, round by round, and returns the results by contender. The machine is in another state
/// after a slow contender, so each round begins with the next one.
pub fn in_turn<C, T>(
    contenders: &[C],
    rounds: usize,
    bar: &ProgressBar,
    run: impl Fn(&C) -> T,
) -> Vec<Vec<T>> {
    let mut done: Vec<Vec<T>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..contenders.len() {
            let place = (round + turn) % contenders.len();
            done[place].push(run(&contenders[place]));
            bar.inc(1);
        }
    }
    done
}
