//! Figures that no measurement can have.

use serde_json::Value;

use super::{Figures, Row};
use crate::args::{MAX_THREADS, UNIT_BYTES};

/// The most bytes of an arena, and so of a block.
const MAX_BYTES: u64 = nbbs::MAX_UNITS * UNIT_BYTES;

/// The most of anything: what a counter of 64 bits holds. As a time it is 584 years.
const MOST: u64 = u64::MAX;

/// Names the first figure of a row that no measurement can have, and the limit that it breaks; `read` is what the row
/// was read from.
pub fn impossible(row: &Row, read: &Value) -> Option<String> {
    let order = row.order.map(u64::from);
    let counts = [
        ("threads", Some(row.threads as u64), 1, MAX_THREADS as u64),
        ("order", order, 0, nbbs::MAX_UNITS.ilog2().into()),
        ("size_bytes", row.size_bytes, 1, MAX_BYTES),
        ("arena_bytes", row.arena_bytes, 1, MAX_BYTES),
    ];
    let outside = counts.into_iter().find_map(|(key, count, least, most)| match count? {
        count if count < least => Some(format!("{key} is {count}, below {least}")),
        count if count > most => Some(format!("{key} is {count}, above {most}")),
        _ => None,
    });
    outside.or_else(|| disordered(row, read)).or_else(|| beyond(&row.more))
}

/// Names the first figure that is below 0 or above [`MOST`], of whatever is measured, as the record has it.
pub fn outlying(read: &Value) -> Option<String> {
    read.as_object()?.iter().find_map(|(key, figure)| match figure.as_f64()? {
        below if below < 0.0 => Some(format!("{key} is {figure}, below 0")),
        above if above > MOST as f64 => Some(format!("{key} is {figure}, above {MOST}")),
        _ => None,
    })
}

/// Says so if the fastest round is slower than the slowest. (The median may lie outside: with several threads it is
/// that of the slowest thread, and the spread that of the first.)
fn disordered(row: &Row, read: &Value) -> Option<String> {
    let (min, max) = row.min_ns_per_op.zip(row.max_ns_per_op)?;
    let [least, most] = [&read["min_ns_per_op"], &read["max_ns_per_op"]];
    (min > max).then(|| format!("min_ns_per_op is {least}, above max_ns_per_op, {most}"))
}

/// Names the first share of something that is more than the whole.
fn beyond(figures: &Figures) -> Option<String> {
    figures.0.iter().find_map(|(key, figure)| {
        let whole = match &**key {
            "success_rate" => 1,
            key if key.ends_with("_percent") => 100,
            key if key.ends_with("_permille") => 1000,
            _ => return None,
        };
        (figure.as_f64()? > f64::from(whole)).then(|| format!("{key} is {figure}, above {whole}"))
    })
}
