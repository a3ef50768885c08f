//! `nbbs bench pool`: objects of 48 bytes from arenas, pools and heaps.

use std::time::Duration;

use anyhow::ensure;
use clap::ValueEnum;

use crate::args::Pool;
use crate::cmd::{print, print_json};
use crate::pool::{CONTENDERS, Case, Contender, Plan, Row, names};
use crate::progress;
use crate::table::table;

/// Runs the command.
pub fn run(args: &Pool) -> anyhow::Result<bool> {
    let contenders = contenders(args)?;
    let cases = if args.cases.is_empty() { Case::value_variants() } else { &args.cases };
    let threads = if args.quick { &[1, 2, 8, 16][..] } else { &args.threads };
    let bar = progress::bar(cases.len() * threads.len());
    let mut all_verified = true;
    for &case in cases {
        let mut rows = Vec::new();
        for &threads in threads {
            let plan = plan(args, case, threads);
            bar.set_message(format!("{case:?}, {threads} threads"));
            let from = rows.len();
            rows.extend(measure(args, &plan, &contenders));
            if args.json {
                rows[from..].iter().try_for_each(|row| bar.suspend(|| print_json(row)))?;
            }
            bar.inc(1);
        }
        all_verified &= rows.iter().all(|row| row.verified || !row.safe);
        if !args.json && !rows.is_empty() {
            bar.suspend(|| print(&report(case, threads, &contenders, &rows)))?;
        }
    }
    bar.finish_and_clear();
    Ok(all_verified)
}

fn contenders(args: &Pool) -> anyhow::Result<Vec<&'static Contender>> {
    let known = |name: &String| CONTENDERS.iter().any(|contender| contender.name == name);
    if let Some(unknown) = args.allocators.iter().find(|name| !known(name)) {
        let names = names(", ");
        ensure!(false, "there is no allocator {unknown:?} here; there are: {names}");
    }
    let asked = |contender: &&Contender| {
        args.allocators.is_empty() || args.allocators.iter().any(|name| name == contender.name)
    };
    Ok(CONTENDERS.iter().filter(asked).collect())
}

fn plan(args: &Pool, case: Case, threads: usize) -> Plan {
    let pairs = if args.quick { 1_000_000 } else { args.pairs };
    let most = Duration::from_secs_f64(if args.quick { 0.2 } else { args.seconds });
    Plan { case, threads, pairs, most }
}

/// Everyone in turn, round by round: what disturbs one round disturbs all.
fn measure(args: &Pool, plan: &Plan, contenders: &[&'static Contender]) -> Vec<Row> {
    let able = |contender: &&&Contender| {
        let alone = plan.threads == 1 && plan.case != Case::Handover;
        plan.is_possible() && (contender.shared || alone)
    };
    let able: Vec<_> = contenders.iter().filter(able).collect();
    let mut figures = vec![Vec::new(); able.len()];
    for _ in 0..args.rounds {
        for (contender, figures) in able.iter().zip(&mut figures) {
            figures.push((contender.run)(plan));
        }
    }
    able.iter().zip(&figures).map(|(contender, rounds)| Row::new(contender, plan, rounds)).collect()
}

/// A line for each allocator, a column for each number of threads.
fn report(case: Case, threads: &[usize], contenders: &[&Contender], rows: &[Row]) -> String {
    let title = format!("{case:?}: ns per operation, all threads together").to_lowercase();
    let mut header = vec![title];
    header.extend(threads.iter().map(|threads| format!("{threads}")));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = table(&header, 1);
    for contender in contenders {
        let cell = |threads: usize| {
            let mut of = rows.iter().filter(|row| row.allocator == contender.name);
            let row = of.find(|row| row.threads == threads);
            row.map_or("-".to_owned(), |row| {
                format!("{:.2}{}", row.ns_per_op, if row.verified { "" } else { " WRONG" })
            })
        };
        let cells: Vec<String> = threads.iter().map(|&threads| cell(threads)).collect();
        if cells.iter().any(|cell| cell != "-") {
            let safe = if contender.safe { "" } else { " (UNSAFE)" };
            table.add_row([vec![format!("{}{safe}", contender.name)], cells].concat());
        }
    }
    table.to_string()
}
