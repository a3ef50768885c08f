//! A clock cheap enough to time one allocation.

use std::hint::black_box;

/// A clock: the processor's time stamp counter where there is one, the system's monotonic clock elsewhere.
#[derive(Clone, Debug)]
pub struct Clock {
    counter: quanta::Clock,
    /// Nanoseconds that one tick stands for.
    ns_per_tick: f64,
    /// The median number of ticks that timing nothing takes.
    overhead: u64,
    /// Ticks between two times that the clock can tell apart.
    step: u64,
}

impl Clock {
    /// Calibrates the counter against the system's clock and measures what reading it costs.
    pub fn new() -> Self {
        const TICKS: u64 = 1 << 40;
        let counter = quanta::Clock::new();
        let ns_per_tick = counter.delta_as_nanos(0, TICKS) as f64 / TICKS as f64;
        let mut clock = Self { counter, ns_per_tick, overhead: 0, step: 0 };
        let mut empty: Vec<u64> = (0..100_001).map(|_| clock.nothing()).collect();
        empty.sort_unstable();
        clock.overhead = empty[50_000];
        // Timing nothing varies by one step from time to time, and steps are rounded to ticks. The slowest hundredth
        // met interrupts.
        empty.truncate(99_000);
        clock.step = empty.windows(2).map(|two| two[1] - two[0]).max().unwrap_or(1).max(1);
        clock
    }

    /// Returns the nanoseconds between two times that the clock can tell apart: two medians that differ by no more are
    /// equal.
    pub fn step_ns(&self) -> f64 {
        self.ns(self.step)
    }

    /// Returns the ticks between two times that the clock can tell apart.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Times nothing, and returns the ticks that it takes now.
    #[inline(always)]
    pub fn nothing(&self) -> u64 {
        let start = self.ticks();
        black_box(self);
        self.ticks() - start
    }

    /// Converts ticks to nanoseconds.
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    /// Returns the time now. All instructions before the call have been carried out, and none after it has begun.
    #[inline(always)]
    pub fn ticks(&self) -> u64 {
        fence();
        let ticks = self.counter.raw();
        fence();
        ticks
    }

    /// Converts the ticks of one measured operation to nanoseconds, without the clock's own cost.
    pub fn operation_ns(&self, ticks: u64) -> f64 {
        self.ns(ticks.saturating_sub(self.overhead))
    }

    /// Returns the nanoseconds that `work` takes. Only for stretches so long that the clock's own cost does not matter.
    pub fn time_ns(&self, work: impl FnOnce()) -> f64 {
        let start = self.ticks();
        work();
        self.ns(self.ticks() - start)
    }
}

/// Waits until every earlier instruction has been carried out, since the counter's own instruction does not wait.
#[inline(always)]
#[allow(unsafe_code)]
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is part of SSE2, which every x86-64 processor has.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::Clock;
    use std::time::{Duration, Instant};

    #[test]
    fn agrees_with_the_system_clock() {
        let clock = Clock::new();
        let system = Instant::now();
        let ours = clock.time_ns(|| std::thread::sleep(Duration::from_millis(20)));
        let theirs = system.elapsed().as_nanos() as f64;
        assert!((0.9..1.1).contains(&(ours / theirs)), "{ours} ns, the system says {theirs} ns");
    }

    #[test]
    fn takes_its_own_cost_off() {
        let clock = Clock::new();
        assert!(clock.overhead > 0);
        assert_eq!(clock.operation_ns(clock.overhead), 0.0);
        assert_eq!(clock.operation_ns(0), 0.0);
    }
}
