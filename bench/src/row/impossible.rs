//! Figures that no measurement can have.

use serde_json::Value;

use super::{Figures, Row};
use crate::args::{MAX_THREADS, UNIT_BYTES};

/// The most bytes of an arena, and so of a block.
const MAX_BYTES: u64 = nbbs::MAX_UNITS * UNIT_BYTES;

/// Names the first figure of a row that no measurement can have, and the limit that it breaks.
pub fn impossible(row: &Row) -> Option<String> {
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
    outside.or_else(|| negative(row)).or_else(|| disordered(row)).or_else(|| beyond(&row.more))
}

/// Names the first figure that is below 0: nothing that is measured can be.
fn negative(row: &Row) -> Option<String> {
    let figures = [
        ("ops_per_s", row.ops_per_s),
        ("ns_per_op", row.ns_per_op),
        ("min_ns_per_op", row.min_ns_per_op),
        ("max_ns_per_op", row.max_ns_per_op),
        ("mean_ns", row.mean_ns),
        ("p50_ns", row.p50_ns),
        ("p99_ns", row.p99_ns),
        ("p999_ns", row.p999_ns),
        ("max_ns", row.max_ns),
        ("rmw_per_op", row.rmw_per_op),
        ("failed_cas_per_op", row.failed_cas_per_op),
        ("lines_written_per_op", row.lines_written_per_op),
        ("instructions_per_op", row.instructions_per_op),
    ];
    let own = row.more.0.iter().map(|(key, figure)| (&**key, figure.as_f64()));
    let all = figures.into_iter().chain(own);
    all.filter_map(|(key, figure)| Some((key, figure?)))
        .find_map(|(key, figure)| (figure < 0.0).then(|| format!("{key} is {figure}, below 0")))
}

/// Says so if the fastest round is slower than the slowest. (The median may lie outside: with several threads it is that
/// of the slowest thread, and the spread that of the first.)
fn disordered(row: &Row) -> Option<String> {
    let (min, max) = row.min_ns_per_op.zip(row.max_ns_per_op)?;
    (min > max).then(|| format!("min_ns_per_op is {min}, above max_ns_per_op, {max}"))
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
        let figure = Value::as_f64(figure)?;
        (figure > f64::from(whole)).then(|| format!("{key} is {figure}, above {whole}"))
    })
}
