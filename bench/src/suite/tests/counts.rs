//! What counts as an operation, and as refused.

use std::sync::{Mutex, PoisonError};

use testkit::BackEnd;

use super::{UNITS, blocks, on_nbbs, setting, workload};
use crate::clock::Clock;
use crate::market::{Heap, find};
use crate::suite::round::{self, Outcome};
use crate::suite::worker::Setting;
use crate::suite::workloads::Run;

fn on_heap(name: &str, heap: &str, bytes: u64, setting: Setting, clock: &Clock) -> Outcome {
    let Run::Heap(run) = workload(name).run else { panic!("{name} is for heaps") };
    let round = |heap: &dyn Heap| round::run_heap(run, heap, bytes, setting, clock, None);
    find(heap).unwrap().with_heap(bytes, round)
}

/// Their time is part of the time that is divided.
#[test]
fn what_is_refused_is_an_operation_too() {
    let clock = Clock::new();
    let setting = Setting { latency: true, ..setting(1, &clock) };
    let filled = find("nbbs").unwrap().with_back_end(UNITS, |back_end| {
        round::run(blocks("alloc-rnd"), back_end, setting, &clock)
    });
    let short = Setting { limit_ticks: setting.limit_ticks / 10, ..setting };
    let acted = on_heap("random-actions", "chunk", 1 << 20, short, &clock);
    for outcome in [filled, acted] {
        assert!(outcome.refused > 0);
        for phase in &outcome.phases {
            assert_eq!(phase.latency.as_ref().unwrap().count(), phase.ops, "{}", phase.name);
        }
    }
}

#[test]
fn a_repeated_case_counts_all_its_refusals() {
    let mut outcome = on_nbbs("alloc-rnd", 1);
    let (refused, ops) = (outcome.refused, outcome.phases[0].ops);
    outcome.add(on_nbbs("alloc-rnd", 1));
    assert_eq!((outcome.refused, outcome.phases[0].ops), (2 * refused, 2 * ops));
    assert!(refused > 0);
}

/// A thread that has its share of the memory asks for nothing.
#[test]
fn what_is_not_asked_for_is_not_refused() {
    let clock = Clock::new();
    let outcome = on_heap("heap-random", "system", 1 << 20, Setting::of(1, 1e8, &clock), &clock);
    assert_eq!(outcome.refused, 0);
    assert!(outcome.phases.iter().all(|phase| phase.complete && phase.ops > 0));
}

/// Once takes some ten requests, and the full heap takes all the time that there is.
#[test]
fn a_heap_is_filled_again_until_that_took_long_enough() {
    let clock = Clock::new();
    for threads in [1, 2] {
        let setting = Setting::of(threads, 1e8, &clock);
        let outcome = on_heap("heap-random", "chunk", 1 << 16, setting, &clock);
        let [filling, _] = &outcome.phases[..] else { panic!("{} phases", outcome.phases.len()) };
        assert!(filling.ops > 60 && filling.complete, "{filling:?}");
    }
}

/// An allocator, the units in use, whether the last call allocated, and how many units were in use whenever frees began.
struct Peaks<'a>(&'a dyn BackEnd, Mutex<(u64, bool, Vec<u64>)>);

impl BackEnd for Peaks<'_> {
    fn units(&self) -> u64 {
        self.0.units()
    }

    fn max_order(&self) -> u32 {
        self.0.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.0.metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        let index = self.0.alloc(lane, order);
        let mut state = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += index.map_or(0, |_| 1 << order);
        state.1 = true;
        index
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        let mut state = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        let used = state.0;
        if std::mem::take(&mut state.1) {
            state.2.push(used);
        }
        state.0 -= 1 << order;
        self.0.free(lane, index, order)
    }
}

/// A block that is refused for want of a place of its size leaves room for smaller ones.
#[test]
fn stress_goes_on_with_smaller_blocks_after_a_refusal() {
    let clock = Clock::new();
    let setting = Setting::of(1, 1e8, &clock);
    let (refused, peaks) = find("nbbs").unwrap().with_back_end(1000, |nbbs| {
        let peaks = Peaks(nbbs, Mutex::default());
        let outcome = round::run(blocks("stress"), &peaks, setting, &clock);
        (outcome.refused, peaks.1.into_inner().unwrap().2)
    });
    // The last two are where time was up, and the whole arena, which is asked for in the end.
    let [full @ .., _, _] = &peaks[..] else { panic!("{peaks:?}") };
    assert!(refused > 0 && !full.is_empty() && full.iter().all(|&used| used >= 950), "{peaks:?}");
}
