//! Measures all cases, arena by arena.

use anyhow::ensure;

use super::arena::{Arena, shuffled};
use super::fail::State;
use super::report::{self, LimitTable};
use super::ways::Way;
use super::{bulk, fail, heap, pairs, row, ways};
use crate::args::UNIT_BYTES;
use crate::clock::Clock;
use crate::market::Kind;
use crate::output::Output;
use crate::row::Row;
use crate::suite::args::Suite;
use crate::suite::room;
use crate::suite::workloads::{Cases, Workload};
use crate::table::bytes;

/// What `bench limit` measures.
pub const CASES: Cases = Cases {
    steps,
    run,
    allocators: |_| vec!["nbbs", "nbbs-heap"],
    runs_on: "nbbs and nbbs-heap",
    options: &["--orders", "--arena", "--rounds", "--fills"],
    left_out: |workload, args| {
        let arenas = arenas(workload, args);
        arenas.into_iter().try_for_each(|units| fits(workload, args, units)).map(|()| Vec::new())
    },
};

/// The most units of an arena: half of them are listed, by 32-bit numbers.
const MAX_UNITS: u64 = 1 << 32;

fn steps(workload: &Workload, args: &Suite) -> usize {
    let (arenas, threads) = (arenas(workload, args), args.threads(workload));
    let pairs = args.orders(workload, Kind::BackEnd).len() * args.limit.fills().len();
    let steps = arenas.len() * (pairs + 2 * threads.len() + State::ALL.len());
    steps + if args.takes_part("nbbs-heap") { threads.len() } else { 0 }
}

/// Returns the units of the arenas: none if only the heap takes part.
fn arenas(workload: &Workload, args: &Suite) -> Vec<u64> {
    if args.takes_part("nbbs") { args.units(workload, Kind::BackEnd) } else { Vec::new() }
}

fn run(
    workload: &Workload,
    args: &Suite,
    clock: &Clock,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut bench = Bench {
        orders: args.orders(workload, Kind::BackEnd),
        threads: args.threads(workload),
        rounds: args.rounds(workload),
        fills: args.limit.fills(),
        clock,
        output,
        rows: Vec::new(),
    };
    let arenas = arenas(workload, args);
    arenas.iter().try_for_each(|&units| bench.measure(&Arena::new(units)))?;
    if args.takes_part("nbbs-heap") {
        bench.heap()?;
    }
    if arenas.is_empty() { Ok(()) } else { bench.output.print(|| report::worst(&bench.rows)) }
}

/// Checks that an arena has room for the largest blocks and for what the threads' caches keep, no more units than can
/// be listed, and no more bookkeeping than this machine has memory for.
fn fits(workload: &Workload, args: &Suite, units: u64) -> anyhow::Result<()> {
    /// The most units that a cache takes at once, unless a block has more.
    const AT_ONCE: u64 = 256;
    let orders = args.orders(workload, Kind::BackEnd);
    let (smallest, largest) = (orders.iter().min().map_or(0, |&order| order), orders.iter().max());
    let largest = largest.map_or(0, |&order| order);
    let threads = args.threads(workload).into_iter().max().unwrap_or(1) as u64;
    let least = (4.max(threads + 1) << largest).max(threads * AT_ONCE.max(1 << smallest));
    let arena = bytes(units * UNIT_BYTES);
    ensure!(
        (least..=MAX_UNITS).contains(&units),
        "an arena of {arena} does not fit: orders up to {largest} on up to {threads} threads take {} to {}",
        bytes(least * UNIT_BYTES),
        bytes(MAX_UNITS * UNIT_BYTES),
    );
    // The words, a copy that counts, and the list of half of the units.
    let needed = 16 * nbbs::metadata_words(units) as u64 + 2 * units;
    let there = room::of_machine();
    ensure!(
        needed <= there,
        "limit with an arena of {arena} takes {} of memory, and this machine has {}",
        bytes(needed),
        bytes(there),
    );
    Ok(())
}

struct Bench<'a> {
    orders: Vec<u32>,
    threads: Vec<usize>,
    rounds: usize,
    /// Percent, ascending.
    fills: Vec<u32>,
    clock: &'a Clock,
    output: &'a mut Output,
    rows: Vec<Row>,
}

impl Bench<'_> {
    /// Measures all cases on one arena.
    fn measure(&mut self, arena: &Arena) -> anyhow::Result<()> {
        let from = self.rows.len();
        for order in self.orders.clone() {
            self.pairs(arena, order)?;
        }
        for &threads in &self.threads {
            self.print_table(from, &report::PAIRS, |row| row.threads == threads)?;
        }
        for threads in self.threads.clone() {
            self.ways(arena, threads)?;
        }
        self.print_table(from, &report::WAYS, |_| true)?;
        arena.empty();
        for threads in self.threads.clone() {
            self.bulk(arena, threads)?;
        }
        self.print_table(from, &report::BULK, |_| true)?;
        arena.empty();
        for state in State::ALL {
            self.fail(arena, state)?;
        }
        self.print_table(from, &report::FAIL, |_| true)
    }

    /// Measures pairs of one order: on the empty arena, then on the full arena, thinned out step by step.
    fn pairs(&mut self, arena: &Arena, order: u32) -> anyhow::Result<()> {
        let mut fills = self.fills.clone();
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
            // Whatever the share is, there is a free block for each thread, and one more.
            let least = self.threads.iter().max().map_or(1, |&threads| threads as u64 + 1);
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
        for threads in self.threads.clone() {
            let steps = pairs::count_steps(arena, order, threads);
            let cost = pairs::time(arena, order, threads, self.rounds, self.clock);
            self.add(row::pair(arena.units(), (order, fill), threads, &cost, steps))?;
        }
        self.output.bar.inc(1);
        Ok(())
    }

    /// Measures pairs of the smallest order as users call them, and through caches.
    fn ways(&mut self, arena: &Arena, threads: usize) -> anyhow::Result<()> {
        let size = bytes(arena.units() * UNIT_BYTES);
        self.output.bar.set_message(format!("{size}: ways to ask, {threads} threads"));
        let order = self.orders.iter().min().map_or(0, |&order| order);
        for way in Way::ALL {
            arena.empty();
            let cost = ways::time(arena, way, order, threads, self.rounds, self.clock);
            self.add(row::way(arena.units(), way, order, threads, &cost))?;
        }
        self.output.bar.inc(1);
        Ok(())
    }

    fn bulk(&mut self, arena: &Arena, threads: usize) -> anyhow::Result<()> {
        /// The number of operations after which another round would say nothing new.
        const ENOUGH: u64 = 1 << 25;
        let size = bytes(arena.units() * UNIT_BYTES);
        self.output.bar.set_message(format!("{size}: bulk, {threads} threads"));
        let rounds = self.rounds.min((ENOUGH / arena.units()) as usize).max(1);
        let steps = bulk::count_steps(arena, threads);
        let cost = bulk::time(arena, threads, rounds, self.clock);
        for row in row::bulk(arena.units(), threads, &cost, &steps) {
            self.add(Row { rounds: Some(rounds), ..row })?;
        }
        self.output.bar.inc(1);
        Ok(())
    }

    fn fail(&mut self, arena: &Arena, state: State) -> anyhow::Result<()> {
        let (units, name) = (arena.units(), state.name());
        self.output.bar.set_message(format!("{}: refusals, {name}", bytes(units * UNIT_BYTES)));
        state.make(arena)?;
        let refused = |order: &u32| *order >= state.smallest_refused();
        for order in self.orders.clone().into_iter().filter(refused) {
            let cost = fail::time(arena, order, self.rounds, self.clock);
            self.add(row::fail(units, state, order, &cost, self.clock))?;
        }
        self.output.bar.inc(1);
        Ok(())
    }

    /// Measures pairs of the heap, whatever the arenas are.
    fn heap(&mut self) -> anyhow::Result<()> {
        let from = self.rows.len();
        for threads in self.threads.clone() {
            self.output.bar.set_message(format!("pairs of the heap, {threads} threads"));
            for shape in heap::SHAPES {
                let cost = heap::time(shape, threads, self.rounds, self.clock);
                self.add(row::heap(shape, threads, &cost))?;
            }
            self.output.bar.inc(1);
        }
        self.print_table(from, &report::HEAP, |_| true)
    }

    /// Adds a row, of as many rounds as were asked for unless it has fewer.
    fn add(&mut self, row: Row) -> anyhow::Result<()> {
        let row = Row { rounds: row.rounds.or(Some(self.rounds)), ..row };
        self.output.add(std::slice::from_ref(&row))?;
        self.rows.push(row);
        Ok(())
    }

    /// Prints the table of the rows, from a place on, that belong to it.
    fn print_table(
        &self,
        from: usize,
        table: &LimitTable,
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
