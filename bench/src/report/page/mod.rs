//! The page: one self-contained HTML file.

mod file;

use askama::Template;

pub use file::{Awaited, write_page};

use super::chart::Charts;
use super::pictures::Pictures;
use super::record::{Record, Run, Versions};
use super::replaced::Content;
use super::section::{Section, distinct, sections};
use super::summary::{Summary, summaries};
use super::table::{Failure, Overhead, Stall, Table, failures, overheads, stalls, tables};
use crate::table::{crowd_note, time};

/// What tells pages from other files.
pub const PAGE: Content = Content { name: "page", begins: "<!doctype html" };

/// The number of cases in which another allocator is faster that are shown at first.
const SHOWN_LOSSES: usize = 8;

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    runs: &'a [Run],
    /// Whether anything was verified.
    judged: bool,
    built: Versions,
    summaries: Vec<Summary>,
    sections: Vec<Part>,
    charts: Charts,
    overheads: Option<(String, Vec<Overhead>)>,
    failures: Vec<Failure>,
    stalls: Vec<Stall>,
    /// What the mark at a number of threads means, if there is one.
    crowded: Option<String>,
    pictures: Option<&'a Pictures>,
    /// The contenders of the record: label, kind, source.
    sources: Vec<Source>,
    style: &'static str,
    chart_style: &'static str,
    chart_script: &'static str,
    chart_licence: &'static str,
    script: &'static str,
}

/// A workload on the page.
struct Part {
    workload: String,
    kind: String,
    about: String,
    tables: Vec<Table>,
}

/// The origin of a contender.
struct Source {
    label: String,
    kind: String,
    source: &'static str,
}

/// Renders the page of a record.
///
/// # Errors
/// None for any record.
fn render(record: &Record, pictures: Option<&Pictures>) -> askama::Result<String> {
    let sections = sections(&record.rows);
    let charts = Charts::of(&record.rows, &sections, pictures);
    Page {
        runs: &record.runs,
        judged: record.rows.iter().any(|row| row.verified.is_some()),
        built: Versions::this(),
        summaries: summaries(&sections),
        sections: sections.iter().map(part).collect(),
        overheads: overheads(&record.rows),
        failures: failures(&sections),
        stalls: stalls(&record.rows),
        crowded: crowd_note(&record.rows),
        pictures,
        sources: sources(&charts),
        charts,
        style: include_str!("page.css"),
        chart_style: include_str!("../assets/uPlot.min.css"),
        chart_script: include_str!("../assets/uPlot.iife.min.js"),
        chart_licence: include_str!("../assets/uPlot.LICENSE"),
        script: include_str!("page.js"),
    }
    .render()
}

fn part(section: &Section<'_>) -> Part {
    Part {
        workload: section.workload.to_owned(),
        kind: section.kind.to_owned(),
        about: section.about().unwrap_or_default(),
        tables: tables(section),
    }
}

fn sources(charts: &Charts) -> Vec<Source> {
    let source = |shown: &super::chart::Shown| Source {
        label: shown.label.clone(),
        kind: shown.kind.clone(),
        source: crate::market::find(&shown.name).map_or("", |contender| contender.source),
    };
    charts.contenders.iter().map(source).collect()
}

impl Page<'_> {
    /// Returns the days of the runs.
    fn days(&self) -> String {
        distinct(self.runs.iter().map(|run| run.header.day())).join(", ")
    }

    fn kinds(&self) -> Vec<&str> {
        distinct(self.charts.contenders.iter().map(|shown| &*shown.kind))
    }
}

/// Returns the name of a kind in the plural.
fn plural(kind: &str) -> String {
    match kind {
        "backend" => "back-ends (blocks of pages)".to_owned(),
        "pool" => "pools (objects of one size)".to_owned(),
        "heap" => "heaps (any size)".to_owned(),
        other => other.to_owned(),
    }
}
