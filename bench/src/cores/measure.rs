//! Measures all loops, contender by contender.

use super::args::Machine;
use super::cases::{Cases, CoresTable, Line, allocators};
use super::plan::{BARE, Depth};
use super::row::CoresCase;
use super::run::Request;
use super::tools::Tools;
use super::{judge, report};
use crate::clock::Clock;
use crate::output::Output;
use crate::row::Row;
use crate::suite::args::Suite;
use crate::suite::workloads::{self, Workload};

/// What `bench cores` measures.
pub const CASES: workloads::Cases = workloads::Cases {
    steps: |workload, args| Cases::new(workload, args).count(),
    run,
    allocators,
    runs_on: "the allocators of its loops",
    options: &["--arena", "--orders", "--loops", "--machine", "--long", "--check"],
    left_out: |workload, args| Ok(Cases::new(workload, args).skipped),
};

fn run(workload: &Workload, args: &Suite, _: &Clock, output: &mut Output) -> anyhow::Result<()> {
    let Cases { depth, counters, tables, .. } = Cases::new(workload, args);
    let mut bench = Bench { args, depth, tools: Tools::bring()?, output, bare: None };
    let counters = bench.measure(&counters)?;
    judge_counters(args.cores.machine.unwrap_or_default(), &counters)?;
    tables.iter().try_for_each(|table| bench.measure(table).map(|_| ()))
}

/// Judges the machine by its counters.
fn judge_counters(machine: Machine, counters: &[Row]) -> anyhow::Result<()> {
    for private in counters.iter().filter(|row| row.allocator == "private") {
        let is_shared = |row: &&Row| row.allocator == "shared" && row.threads == private.threads;
        let shared = counters.iter().find(is_shared).expect("both take part on all harts");
        judge::counters(machine, private, shared)?;
    }
    Ok(())
}

struct Bench<'a> {
    args: &'a Suite,
    depth: Depth,
    tools: Tools,
    output: &'a mut Output,
    /// The cycles of a pair of bare compare-and-swaps on one hart, once they are known.
    bare: Option<f64>,
}

impl Bench<'_> {
    /// Measures all lines of a table.
    fn measure(&mut self, table: &CoresTable) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for line in &table.lines {
            rows.extend(self.scale(table, line)?);
        }
        self.output.print(|| report::table(table.of, &rows))?;
        Ok(rows)
    }

    /// Measures one contender on all numbers of harts.
    fn scale(&mut self, table: &CoresTable, line: &Line) -> anyhow::Result<Vec<Row>> {
        let (of, &Line { contender, order, ref harts }) = (table.of, line);
        let (mut one, mut rows) = (None, Vec::new());
        for &harts in harts {
            self.output.bar.set_message(format!("{}: {}, {harts} cores", of.name, contender.name));
            let outcome = self.request(table, line, harts).run(&self.tools)?;
            if harts == 1 {
                one = Some(outcome.per_second());
                if std::ptr::eq(contender, &raw const BARE) {
                    self.bare = Some(outcome.cycles_per_op());
                }
            }
            let machine = self.args.cores.machine.unwrap_or_default().name();
            let case = CoresCase { of, contender, order, units: table.units, harts, machine };
            let mut row = case.row(&outcome, one, self.bare);
            if self.args.cores.check && of.shares_nothing && contender.ours {
                row.violation = judge::shares(&row);
                // Scaling says nothing about correctness, so this may only find fault.
                row.verified = row.violation.is_some().then_some(false);
            }
            self.output.add(std::slice::from_ref(&row))?;
            self.output.bar.inc(1);
            rows.push(row);
        }
        Ok(rows)
    }

    /// Returns what is asked of the program.
    fn request<'a>(&self, table: &'a CoresTable, line: &Line, harts: usize) -> Request<'a> {
        let (warm_up, operations) = line.contender.operations(harts, self.depth);
        Request {
            machine: self.args.cores.machine.unwrap_or_default().name(),
            harts,
            name: table.of.name,
            contender: line.contender.name,
            order: line.order.unwrap_or(0),
            units: table.units.unwrap_or(0),
            warm_up,
            operations,
        }
    }
}
