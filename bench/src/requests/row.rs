//! A measured case.

use serde::Serialize;

use super::work::{Case, Tally};
use crate::median::{hundredths, ten_thousandths};

/// A line of the table, and an object of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub command: &'static str,
    pub workload: &'static str,
    pub case: &'static str,
    pub allocator: &'static str,
    pub units_requested: u64,
    pub units_held: u64,
    /// Of a block or run, in the median over rounds.
    pub ns_per_op: f64,
    /// Read-modify-writes for each unit that was asked for.
    pub rmw_per_unit: f64,
    /// Of the requests, the share that was granted.
    pub success_rate: f64,
    /// Whether the owner map and the audit agree.
    pub verified: bool,
}

impl Row {
    pub fn new(case: &Case, tally: &Tally, ns: f64, steps: u64, verified: bool) -> Self {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        Self {
            command: "bench requests",
            workload: case.workload,
            case: case.case,
            allocator: case.allocator,
            units_requested: tally.requested,
            units_held: tally.held,
            ns_per_op: hundredths(ns),
            rmw_per_unit: ten_thousandths(share(steps, tally.moved)),
            success_rate: ten_thousandths(share(tally.granted, tally.asked)),
            verified,
        }
    }
}
