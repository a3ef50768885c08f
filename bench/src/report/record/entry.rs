//! A row of a record, as the benchmarks wrote it.

use serde::Deserialize;

/// What the report and the comparison know of a row. Keys that are not here are left alone, and those that
/// a benchmark does not have may be missing or null.
#[derive(Clone, Debug, Deserialize)]
pub struct Entry {
    pub workload: String,
    /// The part of the workload.
    #[serde(default, alias = "case")]
    pub phase: String,
    pub allocator: String,
    #[serde(default = "back_end")]
    pub kind: String,
    #[serde(default = "yes")]
    pub safe: bool,
    #[serde(default)]
    pub private_caches: bool,
    pub threads: usize,
    pub order: Option<u32>,
    pub size_bytes: Option<u64>,
    pub arena_bytes: Option<u64>,
    pub ns_per_op: Option<f64>,
    pub min_ns_per_op: Option<f64>,
    pub max_ns_per_op: Option<f64>,
    #[serde(default)]
    pub noisy: bool,
    #[serde(default = "yes")]
    pub complete: bool,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    pub p999_ns: Option<f64>,
    pub max_ns: Option<f64>,
    /// `suspended`: the same while nobody is suspended.
    pub baseline_p999_ns: Option<f64>,
    pub metadata_bytes: Option<u64>,
    pub rmw_per_op: Option<f64>,
    pub failed_cas_per_op: Option<f64>,
    pub lines_written_per_op: Option<f64>,
    pub instructions_per_op: Option<f64>,
    pub recovered_percent: Option<f64>,
    pub verified: bool,
    pub violation: Option<String>,
}

fn back_end() -> String {
    "backend".to_owned()
}

fn yes() -> bool {
    true
}

/// What is measured, without who: two rows of one case can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    pub kind: String,
    pub workload: String,
    pub phase: String,
    pub order: Option<u32>,
    pub size_bytes: Option<u64>,
    pub arena_bytes: Option<u64>,
    pub threads: usize,
}

impl Entry {
    pub fn case(&self) -> Case {
        Case {
            kind: self.kind.clone(),
            workload: self.workload.clone(),
            phase: self.phase.clone(),
            order: self.order,
            size_bytes: self.size_bytes,
            arena_bytes: self.arena_bytes,
            threads: self.threads,
        }
    }

    /// The first figure that no measurement can have, by its name.
    pub fn impossible(&self) -> Option<String> {
        let times = [
            ("ns_per_op", self.ns_per_op),
            ("min_ns_per_op", self.min_ns_per_op),
            ("max_ns_per_op", self.max_ns_per_op),
            ("p50_ns", self.p50_ns),
            ("p99_ns", self.p99_ns),
            ("p999_ns", self.p999_ns),
            ("max_ns", self.max_ns),
            ("baseline_p999_ns", self.baseline_p999_ns),
        ];
        let negative = times.into_iter().find(|(_, ns)| ns.is_some_and(|ns| ns < 0.0));
        let negative = negative.and_then(|(key, ns)| Some(format!("{key} is {}, below 0", ns?)));
        negative.or_else(|| (self.threads == 0).then(|| "threads is 0, below 1".to_owned()))
    }

    /// The slowest and the fastest round; the median where they are not known.
    pub fn spread(&self) -> Option<(f64, f64)> {
        let ns = self.ns_per_op?;
        Some((self.min_ns_per_op.unwrap_or(ns), self.max_ns_per_op.unwrap_or(ns)))
    }

    /// The name, and what a reader has to know of it.
    pub fn label(&self) -> String {
        match (self.safe, self.private_caches) {
            (false, _) => format!("{} (UNSAFE)", self.allocator),
            (_, true) => format!("{} (caches)", self.allocator),
            _ => self.allocator.clone(),
        }
    }
}
