//! Makes tables of the figures behind the charts.

use super::chart::verdict;
use super::section::{Section, Variant, distinct};
use super::summary::Factor;
use crate::args::UNIT_BYTES;
use crate::row::Row;
use crate::suite::own::Own;
use crate::table::{
    Across, Layout, bytes as size, clock_note, columns, crowd_note, marked, thread_count, time,
    with_threads,
};

/// A table of the figures of one set of charts. The first cell of each row is the name of an allocator.
pub struct Table {
    pub label: String,
    pub verdict: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// What a reader must know about its marks and times.
    pub notes: Vec<String>,
}

/// Returns a table for each set of charts of a workload.
pub fn tables(section: &Section<'_>) -> Vec<Table> {
    let own = section.known().and_then(|workload| workload.own);
    section.variants.iter().map(|variant| table(variant, own)).collect()
}

fn table(variant: &Variant<'_>, own: Option<&Own>) -> Table {
    let lines = variant.lines.iter().map(|line| line.entries.iter().flatten().copied());
    let lines: Vec<Vec<&Row>> = lines.map(Iterator::collect).collect();
    let more = columns(own, &lines);
    let layout = Layout {
        lines: &[("allocator", Row::label)],
        across: Some(Across::threads(|row| marked(row, time))),
        more: &more,
        left: 1,
    };
    let all = lines.concat();
    let (header, rows) = layout.cells(&all);
    let notes = [crowd_note(all.iter().copied()), clock_note(all.iter().copied())];
    Table {
        label: variant.label.clone(),
        verdict: verdict(variant),
        header,
        rows,
        notes: notes.into_iter().flatten().collect(),
    }
}

/// The metadata that an allocator needs for the memory that it manages.
pub struct Overhead {
    pub name: String,
    /// The size of the metadata.
    pub size: String,
    /// Bits for each unit of 4 KiB.
    pub bits: f64,
    /// The size in percent of the largest.
    pub share: f64,
    pub ours: bool,
}

/// Returns the metadata of the back-ends in the largest arena of the record, smallest first, with the size of the
/// arena.
pub fn overheads(entries: &[Row]) -> Option<(String, Vec<Overhead>)> {
    let back_ends = || entries.iter().filter(|entry| entry.kind == "backend");
    let arena = back_ends().filter_map(|entry| entry.arena_bytes).max()?;
    let there = || back_ends().filter(move |entry| entry.arena_bytes == Some(arena));
    let most_of = |name: &str| {
        let of_it = there().filter(|entry| entry.allocator == name);
        of_it.filter_map(|entry| Some((entry.metadata_bytes?, entry))).max_by_key(|pair| pair.0)
    };
    let names = distinct(there().map(|entry| &*entry.allocator));
    let mut most: Vec<(u64, &Row)> = names.into_iter().filter_map(most_of).collect();
    most.sort_by_key(|&(bytes, _)| bytes);
    let largest = most.last()?.0.max(1);
    let overhead = |(bytes, entry): (u64, &Row)| Overhead {
        name: entry.label(),
        size: size(bytes),
        bits: bytes as f64 * 8.0 / (arena / UNIT_BYTES).max(1) as f64,
        share: bytes as f64 * 100.0 / largest as f64,
        ours: super::section::subject(&entry.kind) == Some(&*entry.allocator),
    };
    Some((size(arena), most.into_iter().map(overhead).collect()))
}

/// What other threads notice while a thread is suspended in the middle of an operation.
pub struct Stall {
    pub name: String,
    pub threads: String,
    /// p99.9 of an operation while no thread is suspended, and while one is.
    pub before: String,
    pub after: String,
    pub factor: Factor,
    pub max: String,
}

/// Returns the worst case of each allocator, the mildest first.
pub fn stalls(entries: &[Row]) -> Vec<Stall> {
    let stall = |entry: &Row| {
        let (before, after) = (entry.figure("baseline_p999_ns")?, entry.p999_ns?);
        Some(Stall {
            name: entry.label(),
            threads: thread_count(entry),
            before: time(before),
            after: time(after),
            factor: Factor(after / before.max(1.0)),
            max: entry.max_ns.map_or("-".to_owned(), time),
        })
    };
    let mut stalls: Vec<Stall> = Vec::new();
    for stall in entries.iter().filter_map(stall) {
        match stalls.iter_mut().find(|other| other.name == stall.name) {
            Some(other) if other.factor.0 < stall.factor.0 => *other = stall,
            Some(_) => {}
            None => stalls.push(stall),
        }
    }
    stalls.sort_by(|one, other| one.factor.0.total_cmp(&other.factor.0));
    stalls
}

/// Returns what was found wrong with each allocator: its first case and violation.
pub fn failures(sections: &[Section<'_>]) -> Vec<Failure> {
    let mut failures: Vec<Failure> = Vec::new();
    let cases =
        sections.iter().flat_map(|section| section.cases().map(move |case| (section, case)));
    for (section, case) in cases {
        for entry in case.entries.iter().filter(|entry| entry.is_wrong()) {
            match failures.iter_mut().find(|failure| failure.name == entry.label()) {
                Some(failure) => failure.times += 1,
                None => failures.push(Failure {
                    name: entry.label(),
                    times: 1,
                    first: format!("{}, {}", section.workload, with_threads(entry)),
                    violation: entry.violation.clone().unwrap_or_default(),
                }),
            }
        }
    }
    failures
}

/// An allocator that was found wrong.
pub struct Failure {
    pub name: String,
    /// The number of cases in which it was found wrong.
    pub times: usize,
    /// The first of these cases.
    pub first: String,
    pub violation: String,
}
