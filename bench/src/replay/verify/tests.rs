use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use testkit::BackEnd;

use indicatif::ProgressBar;

use crate::clock::Clock;
use crate::market::{Build, Contender, find};
use crate::replay::{Events, Replayed};
use crate::row::Row;
use crate::suite::args::Suite;
use crate::suite::measure::{WorkloadCase, measure};
use crate::suite::worker::Setting;
use crate::trace::{Action, Event, Trace};

const UNITS: u64 = 1 << 10;

/// Makes a trace: blocks of orders 0 to 2 on two CPUs, every second one freed by the other CPU, some never.
fn trace(blocks: usize) -> Trace {
    let orders: Vec<u8> = (0..blocks).map(|block| block as u8 % 3).collect();
    let alloc = |block| Event { cpu: block % 2, action: Action::Alloc, block };
    let free = |block| Event { cpu: block / 2 % 2, action: Action::Free, block };
    let mut events: Vec<Event> = (0..100).map(alloc).collect();
    events.extend((100..blocks).flat_map(|block| [alloc(block), free(block - 50)]));
    Trace { name: "test", cpus: 2, orders, events, peak_units: 350 }
}

/// Returns the row of a contender that replays the trace, in one round.
fn row(contender: Contender, units: u64, threads: usize, trace: Trace) -> Row {
    let clock = Clock::new();
    let contender: &'static Contender = Box::leak(Box::new(contender));
    let args = Suite::of("replay");
    let workload = args.workloads().next().unwrap();
    let trace = Replayed { asked: None, events: Events::Pages(trace) };
    let setting = Setting::of(threads, 1e9, &clock);
    let case =
        WorkloadCase { workload, units, trace: Some(&trace), once: false, setting, rounds: 1 };
    measure(&case, &[contender], &clock, &ProgressBar::hidden()).remove(0)
}

#[test]
fn good_allocators_are_verified() {
    for name in ["nbbs", "linux"] {
        for threads in [1, 2] {
            let row = row(*find(name).unwrap(), UNITS, threads, trace(200));
            assert_eq!((&row.violation, row.refused, row.complete), (&None, 0, true), "{name}");
            assert!((200.0..UNITS as f64).contains(&row.figure("peak_units").unwrap()));
            assert!((5.0..10.0).contains(&row.figure("largest_free_order").unwrap()));
            assert!(row.mean_ns.unwrap() > 0.0 && row.p50_ns <= row.max_ns, "{row:?}");
        }
    }
}

#[test]
fn an_arena_that_is_too_small_is_no_violation() {
    for name in ["nbbs", "linux"] {
        let row = row(*find(name).unwrap(), 64, 2, trace(200));
        assert_eq!(row.violation, None, "{name}");
        assert!(row.refused > 0 && row.figure("peak_units").unwrap() <= 64.0);
    }
}

/// A round replays the trace many times, and the count is to say the same of fast allocators as of slow ones.
#[test]
fn refusals_are_those_of_one_replay() {
    for name in ["nbbs", "linux"] {
        let contender = find(name).unwrap();
        let row = row(*contender, 64, 1, trace(200));
        assert!(row.ops.unwrap() > 2 * 400, "{row:?}");
        assert_eq!(row.refused, super::verify(contender, 64, &trace(200), 1).failed, "{name}");
    }
}

/// Hands out a block that is in use.
const TWICE: u8 = 0;
/// Does not take a block back.
const LEAK: u8 = 1;
/// Refuses although there is room.
const REFUSE: u8 = 2;
/// Panics.
const PANIC: u8 = 3;

/// The kernel's buddy with a fault in one allocation, or one free, out of many.
struct Faulty<'a, const FAULT: u8> {
    inner: &'a dyn BackEnd,
    allocations: AtomicU64,
    frees: AtomicU64,
}

impl<const FAULT: u8> BackEnd for Faulty<'_, FAULT> {
    fn units(&self) -> u64 {
        self.inner.units()
    }

    fn max_order(&self) -> u32 {
        self.inner.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.inner.metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        match (self.allocations.fetch_add(1, Relaxed), FAULT) {
            (150, TWICE) => Some(0),
            (150, REFUSE) => None,
            (150, PANIC) => panic!("out of order"),
            _ => self.inner.alloc(lane, order),
        }
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        match (self.frees.fetch_add(1, Relaxed), FAULT) {
            (50, LEAK) => Ok(()),
            _ => self.inner.free(lane, index, order),
        }
    }
}

/// Correct as long as there is one thread: keeps the last freed unit, and gives it to the first allocation, or to two
/// that come first together.
struct Racy<'a> {
    inner: &'a dyn BackEnd,
    kept: AtomicU64,
}

const NOTHING: u64 = u64::MAX;

impl Racy<'_> {
    fn give_back(&self) {
        match self.kept.swap(NOTHING, Relaxed) {
            NOTHING => {}
            index => self.inner.free(0, index, 0).unwrap(),
        }
    }
}

impl BackEnd for Racy<'_> {
    fn units(&self) -> u64 {
        self.inner.units()
    }

    fn max_order(&self) -> u32 {
        self.inner.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.inner.metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        let kept = self.kept.load(Relaxed);
        if order == 0 && kept != NOTHING {
            std::thread::yield_now();
            self.kept.store(NOTHING, Relaxed);
            return Some(kept);
        }
        self.give_back();
        self.inner.alloc(lane, order)
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        if order > 0 {
            return self.inner.free(lane, index, order);
        }
        self.give_back();
        self.kept.store(index, Relaxed);
        Ok(())
    }
}

fn with_faulty<const FAULT: u8>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    find("linux").unwrap().with_back_end(units, |inner| {
        let [allocations, frees] = [0, 0].map(AtomicU64::new);
        visit(&Faulty::<FAULT> { inner, allocations, frees });
    });
}

fn with_racy(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    find("linux").unwrap().with_back_end(units, |inner| {
        visit(&Racy { inner, kept: AtomicU64::new(NOTHING) });
    });
}

/// Creates an allocator of a number of units and lends it.
type Make = fn(u64, &mut dyn FnMut(&dyn BackEnd));

fn contender(build: Make) -> Contender {
    let build = Build::BackEnd(build);
    Contender {
        name: "bad",
        source: "a test",
        safe: false,
        private_caches: false,
        min_units: 1,
        max_units: UNITS,
        build,
        counted: None,
    }
}

#[test]
fn every_fault_is_named() {
    for (build, words) in [
        (with_faulty::<TWICE> as Make, "held"),
        (with_faulty::<LEAK>, "order"),
        (with_faulty::<REFUSE>, "refused"),
        (with_faulty::<PANIC>, "out of order"),
    ] {
        let violation = row(contender(build), UNITS, 1, trace(200)).violation.expect(words);
        assert!(violation.contains(words), "{words}: {violation}");
    }
}

#[test]
fn a_fault_that_takes_two_threads_is_found_with_two() {
    let violation = |threads| row(contender(with_racy), UNITS, threads, trace(50_000)).violation;
    assert_eq!(violation(1), None);
    assert!(violation(2).is_some());
}
