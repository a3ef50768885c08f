//! What rows of one workload have that no others have: how it is made, and what the table says of it.

use super::round::Outcome;
use crate::args::UNIT_BYTES;
use crate::median::{hundredths, median};
use crate::row::Row;
use crate::table::{Column, most, or_dash, time};

/// A figure of one workload's rows.
pub struct Own {
    /// Fills it in, from the rounds.
    pub set: fn(&mut Row, &[Outcome]),
    /// How the table shows it.
    pub column: Column<'static>,
}

/// Of the frames of 2 MiB that could be free, those that are.
pub static RECOVERED: Own = Own {
    set: |row, rounds| {
        let recovered = rounds.iter().filter_map(|round| round.recovered_percent);
        row.recovered_percent = row.complete.then(|| hundredths(median(recovered)));
    },
    column: ("2 MiB free", |rows| {
        or_dash(most(rows).recovered_percent, |percent| format!("{percent:.1} %"))
    }),
};

/// Memory handed out in a second, unit by unit.
pub static SPEED: Own = Own {
    set: |row, _| {
        let gib_per_ns = |ns: f64| UNIT_BYTES as f64 / ns / (1_u64 << 30) as f64;
        row.gib_per_s = row.ns_per_op.map(|ns| hundredths(gib_per_ns(ns) * 1e9));
    },
    column: ("GiB/s", |rows| or_dash(most(rows).gib_per_s, |figure| format!("{figure:.1}"))),
};

/// How often the others waited for a thread that was suspended; its own module fills it in.
pub static STALLED: Own = Own {
    set: |_, _| {},
    column: ("stalled, p99.9 if not", |rows| {
        let row = most(rows);
        let Some((stalled, of)) = row.stalled.zip(row.suspensions) else { return "-".to_owned() };
        format!("{stalled} of {of}, {}", or_dash(row.baseline_p999_ns, time))
    }),
};
