//! A measured case.

use serde::Serialize;

use super::course::{Case, Plan};
use super::subject::ITEM_BYTES;
use super::{Contender, course::Figure};
use crate::median::{hundredths, median};

/// A cell of the tables, and an object of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub command: &'static str,
    pub workload: &'static str,
    pub case: Case,
    pub allocator: &'static str,
    pub kind: &'static str,
    pub safe: bool,
    pub threads: usize,
    pub size_bytes: usize,
    /// Allocations and frees of the median round.
    pub ops: u64,
    /// Of all threads together: their time from the first's beginning to the last's end, by `ops`.
    pub ns_per_op: f64,
    pub ops_per_s: f64,
    /// Always null: the clock is all that this command reads. `valgrind --tool=callgrind` counts.
    pub instructions_per_op: Option<f64>,
    /// Whether every object had its own contents when it was freed, and none was refused.
    pub verified: bool,
}

impl Row {
    pub fn new(contender: &Contender, plan: &Plan, rounds: &[Figure]) -> Self {
        let ns = median(rounds.iter().map(|figure| figure.ns / figure.ops.max(1) as f64));
        Self {
            command: "bench pool",
            workload: "pool",
            case: plan.case,
            allocator: contender.name,
            kind: "pool",
            safe: contender.safe,
            threads: plan.threads,
            size_bytes: ITEM_BYTES,
            ops: median(rounds.iter().map(|figure| figure.ops as f64)) as u64,
            ns_per_op: hundredths(ns),
            ops_per_s: (1e9 / ns.max(1e-3)).round(),
            instructions_per_op: None,
            verified: rounds.iter().all(|figure| figure.verified),
        }
    }
}
