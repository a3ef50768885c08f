//! `nbbs bench cores`: up to 64 cores, simulated.

use anyhow::ensure;

use crate::cores::args::Cores;
use crate::cores::plan::{COUNTERS, Contender, Loop};
use crate::cores::row::Case;
use crate::cores::run::Request;
use crate::cores::tools::Tools;
use crate::cores::{judge, report};
use crate::output::Output;
use crate::row::Row;

/// Runs the command.
pub fn run(args: &Cores) -> anyhow::Result<bool> {
    let harts = args.harts();
    let loops = args.loops();
    let of_loops = loops.iter().map(|of| series(args, of).len()).sum::<usize>();
    ensure!(of_loops > 0, "none of these allocators takes part in any of these loops");
    let tools = Tools::bring()?;
    let output = args.keep.output((of_loops + series(args, &COUNTERS).len()) * harts.len())?;
    let mut bench = Bench { args, harts, tools, output };
    let counters = bench.measure(&COUNTERS)?;
    for private in counters.iter().filter(|row| row.allocator == "private") {
        let is_shared = |row: &&Row| row.allocator == "shared" && row.threads == private.threads;
        let shared = counters.iter().find(is_shared).expect("both take part on all harts");
        judge::machine(private, shared)?;
    }
    for of in loops {
        bench.measure(of)?;
    }
    bench.output.finish(report::FOOTER)
}

/// The orders of a loop, and who takes part at each. The counters always do.
fn series(args: &Cores, of: &'static Loop) -> Vec<(Option<u32>, &'static Contender)> {
    let takes_part = |order: Option<u32>, contender: &Contender| {
        (args.wants(contender) || std::ptr::eq(of, &raw const COUNTERS))
            && (!contender.units_only || order == Some(0))
    };
    let contenders = |order| of.contenders.iter().map(move |&contender| (order, contender));
    let all = args.orders(of).into_iter().flat_map(contenders);
    all.filter(|&(order, contender)| takes_part(order, contender)).collect()
}

struct Bench<'a> {
    args: &'a Cores,
    harts: Vec<usize>,
    tools: Tools,
    output: Output,
}

impl Bench<'_> {
    /// All who take part in a loop, at all orders, on all numbers of harts.
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

    /// One contender on all numbers of harts.
    fn scale(
        &mut self,
        of: &Loop,
        contender: &Contender,
        order: Option<u32>,
    ) -> anyhow::Result<Vec<Row>> {
        let (mut one, mut rows) = (None, Vec::new());
        let depth = self.args.depth();
        for &harts in &self.harts {
            self.output.bar.set_message(format!("{}: {}, {harts} harts", of.name, contender.name));
            if !contender.comes(harts, depth) {
                self.output.bar.inc(1);
                continue;
            }
            let machine = self.args.machine.name();
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
            if self.args.check && of.shares_nothing && contender.ours {
                row.violation = judge::shares(&row);
                row.verified = row.violation.is_none();
            }
            self.output.add(std::slice::from_ref(&row))?;
            self.output.bar.inc(1);
            rows.push(row);
        }
        Ok(rows)
    }
}
