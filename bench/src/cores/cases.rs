//! Cases: what the command line asks for, and what of it is left out.

use super::plan::{COUNTERS, Contender, Depth, LOOPS, Loop, MAX_UNITS, cached_units};
use crate::args::UNIT_BYTES;
use crate::suite::args::Suite;
use crate::suite::workloads::Workload;
use crate::table::bytes;

/// All cases, table by table.
pub struct Cases {
    pub depth: Depth,
    /// The counters, which are always measured, and before all others.
    pub counters: CoresTable,
    pub tables: Vec<CoresTable>,
    /// What was asked for and is not measured, with the reasons.
    pub skipped: Vec<String>,
}

/// A loop in an arena of one size.
pub struct CoresTable {
    pub of: &'static Loop,
    /// The units of the arena, if the loop has one.
    pub units: Option<u64>,
    pub lines: Vec<Line>,
}

/// A contender with blocks of one order.
pub struct Line {
    pub contender: &'static Contender,
    pub order: Option<u32>,
    /// The numbers of harts: 1 and those asked for, or the usual ones, each once and ascending.
    pub harts: Vec<usize>,
}

impl Cases {
    /// Returns everything that was asked for and has room.
    pub fn new(workload: &Workload, args: &Suite) -> Self {
        let depth = match (args.quick, args.cores.long) {
            (true, _) => Depth::Quick,
            (_, true) => Depth::Long,
            _ => Depth::Usual,
        };
        let harts = harts(workload, args);
        let counters =
            CoresTable { of: &COUNTERS, units: None, lines: lines(args, &COUNTERS, &harts) };
        let mut skipped = Vec::new();
        let mut tables = tables(args, &harts, &mut skipped);
        for table in &mut tables {
            table.fit(depth, &mut skipped);
        }
        tables.retain(|table| !table.lines.is_empty());
        Self { depth, counters, tables, skipped }
    }

    /// Returns the number of simulations: none if only the counters are left.
    pub fn count(&self) -> usize {
        if self.tables.is_empty() {
            return 0;
        }
        let lines = self.tables.iter().chain([&self.counters]).flat_map(|table| &table.lines);
        lines.map(|line| line.harts.len()).sum()
    }
}

impl CoresTable {
    /// Leaves out numbers of harts whose blocks have no room in the arena, and those that would take hours.
    fn fit(&mut self, depth: Depth, skipped: &mut Vec<String>) {
        let (of, units) = (self.of, self.units);
        for line in &mut self.lines {
            let (name, order) = (line.contender.name, line.order.unwrap_or(0));
            line.harts.retain(|&harts| {
                let least = least(of, line.contender, order, harts);
                let reason = if !line.contender.comes(harts, depth) {
                    format!("{name} on {harts} cores, which takes hours: choose --long, without --quick")
                } else if units.is_some_and(|units| units < least) {
                    let (least, units) = (memory(least), memory(units.unwrap_or(0)));
                    let (of, cores) = (of.name, cores(harts));
                    format!("{of} of {name} on {cores} and with order {order} takes an arena of {least}, not {units}")
                } else {
                    return true;
                };
                skip(skipped, reason);
                false
            });
        }
        // Figures stand beside those of one hart.
        self.lines.retain(|line| line.harts.first() == Some(&1));
    }
}

/// Returns the least units of an arena: twice what harts hold, as the arena must not be full.
fn least(of: &Loop, contender: &Contender, order: u32, harts: usize) -> u64 {
    let cached = if contender.private_caches { cached_units(order) } else { 0 };
    2 * (harts as u64 * ((of.blocks_per_hart << order) + cached) + of.units_beside)
}

/// Returns a table for each loop and arena, with room or without.
fn tables(args: &Suite, harts: &[usize], skipped: &mut Vec<String>) -> Vec<CoresTable> {
    let mut tables = Vec::new();
    for of in loops(args) {
        for units in arenas(args, of, skipped) {
            tables.push(CoresTable { of, units, lines: lines(args, of, harts) });
        }
    }
    tables
}

/// Returns 1 and the numbers of harts asked for, or the usual ones: each once, ascending. Returns none if the machine
/// has fewer than any that were asked for.
fn harts(workload: &Workload, args: &Suite) -> Vec<usize> {
    let mut harts = args.threads(workload);
    if harts.is_empty() {
        return harts;
    }
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

/// Returns the names of the contenders of these loops.
pub fn allocators(args: &Suite) -> Vec<&'static str> {
    loops(args).iter().flat_map(|of| of.contenders).map(|of| of.name).collect()
}

/// Returns the sizes of a loop's arenas: those asked for, or the usual one.
fn arenas(args: &Suite, of: &Loop, skipped: &mut Vec<String>) -> Vec<Option<u64>> {
    if of.units.is_none() || args.arena.is_empty() {
        return vec![of.units];
    }
    let asked = args.arena.iter().map(|arena| arena.units);
    let (fits, large): (Vec<u64>, Vec<u64>) = asked.partition(|&units| units <= MAX_UNITS);
    for units in large {
        let (max, units) = (memory(MAX_UNITS), memory(units));
        skip(skipped, format!("cores takes arenas of at most {max}, not {units}"));
    }
    fits.into_iter().map(Some).collect()
}

/// Returns the orders of a loop, those asked for or the usual ones, and the contenders at each.
fn lines(args: &Suite, of: &'static Loop, harts: &[usize]) -> Vec<Line> {
    let takes_part = |order: Option<u32>, contender: &Contender| {
        let is_named = !args.allocators.is_empty() && args.takes_part(contender.name);
        let is_usual = args.allocators.is_empty() && !contender.patient;
        (is_named || is_usual || std::ptr::eq(of, &raw const COUNTERS))
            && (!contender.units_only || order == Some(0))
    };
    let contenders = |order| of.contenders.iter().map(move |&contender| (order, contender));
    let all = orders(args, of).into_iter().flat_map(contenders);
    all.filter(|&(order, contender)| takes_part(order, contender))
        .map(|(order, contender)| Line { contender, order, harts: harts.to_vec() })
        .collect()
}

/// Returns the orders of a loop: those asked for, or the usual ones, or the first of them with --quick.
fn orders(args: &Suite, of: &Loop) -> Vec<Option<u32>> {
    if of.orders.is_empty() {
        return vec![None];
    }
    let most = if args.quick { 1 } else { usize::MAX };
    let usual: Vec<u32> = of.orders.iter().copied().take(most).collect();
    let orders = if args.orders.is_empty() { &usual } else { &args.orders };
    orders.iter().copied().map(Some).collect()
}

/// Notes a reason, once.
fn skip(skipped: &mut Vec<String>, reason: String) {
    if !skipped.contains(&reason) {
        skipped.push(reason);
    }
}

fn cores(harts: usize) -> String {
    if harts == 1 { "1 core".to_owned() } else { format!("{harts} cores") }
}

fn memory(units: u64) -> String {
    bytes(units * UNIT_BYTES)
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::Cases;
    use crate::suite::args::Suite;

    /// Returns the cases of a command line.
    fn cases(options: &[&str]) -> Cases {
        let command = Suite::augment_args(Command::new("bench"));
        let args = ["bench", "cores", "--quick"].iter().chain(options);
        let args = Suite::from_arg_matches(&command.get_matches_from(args)).unwrap();
        Cases::new(args.workloads().next().unwrap(), &args)
    }

    #[test]
    fn arenas_and_orders_are_those_asked_for() {
        let asked = ["--arena", "1M,4G", "--orders", "0,5", "--allocators", "nbbs-lanes"];
        let cases = cases(&[&asked[..], &["--threads", "4"]].concat());
        let units: Vec<_> = cases.tables.iter().map(|table| table.units).collect();
        assert_eq!(units, [Some(1 << 8), Some(1 << 20)]);
        let lines = &cases.tables[0].lines;
        assert_eq!(lines.iter().map(|line| line.order).collect::<Vec<_>>(), [Some(0), Some(5)]);
        assert!(lines.iter().all(|line| line.harts == [1, 4]));
        assert!(cases.skipped.is_empty(), "{:?}", cases.skipped);
    }

    #[test]
    fn what_has_no_room_is_left_out() {
        let crowded = cases(&["--arena", "64K,8G", "--allocators", "nbbs", "--threads", "2,64"]);
        assert_eq!(crowded.tables[0].lines[0].harts, [1, 2]);
        let [large, crowd] = &crowded.skipped[..] else { panic!("{:?}", crowded.skipped) };
        assert!(large.contains("at most 4 GiB, not 8 GiB"), "{large}");
        assert!(crowd.contains("nbbs on 64 cores") && crowd.contains("not 64 KiB"), "{crowd}");
    }

    #[test]
    fn waits_of_hours_are_named() {
        let all = cases(&["--threads", "2,64"]);
        assert!(all.skipped.iter().any(|what| what.starts_with("linux-mcs on 64 cores")));
        assert!(cases(&[]).skipped.is_empty());
    }

    #[test]
    fn everything_has_room_by_default() {
        let most = ["--threads", "64", "--loops"];
        let loops: Vec<&str> = super::LOOPS.iter().map(|of| of.name).collect();
        let cases = cases(&[&most[..], &[&loops.join(",")]].concat());
        assert!(
            cases.skipped.iter().all(|what| what.contains("takes hours")),
            "{:?}",
            cases.skipped
        );
    }
}
