//! What the threads of a stress do, and what they did.

use std::ops::RangeInclusive;

/// What the threads do.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// How many threads.
    pub threads: usize,
    /// Over how many lanes they are spread.
    pub lanes: usize,
    /// Operations of each thread.
    pub operations: u64,
    /// Orders, each as likely as its number of entries.
    pub orders: Vec<u32>,
    /// The share of the arena that the threads hold together, on average, in percent.
    pub occupancy: u64,
    /// Of 100 frees, how many are of a block that another thread allocated.
    pub hand_over: u32,
    /// Of 100 steps, how many are operations on runs, parts and batches, where the allocator offers them.
    pub runs: u32,
    /// Gives other threads a turn before one in so many accesses to [`Steered`](crate::steered::Steered)
    /// words; 0 is never.
    pub jitter: u32,
    /// Each thread's random numbers follow from this and its lane.
    pub seed: u64,
}

impl Load {
    /// Every order of `orders` alike, half the arena held, every fourth free handed over.
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

    /// Orders such that each gets about the same share of the memory: many small, few large.
    #[must_use]
    pub fn by_size(mut self) -> Self {
        let largest = self.orders.iter().copied().max().unwrap_or(0);
        let weight = |&order: &u32| 1 << (largest - order).min(10);
        self.orders = self.orders.iter().flat_map(|o| vec![*o; weight(o)]).collect();
        self
    }

    /// The same with another share of the arena held.
    #[must_use]
    pub fn occupancy(self, occupancy: u64) -> Self {
        Self { occupancy, ..self }
    }

    /// The same with other threads given a turn before one access in `one_in`.
    #[must_use]
    pub fn jitter(self, one_in: u32) -> Self {
        Self { jitter: one_in, ..self }
    }

    /// The same with so many of 100 steps on runs.
    #[must_use]
    pub fn runs(self, runs: u32) -> Self {
        Self { runs, ..self }
    }

    /// The same with several threads on each of so few lanes.
    #[must_use]
    pub fn on_lanes(self, lanes: usize) -> Self {
        Self { lanes, ..self }
    }

    /// The same with other random numbers.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

/// What happened.
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
