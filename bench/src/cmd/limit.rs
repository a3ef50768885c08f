//! `nbbs bench limit`: single operations against the bare compare-and-swap.

use anyhow::ensure;

use crate::args::{self, Limit, UNIT_BYTES};
use crate::clock::Clock;
use crate::limit::arena::{Arena, shuffled};
use crate::limit::fail::State;
use crate::limit::report::{self, Table};
use crate::limit::ways::Way;
use crate::limit::{bulk, fail, pairs, row, ways};
use crate::output::Output;
use crate::row::Row;
use crate::table::bytes;

/// The most units of an arena: half of them are listed by 32-bit number.
const MAX_UNITS: u64 = 1 << 32;

/// Runs the command.
pub fn run(args: &Limit) -> anyhow::Result<bool> {
    let arenas = args.arenas();
    let largest = args.orders.iter().max().map_or(0, |&order| order);
    for args::Arena { units } in &arenas {
        let (least, most) = (4 << largest, MAX_UNITS);
        ensure!(
            (least..=most).contains(units),
            "an arena of {}: orders up to {largest} take {} to {}",
            bytes(units * UNIT_BYTES),
            bytes(least * UNIT_BYTES),
            bytes(most * UNIT_BYTES),
        );
    }
    let steps = arenas.len()
        * (args.orders.len() * args.fills.len() + 2 * args.threads.len() + State::ALL.len());
    let mut bench =
        Bench { args, clock: Clock::new(), output: args.keep.output(steps)?, rows: Vec::new() };
    for arena in arenas {
        bench.measure(&Arena::new(arena.units))?;
    }
    let Bench { output, rows, .. } = bench;
    output.print(|| report::worst(&rows))?;
    output.finish(report::FOOTER)
}

struct Bench<'a> {
    args: &'a Limit,
    clock: Clock,
    output: Output,
    rows: Vec<Row>,
}

impl Bench<'_> {
    /// All cases on one arena.
    fn measure(&mut self, arena: &Arena) -> anyhow::Result<()> {
        let from = self.rows.len();
        for &order in &self.args.orders {
            self.pairs(arena, order)?;
        }
        for &threads in &self.args.threads {
            self.print_table(from, &report::PAIRS, |row| row.threads == threads)?;
        }
        for &threads in &self.args.threads {
            self.ways(arena, threads)?;
        }
        self.print_table(from, &report::WAYS, |_| true)?;
        arena.empty();
        for &threads in &self.args.threads {
            self.bulk(arena, threads)?;
        }
        self.print_table(from, &report::BULK, |_| true)?;
        arena.empty();
        for state in State::ALL {
            self.fail(arena, state)?;
        }
        self.print_table(from, &report::FAIL, |_| true)
    }

    /// Pairs of one order: on the empty arena, then filled up once and thinned out step by step.
    fn pairs(&mut self, arena: &Arena, order: u32) -> anyhow::Result<()> {
        let mut fills = self.args.fills.clone();
        fills.sort_unstable();
        fills.dedup();
        arena.empty();
        if fills.first() == Some(&0) {
            fills.remove(0);
            self.pairs_at(arena, order, 0)?;
        }
        if fills.is_empty() {
            return Ok(());
        }
        arena.fill(order)?;
        let blocks = arena.units() >> order;
        let mut freed = 0;
        for fill in fills.into_iter().rev() {
            // Whatever the share, a free block for each thread, and one more.
            let least = self.args.threads.iter().max().map_or(1, |&threads| threads as u64 + 1);
            let free = (blocks * u64::from(100 - fill) / 100).max(least).min(blocks);
            arena.free(order, freed..free, |place| Some(shuffled(place, blocks)))?;
            freed = free;
            self.pairs_at(arena, order, fill)?;
        }
        Ok(())
    }

    fn pairs_at(&mut self, arena: &Arena, order: u32, fill: u32) -> anyhow::Result<()> {
        let size = bytes(arena.units() * UNIT_BYTES);
        self.output.bar.set_message(format!("{size}: pairs of order {order}, {fill} % full"));
        for &threads in &self.args.threads {
            let steps = pairs::count_steps(arena, order, threads);
            let cost = pairs::time(arena, order, threads, self.args.rounds(), &self.clock);
            self.add(row::pair(arena.units(), (order, fill), threads, &cost, steps))?;
        }
        self.output.bar.inc(1);
        Ok(())
    }

    /// Pairs of the smallest order as users call them, and by caches.
    fn ways(&mut self, arena: &Arena, threads: usize) -> anyhow::Result<()> {
        let size = bytes(arena.units() * UNIT_BYTES);
        self.output.bar.set_message(format!("{size}: ways to ask, {threads} threads"));
        let order = self.args.orders.iter().min().map_or(0, |&order| order);
        for way in Way::ALL {
            arena.empty();
            let cost = ways::time(arena, way, order, threads, self.args.rounds(), &self.clock);
            self.add(row::way(arena.units(), way, order, threads, &cost))?;
        }
        self.output.bar.inc(1);
        Ok(())
    }

    fn bulk(&mut self, arena: &Arena, threads: usize) -> anyhow::Result<()> {
        /// Operations after which a round more would not say more.
        const ENOUGH: u64 = 1 << 25;
        let size = bytes(arena.units() * UNIT_BYTES);
        self.output.bar.set_message(format!("{size}: bulk, {threads} threads"));
        let rounds = self.args.rounds().min((ENOUGH / arena.units()) as usize).max(1);
        let steps = bulk::count_steps(arena, threads);
        let cost = bulk::time(arena, threads, rounds, &self.clock);
        for row in row::bulk(arena.units(), threads, &cost, &steps) {
            self.add(row)?;
        }
        self.output.bar.inc(1);
        Ok(())
    }

    fn fail(&mut self, arena: &Arena, state: State) -> anyhow::Result<()> {
        let (units, name) = (arena.units(), state.name());
        self.output.bar.set_message(format!("{}: refusals, {name}", bytes(units * UNIT_BYTES)));
        state.make(arena)?;
        for &order in self.args.orders.iter().filter(|&&order| order >= state.smallest_refused()) {
            let cost = fail::time(arena, order, self.args.rounds(), &self.clock);
            self.add(row::fail(units, state, order, &cost))?;
        }
        self.output.bar.inc(1);
        Ok(())
    }

    /// Keeps a row.
    fn add(&mut self, row: Row) -> anyhow::Result<()> {
        self.output.add(std::slice::from_ref(&row))?;
        self.rows.push(row);
        Ok(())
    }

    /// Prints the table of those rows from a place on that belong to it.
    fn print_table(
        &self,
        from: usize,
        table: &Table,
        belongs: impl Fn(&Row) -> bool,
    ) -> anyhow::Result<()> {
        let is_it = |row: &&Row| table.cases.contains(&row.text("case")) && belongs(row);
        let rows: Vec<&Row> = self.rows[from..].iter().filter(is_it).collect();
        if rows.is_empty() {
            return Ok(());
        }
        self.output.print(|| table.of(&rows))
    }
}
