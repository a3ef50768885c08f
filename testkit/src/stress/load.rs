//! The load of a stress, and the report of what its threads did.

use std::ops::RangeInclusive;

/// The load: what the threads do.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The number of threads.
    pub threads: usize,
    /// The number of lanes over which they are spread.
    pub lanes: usize,
    /// The number of operations of each thread.
    pub operations: u64,
    /// The orders, each as likely as its number of entries.
    pub orders: Vec<u32>,
    /// The share of the arena that the threads hold together, on average, in percent.
    pub occupancy: u64,
    /// Of 100 frees, the number of those of a block that another thread allocated.
    pub hand_over: u32,
    /// Of 100 steps, the number of operations on runs, parts and batches, if the allocator offers them.
    pub runs: u32,
    /// Other threads get a turn before one in this many accesses to [`Steered`](crate::steered::Steered) words; 0 means
    /// never.
    pub jitter: u32,
    /// The seed: each thread's random numbers follow from this and its lane.
    pub seed: u64,
}

impl Load {
    /// Creates a load with every order of `orders` equally likely, half the arena held, and every fourth free handed
    /// over.
    #[must_use]
    pub fn new(threads: usize, operations: u64, orders: RangeInclusive<u32>) -> Self {
        let orders = orders.collect();
        Self {
            threads,
            lanes: threads,
            operations,
            orders,
            occupancy: 50,
            hand_over: 25,
            runs: 0,
            jitter: 0,
            seed: 1,
        }
    }

    /// Weights the orders so that each gets about the same share of the memory: many small blocks, few large ones.
    #[must_use]
    pub fn by_size(mut self) -> Self {
        let largest = self.orders.iter().copied().max().unwrap_or(0);
        let weight = |&order: &u32| 1 << (largest - order).min(10);
        self.orders = self.orders.iter().flat_map(|o| vec![*o; weight(o)]).collect();
        self
    }

    /// Sets the share of the arena that is held.
    #[must_use]
    pub fn occupancy(self, occupancy: u64) -> Self {
        Self { occupancy, ..self }
    }

    /// Gives other threads a turn before one access in `one_in`.
    #[must_use]
    pub fn jitter(self, one_in: u32) -> Self {
        Self { jitter: one_in, ..self }
    }

    /// Sets how many of 100 steps are on runs.
    #[must_use]
    pub fn runs(self, runs: u32) -> Self {
        Self { runs, ..self }
    }

    /// Sets the number of lanes, which several threads then share.
    #[must_use]
    pub fn on_lanes(self, lanes: usize) -> Self {
        Self { lanes, ..self }
    }

    /// Sets the seed of the random numbers.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

/// The report of what the threads did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Allocations that succeeded.
    pub allocations: u64,
    /// Allocations that were refused.
    pub refusals: u64,
    /// Frees by the thread that allocated.
    pub own_frees: u64,
    /// Frees by another thread.
    pub foreign_frees: u64,
    /// Operations on runs, parts and batches that were granted.
    pub run_operations: u64,
}

impl std::iter::Sum for Report {
    fn sum<I: Iterator<Item = Self>>(reports: I) -> Self {
        reports.fold(Self::default(), |sum, report| Self {
            allocations: sum.allocations + report.allocations,
            refusals: sum.refusals + report.refusals,
            own_frees: sum.own_frees + report.own_frees,
            foreign_frees: sum.foreign_frees + report.foreign_frees,
            run_operations: sum.run_operations + report.run_operations,
        })
    }
}
