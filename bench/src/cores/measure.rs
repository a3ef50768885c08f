//! Measures all loops, contender by contender.

use super::plan::{COUNTERS, Contender, Depth, LOOPS, Loop};
use super::row::Case;
use super::run::Request;
use super::tools::Tools;
use super::{judge, report};
use crate::clock::Clock;
use crate::output::Output;
use crate::row::Row;
use crate::suite::args::Suite;
use crate::suite::workloads::{Cases, Workload};

/// What `bench cores` measures.
pub const CASES: Cases = Cases { steps, run };

/// Returns 0 if no contender takes part except the counters, which always do.
fn steps(workload: &Workload, args: &Suite) -> usize {
    let of_loops: usize = loops(args).iter().map(|of| series(args, of).len()).sum();
    let counters = if of_loops > 0 { series(args, &COUNTERS).len() } else { 0 };
    (of_loops + counters) * harts(workload, args).len()
}

fn run(workload: &Workload, args: &Suite, _: &Clock, output: &mut Output) -> anyhow::Result<()> {
    let mut bench = Bench { args, harts: harts(workload, args), tools: Tools::bring()?, output };
    let counters = bench.measure(&COUNTERS)?;
    for private in counters.iter().filter(|row| row.allocator == "private") {
        let is_shared = |row: &&Row| row.allocator == "shared" && row.threads == private.threads;
        let shared = counters.iter().find(is_shared).expect("both take part on all harts");
        judge::machine(private, shared)?;
    }
    loops(args).iter().try_for_each(|of| bench.measure(of).map(|_| ()))
}

/// Returns 1 and the numbers of cores asked for, or the usual ones: each once, ascending.
fn harts(workload: &Workload, args: &Suite) -> Vec<usize> {
    let mut harts = args.threads(workload);
    harts.push(1);
    harts.sort_unstable();
    harts.dedup();
    harts
}

/// Returns the loops asked for, or the usual ones.
fn loops(args: &Suite) -> Vec<&'static Loop> {
    let usual = if args.quick { &LOOPS[..1] } else { LOOPS };
    if args.cores.loops.is_empty() { usual.iter().collect() } else { args.cores.loops.clone() }
}

/// Returns the orders of a loop, or the first of them with --quick, and the contenders at each.
fn series(args: &Suite, of: &'static Loop) -> Vec<(Option<u32>, &'static Contender)> {
    let takes_part = |order: Option<u32>, contender: &Contender| {
        let is_named = !args.allocators.is_empty() && args.takes_part(contender.name);
        let is_usual = args.allocators.is_empty() && !contender.patient;
        (is_named || is_usual || std::ptr::eq(of, &raw const COUNTERS))
            && (!contender.units_only || order == Some(0))
    };
    let most = if args.quick { 1 } else { usize::MAX };
    let mut orders: Vec<_> = of.orders.iter().take(most).map(|&order| Some(order)).collect();
    if orders.is_empty() {
        orders.push(None);
    }
    let contenders = |order| of.contenders.iter().map(move |&contender| (order, contender));
    let all = orders.into_iter().flat_map(contenders);
    all.filter(|&(order, contender)| takes_part(order, contender)).collect()
}

struct Bench<'a> {
    args: &'a Suite,
    harts: Vec<usize>,
    tools: Tools,
    output: &'a mut Output,
}

impl Bench<'_> {
    /// Measures all contenders of a loop, at all orders, on all numbers of harts.
    fn measure(&mut self, of: &'static Loop) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for (order, contender) in series(self.args, of) {
            rows.extend(self.scale(of, contender, order)?);
        }
        if rows.is_empty() {
            return Ok(rows);
        }
        self.output.print(|| report::table(of, &rows))?;
        Ok(rows)
    }

    /// Measures one contender on all numbers of harts.
    fn scale(
        &mut self,
        of: &Loop,
        contender: &Contender,
        order: Option<u32>,
    ) -> anyhow::Result<Vec<Row>> {
        let (mut one, mut rows) = (None, Vec::new());
        let depth = match (self.args.quick, self.args.cores.long) {
            (true, _) => Depth::Quick,
            (_, true) => Depth::Long,
            _ => Depth::Usual,
        };
        for &harts in &self.harts {
            self.output.bar.set_message(format!("{}: {}, {harts} harts", of.name, contender.name));
            if !contender.comes(harts, depth) {
                self.output.bar.inc(1);
                continue;
            }
            let machine = self.args.cores.machine.name();
            let (warm_up, operations) = contender.operations(harts, depth);
            let request = Request {
                machine,
                harts,
                name: of.name,
                contender: contender.name,
                order: order.unwrap_or(0),
                units: of.units.unwrap_or(0),
                warm_up,
                operations,
            };
            let outcome = request.run(&self.tools)?;
            one = if harts == 1 { Some(outcome.per_second()) } else { one };
            let mut row = Case { of, contender, order, harts, machine }.row(&outcome, one);
            if self.args.cores.check && of.shares_nothing && contender.ours {
                row.violation = judge::shares(&row);
                row.verified = row.violation.is_some().then_some(false);
            }
            self.output.add(std::slice::from_ref(&row))?;
            self.output.bar.inc(1);
            rows.push(row);
        }
        Ok(rows)
    }
}
