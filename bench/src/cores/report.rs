//! The tables of `bench cores`.

use super::plan::Loop;
use crate::row::Row;
use crate::table::{Across, Layout, or_dash, time};

/// Throughput beside one core, by number of cores, and the cost with the most cores.
pub static LAYOUT: Layout<'static> = Layout {
    lines: &[
        ("allocator", Row::label),
        ("order", |row| row.order.map_or("-".to_owned(), |order| order.to_string())),
    ],
    across: Some(Across {
        place: |row| row.threads as u64,
        title: |harts| if harts == 1 { "1 core".to_owned() } else { format!("{harts} cores") },
        cell: |row| or_dash(row.figure("beside_one"), |times| format!("{times:.2}x")),
    }),
    more: &[
        ("cycles a pair,\nfewest cores", |rows| figure(rows.first(), "cycles_per_pair", 0)),
        ("in bare\npairs", |rows| figure(rows.first(), "bare_pairs_per_pair", 1)),
        ("and most", |rows| figure(rows.last(), "cycles_per_pair", 0)),
        ("of the\nmedian core", |rows| figure(rows.last(), "median_cycles_per_pair", 0)),
        ("an operation,\nall together", |rows| {
            or_dash(rows.last().and_then(|row| row.ns_per_op), time)
        }),
        ("transfers\na pair", |rows| figure(rows.last(), "transfers_per_pair", 2)),
        ("instructions\nan operation", |rows| {
            or_dash(rows.last().and_then(|row| row.instructions_per_op), |count| {
                format!("{count:.0}")
            })
        }),
    ],
    left: 1,
};

fn figure(row: Option<&&Row>, name: &str, digits: usize) -> String {
    or_dash(row.and_then(|row| row.figure(name)), |figure| format!("{figure:.digits$}"))
}

/// Returns the table of a loop.
pub fn table(of: &Loop, rows: &[Row]) -> String {
    let rows: Vec<&Row> = rows.iter().collect();
    let arena = rows[0]
        .arena_bytes
        .map_or(String::new(), |bytes| format!(", {} in 4 KiB units", crate::table::bytes(bytes)));
    let wrong = rows.iter().filter_map(|row| row.violation.as_ref());
    let wrong: String = wrong.map(|what| format!("WRONG: {what}\n")).collect();
    format!("{}: {}{arena}\n{}\n{wrong}", of.name, of.about, LAYOUT.table(&rows))
}

/// Explains how to read the figures, and what they do not say.
pub const FOOTER: &str = "\
The machine is simulated by rvsim 2.1.0: out-of-order RISC-V cores with private caches, kept
coherent by MESI with a snoop filter over a mesh. bench/cores/machine.py has its parameters.
Figures are throughput beside that of one core; quote these, not cycles. The last five columns
are those of the most cores. Bare pairs: what a pair takes on the fewest cores, in pairs of
compare-and-swaps on a word of the core's own. Transfers: lines that moved from one core's caches
to another's. Limits of the simulator: one home node serves all lines; there is no SMT, no NUMA,
no interrupt; its memory ordering has not been tested. A contended line is cheaper than on servers
(on `--machine far` it comes from further away, over narrower links), but LR/SC asks for it twice,
so contended compare-and-swaps are dearer than on x86. Sequentially consistent loads take fences
on RISC-V. An unfair lock starves cores where nothing disturbs its rhythm, so the locks here are
ticket locks and queued locks (MCS).
UNSAFE: hands out memory twice. nb1 and nb4 have blocks up to order 11, as in their paper;
nb4-whole has blocks up to the arena, as nbbs has. Nothing is verified here: other commands
verify the same code.";
