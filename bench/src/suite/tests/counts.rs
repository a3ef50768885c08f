//! What counts as an operation, and as refused.

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
