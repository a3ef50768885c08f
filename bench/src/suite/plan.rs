//! Plans what a run measures: tables of cases, each with memory that it fits into.

use std::rc::Rc;

use anyhow::{Context, ensure};

use super::args::Suite;
use super::workloads::{Cases, Run, Workload};
use super::{asked, on_heap, room};
use crate::args::{MAX_THREADS, UNIT_BYTES};
use crate::market::{Contender, Kind};
use crate::replay::{Events, Replayed};
use crate::table::{self, bytes};

/// The plan of all that is measured, in the order of the workloads.
pub struct Plan {
    pub parts: Vec<Part>,
    /// What was asked for and cannot be measured, with the reasons.
    pub skipped: Vec<String>,
}

/// A part of the plan that is measured together.
pub enum Part {
    /// A workload with blocks of one size, on contenders of the market.
    Table(WorkloadTable),
    /// A workload that defines its own cases.
    Cases(&'static Workload, Cases),
}

/// A table that is printed: a workload with blocks of one size.
pub struct WorkloadTable {
    pub workload: &'static Workload,
    pub kind: Kind,
    pub order: u32,
    /// The units of a back-end's arena, or the bytes of a heap.
    pub units: u64,
    pub contenders: Vec<&'static Contender>,
    pub threads: Vec<usize>,
    /// The trace that is replayed.
    pub trace: Option<Rc<Replayed>>,
}

impl Plan {
    /// Plans all that was asked for and fits.
    ///
    /// # Errors
    /// Nothing fits, or a trace cannot be read.
    pub fn new(args: &Suite) -> anyhow::Result<Self> {
        let (mut parts, mut skipped) = (Vec::new(), asked::without_part(args));
        for workload in args.workloads() {
            if let Run::Cases(cases) = workload.run {
                skipped.extend((cases.left_out)(workload, args)?);
                let takes_part = (cases.steps)(workload, args) > 0;
                parts.extend(takes_part.then_some(Part::Cases(workload, cases)));
                continue;
            }
            for mut table in tables(args, workload)? {
                for what in table.fit_trace(args)?.into_iter().chain(table.fit(args)) {
                    // A reason that is the same for every order is given once.
                    if !skipped.contains(&what) {
                        skipped.push(what);
                    }
                }
                parts.extend((!table.is_empty()).then_some(Part::Table(table)));
            }
        }
        let nobody = "none of these allocators takes part in any of these workloads with these numbers of threads";
        ensure!(!parts.is_empty(), "{}", skipped.first().map_or(nobody, String::as_str));
        skipped.extend(asked::without_effect(args));
        Ok(Self { parts, skipped })
    }
}

/// Returns every table of a workload that was asked for.
fn tables(args: &Suite, workload: &'static Workload) -> anyhow::Result<Vec<WorkloadTable>> {
    let traces = match workload.traces {
        Some(read) => {
            let traces = read(args)?;
            for (place, trace) in traces.iter().enumerate() {
                let name = trace.name();
                let is_new = traces[..place].iter().all(|before| before.name() != name);
                ensure!(is_new, "two traces are called {name}: one of them needs another name");
            }
            traces.into_iter().map(|trace| Some(Rc::new(trace))).collect()
        }
        None => vec![None],
    };
    let mut tables = Vec::new();
    for trace in traces {
        for &kind in workload.kinds {
            for order in args.orders(workload, kind) {
                for units in args.units(workload, kind) {
                    tables.push(WorkloadTable {
                        workload,
                        kind,
                        order,
                        units,
                        contenders: args.contenders(kind),
                        threads: args.threads(workload),
                        trace: trace.clone(),
                    });
                }
            }
        }
    }
    tables.retain(|table| !table.is_empty());
    Ok(tables)
}

impl WorkloadTable {
    fn is_empty(&self) -> bool {
        self.threads.is_empty() || self.contenders.is_empty()
    }

    /// Returns the bytes of the units in which the memory of its allocators is counted.
    fn unit(&self) -> u64 {
        if self.kind == Kind::Heap { 1 } else { UNIT_BYTES }
    }

    /// Returns the size of its memory, for readers.
    fn memory(&self) -> String {
        bytes(self.units * self.unit())
    }

    /// Doubles the memory until the most threads have room in it. If its size was asked for, leaves out the numbers of
    /// threads that have no room, and the allocators that cannot manage so much. Returns what it left out.
    fn fit(&mut self, args: &Suite) -> Vec<String> {
        let (name, order) = (self.workload.name, self.order);
        if self.threads.is_empty() {
            return Vec::new();
        }
        let (above, max) = (self.workload.orders_above, Suite::max_order(self.kind));
        if order + above > max {
            self.threads.clear();
            return vec![format!("{name} takes orders up to {}, not {order}", max - above)];
        }
        let most = self.threads.iter().copied().max().unwrap_or(1);
        while !args.has_memory(self.kind) && self.units < self.least(most) {
            self.units *= 2;
        }
        let memory = self.memory();
        let room = |threads: &usize| self.units >= self.least(*threads);
        let (threads, crowds): (Vec<_>, Vec<_>) = self.threads.iter().partition(|&one| room(one));
        let crowded = |threads: usize| {
            let least = bytes(self.least(threads) * self.unit());
            let block = format!("{name} with {} and order {order}", table::threads(threads));
            format!("{block} takes memory of {least}, not {memory}")
        };
        let mut left_out: Vec<String> = crowds.into_iter().map(crowded).collect();
        self.threads = threads;
        let (units, unit) = (self.units, self.unit());
        self.contenders.retain(|contender| {
            let refused = refused(contender, units, unit);
            left_out.extend(refused.iter().map(|why| format!("{name}: {} {why}", contender.name)));
            refused.is_none()
        });
        left_out
    }

    /// Returns the least memory for this number of threads.
    fn least(&self, threads: usize) -> u64 {
        let unit = if self.kind == Kind::Heap { 2 * on_heap::UNIT } else { 1 };
        (threads as u64 * self.workload.blocks_per_thread * unit) << self.order
    }

    /// Fits the table to its trace. Returns what it left out, if that was asked for.
    fn fit_trace(&mut self, args: &Suite) -> anyhow::Result<Option<String>> {
        let Some(trace) = self.trace.clone() else { return Ok(None) };
        Ok(self.fit_memory(&trace, args)?.or_else(|| self.fit_threads(&trace, args)))
    }

    /// Sets the memory that a trace needs, unless it was asked for. If that is too little, no number of threads is
    /// left: what refuses most of a trace says nothing about speed.
    fn fit_memory(&mut self, trace: &Replayed, args: &Suite) -> anyhow::Result<Option<String>> {
        let (name, peak) = (trace.name(), trace.peak_bytes());
        let is_asked = args.has_memory(self.kind);
        match trace.events {
            Events::Pages(_) if !is_asked => self.units = roomy(name, peak)?,
            // Too little, on purpose.
            Events::Heap(_) if self.workload.crowded && is_asked => {}
            Events::Heap(_) if self.workload.crowded => {
                self.units = (peak / 2).next_multiple_of(1 << 20);
            }
            _ if self.units.saturating_mul(self.unit()) < peak => {
                self.threads.clear();
                let (peak, memory) = (bytes(peak), self.memory());
                let option = if self.kind == Kind::Heap { "--heap" } else { "--arena" };
                let told = format!("{name} holds {peak} at its peak, more than {memory}");
                return Ok(Some(format!("{told}: choose a larger {option}")));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Keeps the numbers of threads that a trace has events for, and adds that of the trace itself, unless numbers were
    /// asked for.
    fn fit_threads(&mut self, trace: &Replayed, args: &Suite) -> Option<String> {
        let (name, all) = (trace.name(), trace.threads());
        let threads = all.min(MAX_THREADS);
        let asked = self.threads.clone();
        self.threads.retain(|&asked| asked <= threads);
        if !args.threads.is_empty() {
            let most = asked.into_iter().max().filter(|&most| most > threads)?;
            return Some(format!(
                "{name} has events of {threads} threads, and at most as many can replay it, not {most}"
            ));
        }
        let (_, most) = self.workload.threads;
        if threads > most {
            return None;
        }
        if !self.threads.contains(&threads) {
            self.threads.push(threads);
        }
        (threads < all).then(|| {
            format!("{name} has events of {all} threads, and {threads} replay it: no run has more")
        })
    }
}

/// Says why a contender cannot be measured on so many units of so many bytes.
fn refused(contender: &Contender, units: u64, unit: u64) -> Option<String> {
    let of = |units: u64| bytes(units.saturating_mul(unit));
    let bound = if units < contender.min_units {
        Some(("least", contender.min_units))
    } else if units > contender.max_units {
        Some(("most", contender.max_units))
    } else {
        None
    };
    if let Some((bound, limit)) = bound {
        return Some(format!("takes memory of at {bound} {}, not {}", of(limit), of(units)));
    }
    let (needed, there) = (room::of_case(contender, units), room::of_machine());
    let (with, needs, has) = (of(units), bytes(needed), bytes(there));
    (needed > there)
        .then(|| format!("with {with} takes {needs} of memory, and this machine has {has}"))
}

/// Returns the smallest power of two of units that is at least twice what a trace holds at its peak.
fn roomy(name: &str, peak_bytes: u64) -> anyhow::Result<u64> {
    /// 1 TiB: a user who wants more has to ask for it.
    const MAX_UNITS: u64 = 1 << 28;
    let units = (peak_bytes / UNIT_BYTES).saturating_mul(2).checked_next_power_of_two();
    let units = units.filter(|&units| units <= MAX_UNITS);
    units.with_context(|| {
        format!(
            "{name} holds {} at its peak, and an arena of more than {} has to be asked for: choose an --arena",
            bytes(peak_bytes),
            bytes(MAX_UNITS * UNIT_BYTES)
        )
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Part, Plan};
    use crate::args::MAX_THREADS;
    use crate::suite::args::Suite;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    /// Writes a trace of two events of the CPU.
    fn trace(path: PathBuf, cpu: usize) -> PathBuf {
        let text = format!("# page trace v1: test\n+{cpu} 0 0\n-0 0\n");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)).unwrap();
        path
    }

    fn plan(traces: Vec<PathBuf>, threads: Vec<usize>) -> anyhow::Result<Plan> {
        Plan::new(&Suite { traces, threads, ..Suite::of("replay") })
    }

    /// A trace may have more CPUs than a record may have threads.
    #[test]
    fn no_trace_is_replayed_on_more_threads_than_a_run_may_have() {
        let directory = tempfile::tempdir().unwrap();
        let plan = plan(vec![trace(directory.path().join("wide.zst"), 199)], vec![]).unwrap();
        let [Part::Table(table)] = &plan.parts[..] else { panic!("{} parts", plan.parts.len()) };
        assert_eq!(table.threads, [1, MAX_THREADS]);
        assert!(plan.skipped[0].contains("events of 200 threads"), "{:?}", plan.skipped);
    }

    #[test]
    fn no_case_is_measured_twice() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let [one, other] = [trace(path("a/t.zst"), 1), trace(path("b/t.zst"), 1)];
        let refused = plan(vec![one.clone(), other], vec![]).err().unwrap().to_string();
        assert!(refused.contains("two traces are called t"), "{refused}");
        let plan = plan(vec![one, trace(path(".zst"), 1)], vec![2, 1, 2]).unwrap();
        let table = |part: &Part| match part {
            Part::Table(table) => (table.trace.as_ref().unwrap().name(), table.threads.clone()),
            Part::Cases(..) => panic!("a replay has tables"),
        };
        let tables: Vec<_> = plan.parts.iter().map(table).collect();
        assert_eq!(tables, [("t", vec![2, 1]), ("zst", vec![2, 1])]);
    }
}
