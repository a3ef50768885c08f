//! A timed stretch, and the clock of a thread that has no worker.

use hdrhistogram::Histogram;

use super::worker::Setting;
use crate::clock::Clock;
use crate::counted::{Counts, so_far};

/// A timed stretch of one thread.
pub struct Stretch {
    pub name: &'static str,
    /// Ticks at which it began and ended.
    pub began: u64,
    pub ended: u64,
    /// Successful allocations and frees.
    pub ops: u64,
    /// What was done to words that count.
    pub counts: Counts,
    /// Whether it did all that it should.
    pub complete: bool,
    /// Tenths of nanoseconds of each operation.
    pub latency: Option<Histogram<u64>>,
}

/// The clock of a thread that is no `Worker`: its deadline, its times by operation, its counts.
pub struct Gauge<'a> {
    clock: &'a Clock,
    limit_ticks: u64,
    began: u64,
    counted: Counts,
    latency: Option<Histogram<u64>>,
}

impl<'a> Gauge<'a> {
    pub fn new(setting: Setting, clock: &'a Clock) -> Self {
        let latency = setting.latency.then(new_histogram);
        Self { clock, limit_ticks: setting.limit_ticks, began: 0, counted: so_far(), latency }
    }

    /// With so many times the time.
    pub fn with_times(self, times: u64) -> Self {
        Self { limit_ticks: self.limit_ticks * times, ..self }
    }

    pub fn start(&mut self) {
        self.began = self.clock.ticks();
    }

    pub fn is_late(&self) -> bool {
        self.clock.ticks() > self.began + self.limit_ticks
    }

    /// Does an operation, and times it if asked to.
    #[inline]
    pub fn time<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        match &mut self.latency {
            None => operation(),
            Some(latency) => timed(self.clock, latency, operation),
        }
    }

    pub fn stop(self, name: &'static str, ops: u64, complete: bool) -> Stretch {
        let Self { clock, began, counted, latency, .. } = self;
        let counts = so_far() - counted;
        Stretch { name, began, ended: clock.ticks(), ops, counts, complete, latency }
    }
}

/// Tenths of nanoseconds, up to a minute, to a hundredth of their size.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000_000, 2).expect("bounds in order")
}

/// Does an operation, and records how long it took.
pub fn timed<R>(clock: &Clock, latency: &mut Histogram<u64>, operation: impl FnOnce() -> R) -> R {
    let (result, tenths) = tenths(clock, operation);
    latency.saturating_record(tenths);
    result
}

/// Does an operation; how many tenths of nanoseconds it took.
pub fn tenths<R>(clock: &Clock, operation: impl FnOnce() -> R) -> (R, u64) {
    let began = clock.ticks();
    let result = operation();
    let ns = clock.operation_ns(clock.ticks() - began);
    (result, (ns * 10.0) as u64)
}

/// Does what a stretch measures. A function of its own: what it runs is what [`instructions`] counts.
///
/// [`instructions`]: super::instructions
#[inline(never)]
pub fn measured<R>(work: impl FnOnce() -> R) -> R {
    work()
}
