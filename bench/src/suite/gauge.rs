//! A timed stretch, times of its operations, and the clock of a thread that has no worker.

use hdrhistogram::Histogram;

use super::worker::Setting;
use crate::clock::Clock;
use crate::counted::{self, Counts, so_far};
use crate::row::Name;

/// A timed stretch of one thread.
pub struct Stretch {
    pub name: Name,
    /// The ticks at which it began and ended.
    pub began: u64,
    pub ended: u64,
    /// The number of allocations, granted or refused, and of frees: all of them take time.
    pub ops: u64,
    /// The counts of words that count.
    pub counts: Counts,
    /// Whether it was complete.
    pub complete: bool,
    /// The times of each operation.
    pub latency: Option<Latency>,
}

/// The ticks of single operations, and, now and then between them, of nothing: the cost of the clock itself, at the
/// speed that the processor had meanwhile.
#[derive(Clone, Debug)]
pub struct Latency {
    operations: Histogram<u64>,
    nothing: Histogram<u64>,
    turns: u32,
}

impl Latency {
    /// Creates latencies without operations.
    pub fn new() -> Self {
        // The bounds are known from the start, so that recording never allocates: an hour, to a thousandth.
        let empty = || Histogram::new_with_bounds(1, 1 << 44, 3).expect("bounds in order");
        Self { operations: empty(), nothing: empty(), turns: 0 }
    }

    /// Returns the number of operations.
    pub fn count(&self) -> u64 {
        self.operations.len()
    }

    /// Runs an operation, and records how long it took.
    pub fn time<R>(&mut self, clock: &Clock, operation: impl FnOnce() -> R) -> R {
        /// How many operations there are for each time that nothing is timed.
        const STRIDE: u32 = 16;
        if self.turns.is_multiple_of(STRIDE) {
            self.nothing.saturating_record(clock.nothing());
        }
        self.turns = self.turns.wrapping_add(1);
        let began = clock.ticks();
        let result = operation();
        self.operations.saturating_record(clock.ticks() - began);
        result
    }

    /// Adds the times of another thread, or another stretch.
    pub fn add(mut self, other: Self) -> Self {
        self.operations += other.operations;
        self.nothing += other.nothing;
        self
    }

    /// Returns the nanoseconds that this part of the operations stay below, without the clock's own cost.
    pub fn quantile_ns(&self, quantile: f64, clock: &Clock) -> f64 {
        let ticks = self.operations.value_at_quantile(quantile);
        clock.ns(ticks.saturating_sub(self.nothing.value_at_quantile(0.5)))
    }

    /// Returns the mean nanoseconds of an operation, without the clock's own cost, and 0 where that was all. The
    /// clock's steps cancel out in the mean.
    pub fn mean_ns(&self, clock: &Clock) -> f64 {
        // What takes more than twice the usual time, and a step, met an interrupt, which would weigh too much among so
        // few.
        let usual = 2 * self.nothing.value_at_quantile(0.5) + clock.step();
        let nothing = self.nothing.iter_recorded().filter(|at| at.value_iterated_to() <= usual);
        let (sum, count) = nothing.fold((0, 0), |(sum, count), at| {
            let times = at.count_at_value();
            (sum + at.value_iterated_to() * times, count + times)
        });
        clock.ns(1) * (self.operations.mean() - sum as f64 / count.max(1) as f64).max(0.0)
    }

    /// Returns the nanoseconds that the clock itself cost.
    pub fn clock_ns(&self, clock: &Clock) -> f64 {
        clock.ns(self.nothing.value_at_quantile(0.5))
    }
}

/// The clock of a thread that is not a `Worker`: its deadline, its times of operations, its counts.
pub struct Gauge<'a> {
    clock: &'a Clock,
    limit_ticks: u64,
    began: u64,
    counted: Counts,
    latency: Option<Latency>,
}

impl<'a> Gauge<'a> {
    pub fn new(setting: Setting, clock: &'a Clock) -> Self {
        let latency = setting.latency.then(Latency::new);
        Self {
            clock,
            limit_ticks: setting.limit_ticks,
            began: 0,
            counted: counted::begin(),
            latency,
        }
    }

    /// Multiplies the time by `times`.
    pub fn with_times(self, times: u64) -> Self {
        Self { limit_ticks: self.limit_ticks * times, ..self }
    }

    pub fn start(&mut self) {
        self.began = self.clock.ticks();
    }

    pub fn is_late(&self) -> bool {
        self.clock.ticks() > self.began + self.limit_ticks
    }

    /// Runs an operation, and times it if asked to.
    #[inline]
    pub fn time<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        match &mut self.latency {
            None => operation(),
            Some(latency) => latency.time(self.clock, operation),
        }
    }

    pub fn stop(self, name: Name, ops: u64, complete: bool) -> Stretch {
        let Self { clock, began, counted, latency, .. } = self;
        let counts = so_far() - counted;
        Stretch { name, began, ended: clock.ticks(), ops, counts, complete, latency }
    }
}

/// Runs the work that a stretch measures. It is a separate function so that [`instructions`] counts exactly what it
/// runs.
///
/// [`instructions`]: super::instructions
#[inline(never)]
pub fn measured<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(test)]
mod tests {
    use super::Latency;
    use crate::clock::Clock;

    /// Records times of operations, and of nothing.
    fn latency(operations: &[u64], nothing: &[u64]) -> Latency {
        let mut latency = Latency::new();
        operations.iter().for_each(|&ticks| latency.operations.saturating_record(ticks));
        nothing.iter().for_each(|&ticks| latency.nothing.saturating_record(ticks));
        latency
    }

    #[test]
    fn an_interrupt_while_nothing_is_timed_is_not_the_clocks_cost() {
        let clock = Clock::new();
        let interrupted = latency(&[300; 100], &[100, 100, 100, 50_000_000]);
        let mean = interrupted.mean_ns(&clock);
        assert!((mean - clock.ns(200)).abs() < clock.ns(1), "{mean} ns, not {}", clock.ns(200));
    }

    #[test]
    fn operations_that_take_less_than_the_clock_take_no_time() {
        let clock = Clock::new();
        let short = latency(&[90, 95], &[100; 10]);
        assert_eq!((short.mean_ns(&clock), short.quantile_ns(0.5, &clock)), (0.0, 0.0));
    }
}
