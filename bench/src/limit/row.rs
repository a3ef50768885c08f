//! A measured case.

use serde::Serialize;

use super::ways::Way;
use super::{bulk, fail, pairs};
use crate::args::UNIT_BYTES;
use crate::median::hundredths;

/// A cell of the tables, and an object of `--json`. What a case does not have is left out.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub command: &'static str,
    pub case: &'static str,
    pub order: u32,
    pub arena_bytes: u64,
    pub fill_percent: u32,
    pub threads: usize,
    /// `pair` and `way`: both operations. `bulk`: the mean of allocation and free. `random_free`: the free.
    /// `fail`: the refused allocation.
    pub ns: f64,
    /// As many bare compare-and-swaps as `ns` is of operations: a pair, or one.
    pub bare_cas_ns: f64,
    pub ratio: f64,
    pub rmw_per_alloc: Option<f64>,
    pub rmw_per_free: Option<f64>,
    /// `pair` and `way`: what a tenth of the rounds stay below, and what a tenth exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p10_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90_ns: Option<f64>,
    /// `pair` on several threads: one of them, while the others sleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alloc_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_ns: Option<f64>,
    /// `bulk` and `random_free`: one bare compare-and-swap for each free on words that lie as the leaf
    /// words do, in the same order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_ns: Option<f64>,
    /// `way`: the functions, or the cache, by which the pairs go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<&'static str>,
    /// `fail`: how the arena was filled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// `fail`: the first refusal after the arena came into its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_ns: Option<f64>,
    /// `fail`: what 99 of 100 refusals after the first keep to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<f64>,
}

impl Row {
    fn new(case: &'static str, arena_units: u64, threads: usize, ns: f64, bare_ns: f64) -> Self {
        Self {
            command: "bench limit",
            case,
            order: 0,
            arena_bytes: arena_units * UNIT_BYTES,
            fill_percent: 0,
            threads,
            ns: hundredths(ns),
            bare_cas_ns: hundredths(bare_ns),
            ratio: hundredths(ns / bare_ns),
            rmw_per_alloc: None,
            rmw_per_free: None,
            p10_ns: None,
            p90_ns: None,
            alone_ns: None,
            alloc_ns: None,
            free_ns: None,
            floor_ns: None,
            by: None,
            state: None,
            first_ns: None,
            p99_ns: None,
        }
    }

    /// Pairs of `order`, with so much of the arena in use.
    pub fn pair(
        arena_units: u64,
        (order, fill_percent): (u32, u32),
        threads: usize,
        cost: &pairs::Cost,
        (per_alloc, per_free): (f64, f64),
    ) -> Self {
        Self {
            order,
            fill_percent,
            ratio: hundredths(cost.ratio),
            rmw_per_alloc: Some(hundredths(per_alloc)),
            rmw_per_free: Some(hundredths(per_free)),
            p10_ns: Some(hundredths(cost.spread_ns.0)),
            p90_ns: Some(hundredths(cost.spread_ns.1)),
            alone_ns: cost.alone_ns.map(hundredths),
            ..Self::new("pair", arena_units, threads, cost.ns, cost.bare_ns)
        }
    }

    /// Pairs of `order` by one of the ways to ask for a block, in an arena of which nothing is in use.
    pub fn way(arena_units: u64, way: Way, order: u32, threads: usize, cost: &pairs::Cost) -> Self {
        Self {
            order,
            by: Some(way.name()),
            ratio: hundredths(cost.ratio),
            p10_ns: Some(hundredths(cost.spread_ns.0)),
            p90_ns: Some(hundredths(cost.spread_ns.1)),
            ..Self::new("way", arena_units, threads, cost.ns, cost.bare_ns)
        }
    }

    /// Half the arena allocated, and freed in reverse order; then the same, freed in random order.
    pub fn bulk(
        arena_units: u64,
        threads: usize,
        cost: &bulk::Cost,
        steps: &bulk::Steps,
    ) -> [Self; 2] {
        let row = |case, ns, free_ns, floor_ns, per_free| Self {
            fill_percent: 50,
            alloc_ns: Some(hundredths(cost.alloc_ns)),
            free_ns: Some(hundredths(free_ns)),
            floor_ns: Some(hundredths(floor_ns)),
            rmw_per_alloc: Some(hundredths(steps.alloc)),
            rmw_per_free: Some(hundredths(per_free)),
            ..Self::new(case, arena_units, threads, ns, cost.bare_ns)
        };
        let both_ns = f64::midpoint(cost.alloc_ns, cost.reverse_ns);
        [
            row("bulk", both_ns, cost.reverse_ns, cost.reverse_floor_ns, steps.reverse),
            row("random_free", cost.random_ns, cost.random_ns, cost.random_floor_ns, steps.random),
        ]
    }

    /// Allocations of `order` that are refused.
    pub fn fail(arena_units: u64, state: fail::State, order: u32, cost: &fail::Cost) -> Self {
        Self {
            order,
            fill_percent: state.fill_percent(),
            rmw_per_alloc: Some(hundredths(cost.steps)),
            state: Some(state.name()),
            first_ns: Some(hundredths(cost.first_ns)),
            p99_ns: Some(hundredths(cost.p99_ns)),
            ..Self::new("fail", arena_units, 1, cost.ns, cost.bare_ns)
        }
    }
}
