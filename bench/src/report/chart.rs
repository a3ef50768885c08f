//! The charts that the page's script draws.

use serde::Serialize;

use super::pictures::Pictures;
use super::section::{BY_C, FLOOR, Line, Section, Variant, distinct, is_ours, subject};
use crate::row::Row;
use crate::table::time;
use crate::verdict::Rounds;

/// All charts, as the page carries them.
#[derive(Serialize)]
pub struct Charts {
    pub contenders: Vec<Shown>,
    sections: Vec<Drawn>,
    fragmentation: Option<Fragmentation>,
}

/// An allocator in the charts.
#[derive(Serialize)]
pub struct Shown {
    pub name: String,
    pub label: String,
    pub kind: String,
    /// Its colour, by number, among the allocators of its kind.
    pub colour: usize,
    /// Whether it is drawn in colour at first.
    pub chosen: bool,
    /// Whether it belongs to this project.
    pub ours: bool,
}

/// A workload's charts: one set at a time.
#[derive(Serialize)]
struct Drawn {
    workload: String,
    kind: String,
    tabs: Vec<Tab>,
}

#[derive(Serialize)]
struct Tab {
    label: String,
    verdict: String,
    charts: Vec<Chart>,
}

/// A chart: lines over a few places.
#[derive(Serialize)]
struct Chart {
    title: String,
    places: Vec<String>,
    /// The unit of a place, as in "2 threads".
    unit: &'static str,
    /// Whether the figures are factors instead of nanoseconds.
    factors: bool,
    lines: Vec<Curve>,
}

/// A line of a chart, with null where there is no figure.
#[derive(Serialize)]
struct Curve {
    name: String,
    ns: Vec<Option<f64>>,
    low: Vec<Option<f64>>,
    high: Vec<Option<f64>>,
    noisy: Vec<bool>,
}

#[derive(Serialize)]
struct Fragmentation {
    /// Operations before each sample.
    at: Vec<usize>,
    in_use: Vec<f64>,
    lines: Vec<Unusable>,
}

#[derive(Serialize)]
struct Unusable {
    name: String,
    percent: Vec<f64>,
}

/// A place of a chart, and the figure to show there.
type Place = (&'static str, fn(&Row) -> Option<f64>);

/// The back-ends that are drawn in colour at first, each for its family.
const CHOSEN: [&str; 7] =
    ["nbbs", "nbbs-cached", "linux", "linux-pcp", "nb4", "sl4", "frame-alloc"];

/// Returns whether a back-end is one of those, or one of the ways to use this project's that are measured beside each
/// other, as "nbbs exact".
fn is_chosen(name: &str) -> bool {
    CHOSEN.contains(&name) || name.starts_with("nbbs ")
}

/// The number of allocators of another kind that are drawn in colour at first.
const MOST_CHOSEN: usize = 7;

impl Charts {
    pub fn of(entries: &[Row], sections: &[Section<'_>], pictures: Option<&Pictures>) -> Self {
        Self {
            contenders: contenders(entries),
            sections: sections.iter().map(drawn).collect(),
            fragmentation: pictures.map(fragmentation),
        }
    }
}

fn contenders(entries: &[Row]) -> Vec<Shown> {
    let kinds = distinct(entries.iter().map(|entry| &*entry.kind));
    let of_kind = |kind: &str| {
        let rows: Vec<&Row> = entries.iter().filter(|entry| entry.kind == kind).collect();
        let mut names = distinct(rows.iter().map(|entry| &*entry.allocator));
        // The chosen ones come first, so that their colours differ.
        names.sort_by_key(|&name| {
            (kind == "backend" && !is_chosen(name), subject(kind) != Some(name))
        });
        let shown = |(colour, name): (usize, &str)| {
            let entry = rows.iter().find(|entry| entry.allocator == name)?;
            let is_usual = if kind == "backend" { is_chosen(name) } else { colour < MOST_CHOSEN };
            Some(Shown {
                name: name.to_owned(),
                label: entry.label(),
                kind: kind.to_owned(),
                colour,
                chosen: is_usual,
                ours: subject(kind) == Some(name),
            })
        };
        names.into_iter().enumerate().filter_map(shown).collect::<Vec<_>>()
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

fn drawn(section: &Section<'_>) -> Drawn {
    let tab = |variant: &Variant<'_>| Tab {
        label: variant.label.clone(),
        verdict: verdict(variant),
        charts: [
            beside_one(variant),
            over_threads(variant),
            percentiles(variant),
            suspended(variant),
        ]
        .into_iter()
        .flatten()
        .collect(),
    };
    Drawn {
        workload: section.workload.to_owned(),
        kind: section.kind.to_owned(),
        tabs: section.variants.iter().map(tab).collect(),
    }
}

/// Draws the time per operation over the number of threads, with the spread of the rounds.
fn over_threads(variant: &Variant<'_>) -> Option<Chart> {
    let curve = |line: &Line<'_>| {
        let of = |figure: fn(&Row) -> Option<f64>| {
            line.entries.iter().map(|entry| entry.and_then(figure)).collect::<Vec<_>>()
        };
        Curve {
            name: line.name.to_owned(),
            ns: of(|entry| entry.ns_per_op),
            low: of(|entry| Some(entry.spread()?.0)),
            high: of(|entry| Some(entry.spread()?.1)),
            noisy: line.entries.iter().map(|entry| entry.is_some_and(|e| e.noisy)).collect(),
        }
    };
    Chart {
        title: "time per operation, all threads together, by number of threads".to_owned(),
        places: variant.places(),
        unit: "threads",
        factors: false,
        lines: variant.lines.iter().map(curve).collect(),
    }
    .unless_empty()
}

/// Draws the throughput over the number of cores, if that was measured.
fn beside_one(variant: &Variant<'_>) -> Option<Chart> {
    let curve = |line: &Line<'_>| {
        let of = |entry: &Option<&Row>| entry.and_then(|entry| entry.figure("beside_one"));
        Curve::of(line, line.entries.iter().map(of).collect())
    };
    Chart {
        title: "throughput by number of cores, beside one core: higher is better".to_owned(),
        places: variant.places(),
        unit: "cores",
        factors: true,
        lines: variant.lines.iter().map(curve).collect(),
    }
    .unless_empty()
}

/// Draws single operations with the most threads.
fn percentiles(variant: &Variant<'_>) -> Option<Chart> {
    let (threads, count) = (variant.threads.last()?, variant.places().pop()?);
    let plural = if *threads == 1 { "" } else { "s" };
    let rows = variant.lines.iter().filter_map(Line::last);
    let step = rows.filter_map(|row| row.clock_step_ns).next();
    let step = step.map(|ns| format!(", in steps of the clock of {ns:.1} ns"));
    Chart::of_single_operations(
        format!("single operations, {count} thread{plural}{}", step.unwrap_or_default()),
        variant,
        &[
            ("median", |entry| entry.p50_ns),
            ("p99", |entry| entry.p99_ns),
            ("p99.9", |entry| entry.p999_ns),
            ("max", |entry| entry.max_ns),
        ],
    )
}

/// Draws what other threads notice of a thread that is suspended in the middle of an operation.
fn suspended(variant: &Variant<'_>) -> Option<Chart> {
    let is_known = |entry: &&Row| entry.figure("baseline_p999_ns").is_some();
    variant.lines.iter().flat_map(|line| &line.entries).flatten().find(|entry| is_known(entry))?;
    Chart::of_single_operations(
        "p99.9 of the other threads, while none and while one is suspended".to_owned(),
        variant,
        &[
            ("none", |entry| entry.figure("baseline_p999_ns")),
            ("one", |entry| entry.figure("baseline_p999_ns").and(entry.p999_ns)),
        ],
    )
}

impl Curve {
    /// Creates the curve of figures without a known spread.
    fn of(line: &Line<'_>, figures: Vec<Option<f64>>) -> Self {
        let unknown = || vec![None; figures.len()];
        Self {
            name: line.name.to_owned(),
            low: unknown(),
            high: unknown(),
            noisy: vec![false; figures.len()],
            ns: figures,
        }
    }
}

impl Chart {
    fn of_single_operations(
        title: String,
        variant: &Variant<'_>,
        places: &[Place],
    ) -> Option<Self> {
        let curve = |line: &Line<'_>| {
            let last = line.last();
            Curve::of(line, places.iter().map(|place| last.and_then(place.1)).collect())
        };
        Self {
            title,
            places: places.iter().map(|place| place.0.to_owned()).collect(),
            unit: "",
            factors: false,
            lines: variant.lines.iter().map(curve).collect(),
        }
        .unless_empty()
    }

    fn unless_empty(mut self) -> Option<Self> {
        self.lines.retain(|line| line.ns.iter().any(Option::is_some));
        (!self.lines.is_empty()).then_some(self)
    }
}

/// Names the fastest safe allocator with the most threads, and the next; or two between which it is undecided, and why.
pub fn verdict(variant: &Variant<'_>) -> String {
    let counts = |name: &str| name != FLOOR && name != BY_C;
    let safe = |row: &&Row| row.safe && counts(&row.allocator) && row.ns_per_op.is_some();
    let mut ranks: Vec<&Row> = variant.lines.iter().filter_map(Line::last).filter(safe).collect();
    ranks.sort_by(|one, other| one.ns_per_op.partial_cmp(&other.ns_per_op).expect("no NaN"));
    let threads = variant.threads.last().copied().unwrap_or(0);
    let count = variant.places().pop().unwrap_or_default();
    let with = if threads == 1 { format!("{count} thread") } else { format!("{count} threads") };
    let takes = |row: &Row| time(row.ns_per_op.unwrap_or(0.0));
    let Some((first, others)) = ranks.split_first() else {
        return format!("No safe allocator was measured with {with}.");
    };
    let (name, ns) = (first.label(), takes(first));
    if others.is_empty() {
        return format!("With {with} {name} takes {ns}.");
    }
    // Another front-end of nbbs says nothing about nbbs.
    let is_other = |row: &&&Row| !(is_ours(&first.allocator) && is_ours(&row.allocator));
    let mut rivals = others.iter().filter(is_other);
    let doubt = |row: &&Row| Rounds::of(first)?.doubt(&Rounds::of(row)?);
    let equal = rivals.clone().find_map(|row| Some((row, doubt(row)?)));
    match (equal, rivals.next()) {
        (Some((equal, why)), _) => format!(
            "With {with} it is undecided which safe one is the fastest: {name} takes {ns}, {} {}, and {why}.",
            equal.label(),
            takes(equal),
        ),
        (None, Some(next)) => {
            let next = format!("next {}: {}", next.label(), takes(next));
            format!("With {with} {name} is the fastest safe one: {ns}; {next}.")
        }
        (None, None) => format!("With {with} {name} is the fastest safe one: {ns}."),
    }
}

fn fragmentation(pictures: &Pictures) -> Fragmentation {
    let line = |picture: &super::pictures::Picture| Unusable {
        name: picture.contender.name.to_owned(),
        percent: picture.unusable.clone(),
    };
    Fragmentation {
        at: pictures.at.clone(),
        in_use: pictures.in_use.clone(),
        lines: pictures.pictures.iter().map(line).collect(),
    }
}
