//! What the pass with an owner map must find, of faults that the times do not show.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use indicatif::ProgressBar;
use testkit::BackEnd;

use super::{contender, setting, workload};
use crate::clock::Clock;
use crate::market::{Contender, WithBackEnd, find};
use crate::row::Row;
use crate::suite::measure::{WorkloadCase, measure};

#[derive(Clone, Copy)]
enum Fault {
    None,
    /// Every second block is refused, except single units and the largest blocks.
    Refuses,
    /// What is freed behind the first of the largest blocks is lost.
    Loses,
    /// It panics once, when one thread has allocated for a while.
    Panics,
}

/// This project's allocator, with a fault.
struct Broken<'a> {
    nbbs: &'a dyn BackEnd,
    fault: Fault,
    calls: AtomicU64,
}

impl BackEnd for Broken<'_> {
    fn units(&self) -> u64 {
        self.nbbs.units()
    }

    fn max_order(&self) -> u32 {
        self.nbbs.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.nbbs.metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        let call = self.calls.fetch_add(1, Relaxed);
        match self.fault {
            Fault::Refuses if (1..self.max_order()).contains(&order) && call.is_multiple_of(2) => {
                None
            }
            Fault::Panics => {
                assert_ne!(call, 5000, "a test");
                self.nbbs.alloc(lane, order)
            }
            _ => self.nbbs.alloc(lane, order),
        }
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        match self.fault {
            Fault::Loses if index >> self.max_order() > 0 => Ok(()),
            _ => self.nbbs.free(lane, index, order),
        }
    }
}

fn broken(fault: Fault, units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    let nbbs = find("nbbs").unwrap();
    nbbs.with_back_end(units, |nbbs| visit(&Broken { nbbs, fault, calls: AtomicU64::new(0) }));
}

/// Returns the rows of a workload on one thread and so many units.
fn rows(name: &str, units: u64, build: WithBackEnd) -> Vec<Row> {
    measured((name, 1), units, false, build)
}

fn measured(
    (name, threads): (&str, usize),
    units: u64,
    once: bool,
    build: WithBackEnd,
) -> Vec<Row> {
    let clock = Clock::new();
    let contender: &'static Contender =
        Box::leak(Box::new(Contender { max_units: units, ..contender(build) }));
    let setting = setting(threads, &clock);
    let case =
        WorkloadCase { workload: workload(name), units, trace: None, once, setting, rounds: 1 };
    measure(&case, &[contender], &clock, &ProgressBar::hidden())
}

#[track_caller]
fn must_fail(words: &str, rows: &[Row]) {
    assert!(!rows.is_empty());
    for row in rows {
        let violation = row.violation.as_deref().unwrap_or_default();
        assert!(row.is_wrong() && violation.contains(words), "{row:?}");
    }
}

/// Counts cannot tell that a block of several units was free, but on one thread the specification can.
#[test]
fn on_one_thread_every_refusal_must_be_honest() {
    for name in ["alloc-rnd", "free-rnd"] {
        let rows = rows(name, 1 << 14, |units, visit| broken(Fault::Refuses, units, visit));
        must_fail("refused order", &rows);
    }
}

/// The last third of this arena lies in no block of the largest order.
#[test]
fn what_is_lost_is_missed_wherever_it_lies() {
    for name in ["fill", "free-rnd"] {
        let rows = rows(name, 3 << 13, |units, visit| broken(Fault::Loses, units, visit));
        must_fail("memory is not whole", &rows);
    }
}

#[test]
fn only_what_was_judged_is_called_verified() {
    let verified = |once| {
        let right: WithBackEnd = |units, visit| broken(Fault::None, units, visit);
        measured(("fill", 1), 1 << 10, once, right)[0].verified
    };
    assert_eq!([verified(false), verified(true)], [Some(true), None]);
}

/// One thread panics while the others wait for it, or soon will.
#[test]
fn an_allocator_that_panics_is_found_wrong_and_stops_nobody() {
    for name in ["bulk", "rand", "repeat"] {
        let build: WithBackEnd = |units, visit| broken(Fault::Panics, units, visit);
        let rows = measured((name, 2), 1 << 14, false, build);
        must_fail("panicked: ", &rows);
        assert_eq!(rows.len(), 1, "{rows:?}");
    }
}
