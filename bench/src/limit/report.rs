//! What `bench limit` prints.

use comfy_table::Table;

use super::row::Row;
use crate::table::{bytes, table, time};

/// The pairs of one arena and number of threads: orders down, fills across.
pub fn pairs(rows: &[&Row]) -> String {
    let mut orders: Vec<u32> = rows.iter().map(|row| row.order).collect();
    orders.dedup();
    let in_order = |order: u32| {
        let mut rows: Vec<&Row> = rows.iter().filter(|row| row.order == order).copied().collect();
        rows.sort_by_key(|row| row.fill_percent);
        rows.into_iter()
    };
    let fills = in_order(orders.first().copied().unwrap_or(0)).map(|row| row.fill_percent);
    let heads: Vec<String> = fills.map(|fill| format!("{fill} % full")).collect();
    let mut header = vec!["order"];
    header.extend(heads.iter().map(String::as_str));
    header.extend(["bare CAS\npair", "RMW per\nalloc", "RMW per\nfree"]);
    let mut table = table(&header, 0);
    for order in orders {
        let mut cells = vec![order.to_string()];
        cells.extend(in_order(order).map(pair));
        let bare = in_order(order).map(|row| row.bare_cas_ns);
        cells.push(time(bare.clone().sum::<f64>() / bare.count() as f64));
        cells.push(largest(in_order(order).filter_map(|row| row.rmw_per_alloc)));
        cells.push(largest(in_order(order).filter_map(|row| row.rmw_per_free)));
        table.add_row(cells);
    }
    titled("alloc/free pairs", rows, &table)
}

/// `33.0 ns 1.40x`, and on several threads how much slower than alone.
fn pair(row: &Row) -> String {
    let beside = match row.alone_ns {
        Some(alone) => format!(" {:+.0} %", (row.ns / alone - 1.0) * 100.0),
        None => String::new(),
    };
    format!("{} {:.2}x{beside}", time(row.ns), row.ratio)
}

fn largest(figures: impl Iterator<Item = f64>) -> String {
    format!("{:.2}", figures.fold(0.0, f64::max))
}

fn titled(what: &str, rows: &[&Row], table: &Table) -> String {
    let Some(row) = rows.first() else { return String::new() };
    let threads =
        if row.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", row.threads) };
    format!("{what}, {} in 4 KiB units, {threads}\n{table}\n", bytes(row.arena_bytes))
}

/// Pairs of one arena by each of the ways to ask for a block.
pub fn ways(rows: &[&Row]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let header =
        ["threads", "by", "a pair", "bare CAS\npair", "ratio", "a tenth\nbelow", "a tenth\nabove"];
    let mut table = table(&header, 1);
    for row in rows {
        table.add_row([
            row.threads.to_string(),
            row.by.unwrap_or_default().to_owned(),
            time(row.ns),
            time(row.bare_cas_ns),
            format!("{:.2}x", row.ratio),
            row.p10_ns.map_or_else(String::new, time),
            row.p90_ns.map_or_else(String::new, time),
        ]);
    }
    format!(
        "pairs of order {} as they can be called, {} in 4 KiB units\n{table}\n",
        first.order,
        bytes(first.arena_bytes)
    )
}

/// Bulk and random free, all arenas.
pub fn bulk(rows: &[&Row]) -> String {
    let header = [
        "arena",
        "threads",
        "case",
        "per\noperation",
        "one bare\nCAS",
        "ratio",
        "alloc",
        "free",
        "bare CAS\nthere",
        "RMW per\nalloc",
        "RMW per\nfree",
    ];
    let mut table = table(&header, 0);
    let figure = |figure: Option<f64>| figure.map_or_else(String::new, time);
    let steps = |steps: Option<f64>| steps.map_or_else(String::new, |steps| format!("{steps:.2}"));
    for row in rows {
        table.add_row([
            bytes(row.arena_bytes),
            row.threads.to_string(),
            row.case.to_owned(),
            time(row.ns),
            time(row.bare_cas_ns),
            format!("{:.2}x", row.ratio),
            figure(row.alloc_ns),
            figure(row.free_ns),
            figure(row.floor_ns),
            steps(row.rmw_per_alloc),
            steps(row.rmw_per_free),
        ]);
    }
    format!("half the arena in blocks of order 0, allocated and freed\n{table}\n")
}

/// Refused allocations, all arenas.
pub fn fail(rows: &[&Row]) -> String {
    let header = ["arena", "state", "order", "refusal", "the first", "p99", "RMW"];
    let mut table = table(&header, 0);
    for row in rows {
        table.add_row([
            bytes(row.arena_bytes),
            row.state.unwrap_or_default().to_owned(),
            row.order.to_string(),
            time(row.ns),
            row.first_ns.map_or_else(String::new, time),
            row.p99_ns.map_or_else(String::new, time),
            row.rmw_per_alloc.map_or_else(String::new, |steps| format!("{steps:.2}")),
        ]);
    }
    format!("allocations that are refused\n{table}\n")
}

/// The worst cases, in plain words.
pub fn worst(rows: &[Row]) -> String {
    let pairs = || rows.iter().filter(|row| row.case == "pair");
    let place = |row: &Row| {
        format!("order {}, {}, {} % full", row.order, bytes(row.arena_bytes), row.fill_percent)
    };
    let mut lines = Vec::new();
    for (name, orders) in [("0 to 4", 0..=4), ("5 to 9", 5..=9)] {
        let single = pairs().filter(|row| row.threads == 1 && orders.contains(&row.order));
        if let Some(row) = single.max_by(|a, b| a.ratio.total_cmp(&b.ratio)) {
            let (ratio, place) = (row.ratio, place(row));
            lines.push(format!(
                "Pairs of orders {name}: at most {ratio:.2} x bare CAS pairs ({place})."
            ));
        }
    }
    let slowdown = |row: &Row| row.ns / row.alone_ns.unwrap_or(row.ns);
    let shared = pairs().filter(|row| row.threads > 1);
    if let Some(row) = shared.max_by(|a, b| slowdown(a).total_cmp(&slowdown(b))) {
        let percent = (slowdown(row) - 1.0) * 100.0;
        let (threads, place) = (row.threads, place(row));
        lines.push(format!(
            "Pairs on {threads} threads: at most {percent:+.0} % beside one alone ({place})."
        ));
    }
    let most = |steps: fn(&Row) -> Option<f64>| largest(pairs().filter_map(steps));
    let (alloc, free) = (most(|row| row.rmw_per_alloc), most(|row| row.rmw_per_free));
    lines.push(format!("Read-modify-writes of pairs: at most {alloc} per alloc, {free} per free."));
    lines.extend(unrest(&pairs().collect::<Vec<_>>()));
    lines.join("\n") + "\n"
}

/// Says so if the rounds differ, as they do beside other programs or on a busy host.
fn unrest(pairs: &[&Row]) -> Option<String> {
    let differ = |row: &&&Row| row.p90_ns > row.p10_ns.map(|ns| ns * 1.25);
    let (unsteady, all) = (pairs.iter().filter(differ).count(), pairs.len());
    let line = format!(
        "The machine was busy: in {unsteady} of {all} cases the slow rounds took 25 % more than the fast."
    );
    (unsteady * 10 > all).then_some(line)
}

/// How to read the figures.
pub const FOOTER: &str = "\
A pair is an allocation and a free of the same block. A bare CAS pair is two dependent
compare-and-swaps on a word that nobody else uses. The two are timed in alternation, in
stretches of 20,000; times are medians over the rounds, ratios medians of the rounds'
ratios. N % full: every block of the order is allocated, then a random share freed.
On several threads: the slowest of them, and how it compares with one while the others
sleep. RMW: read-modify-writes, counted on a copy of the arena; the most in the row.
As they can be called: nothing else is allocated; a cache has what is asked for.
Bulk and random free: per operation (bulk: the mean of both) beside one bare CAS, timed
in stretches of 16,384, of which the median of 15 stands for all 15. \"Bare CAS there\":
one for each free on words that lie as the leaf words do, in the same order: the cache
misses that nobody can avoid. Refused: full (every unit in use), fragmented (every
second unit in use), sprinkled (one unit in each 2 MiB in use).";
