//! How long each operation of a replay took.

use std::hint::black_box;

use hdrhistogram::Histogram;
use testkit::{BackEnd, Violation};

use super::course::Course;
use super::plan::{Plan, Step};
use crate::clock::Clock;
use crate::trace::Action;

/// Ticks of every allocation and of every free, in one replay; and what measuring nothing took meanwhile.
#[derive(Debug)]
pub struct Times {
    /// Allocations, refused ones too.
    pub allocs: Histogram<u64>,
    /// Frees.
    pub frees: Histogram<u64>,
    /// Nothing: the clock itself, at the speed that the processor had during this replay.
    pub nothing: Histogram<u64>,
    /// Allocations that were refused.
    pub failed: u64,
    /// The first free that was refused, or the panic that ended the replay.
    pub broken: Option<String>,
}

impl Times {
    fn new() -> Self {
        // Bounds known from the start, so that recording never allocates. An hour, three digits.
        let empty = || Histogram::new_with_bounds(1, 1 << 44, 3).expect("bounds in order");
        Self { allocs: empty(), frees: empty(), nothing: empty(), failed: 0, broken: None }
    }

    /// Allocations and frees together.
    pub fn all(&self) -> Histogram<u64> {
        let mut all = self.allocs.clone();
        all += &self.frees;
        all
    }

    /// Nanoseconds of one operation that was measured as `ticks`, the clock's own cost taken off.
    pub fn operation_ns(&self, ticks: u64, clock: &Clock) -> f64 {
        clock.ns(ticks.saturating_sub(self.nothing.value_at_quantile(0.5)))
    }

    /// Nanoseconds of an operation in the mean, the clock's own cost taken off. The clock's steps cancel out in it.
    pub fn mean_ns(&self, clock: &Clock) -> f64 {
        // Without the slowest hundredth: an interrupt in so few measurements would weigh too much.
        let usual = self.nothing.value_at_quantile(0.99);
        let nothing = self.nothing.iter_recorded().filter(|at| at.value_iterated_to() <= usual);
        let (sum, count) = nothing.fold((0, 0), |(sum, count), at| {
            let times = at.count_at_value();
            (sum + at.value_iterated_to() * times, count + times)
        });
        clock.ns(1) * (self.all().mean() - sum as f64 / count.max(1) as f64)
    }

    /// Nanoseconds that the clock itself cost.
    pub fn clock_ns(&self, clock: &Clock) -> f64 {
        clock.ns(self.nothing.value_at_quantile(0.5))
    }

    fn add(mut self, other: Self) -> Self {
        self.allocs += other.allocs;
        self.frees += other.frees;
        self.nothing += other.nothing;
        self.failed += other.failed;
        self.broken = self.broken.or(other.broken);
        self
    }
}

/// Replays the plan on a fresh allocator, one thread per lane.
pub fn replay(allocator: &dyn BackEnd, plan: &Plan, clock: &Clock) -> Times {
    let course = Course::new(&plan.lanes, plan.blocks);
    let lanes = course.run(|lane, steps| run_lane(allocator, &course, lane, steps, clock));
    lanes.into_iter().fold(Times::new(), |sum, lane| {
        sum.add(lane.unwrap_or_else(|payload| {
            let broken = Some(Violation::from_panic(&*payload).to_string());
            Times { broken, ..Times::new() }
        }))
    })
}

fn run_lane(
    allocator: &dyn BackEnd,
    course: &Course<'_, Step>,
    lane: usize,
    steps: &[Step],
    clock: &Clock,
) -> Times {
    /// Measures nothing once in so many steps.
    const STRIDE: usize = 16;
    let mut times = Times::new();
    for (number, &Step { action, order, block }) in steps.iter().enumerate() {
        if number % STRIDE == 0 {
            times.nothing.saturating_record(clock.nothing());
        }
        let order = u32::from(order);
        if action == Action::Alloc {
            let start = clock.ticks();
            let index = black_box(allocator.alloc(lane, order));
            let ticks = clock.ticks() - start;
            times.allocs.saturating_record(ticks);
            times.failed += u64::from(index.is_none());
            course.publish(block, index);
        } else if let Some(index) = course.wait(block) {
            let start = clock.ticks();
            let freed = black_box(allocator.free(lane, index, order));
            let ticks = clock.ticks() - start;
            times.frees.saturating_record(ticks);
            if let Err(refused) = freed {
                times.broken.get_or_insert(refused);
            }
        }
    }
    times
}
