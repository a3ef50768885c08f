//! What counts as an operation, and as refused.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use testkit::BackEnd;

use super::{UNITS, blocks, on_nbbs, setting, workload};
use crate::clock::Clock;
use crate::market::{CheckedHeap, Heap, find};
use crate::suite::round::{self, Outcome};
use crate::suite::worker::Setting;
use crate::suite::workloads::Run;
use crate::trace::HeapTrace;

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

/// How often it is repeated says nothing about what it was refused; that only a later run was refused something does.
#[test]
fn a_repeated_case_counts_the_refusals_of_one_run() {
    let mut outcome = on_nbbs("alloc-rnd", 1);
    let (refused, ops) = (outcome.refused, outcome.phases[0].ops);
    outcome.add(on_nbbs("alloc-rnd", 1));
    assert_eq!((outcome.refused, outcome.phases[0].ops), (refused, 2 * ops));
    assert!(refused > 0);
    outcome.add(Outcome { refused: refused + 1, ..Outcome::default() });
    assert_eq!(outcome.refused, refused + 1);
}

/// A thread that has its share of the memory asks for nothing.
#[test]
fn what_is_not_asked_for_is_not_refused() {
    let clock = Clock::new();
    let outcome = on_heap("heap-random", "system", 1 << 20, Setting::of(1, 1e8, &clock), &clock);
    assert_eq!(outcome.refused, 0);
    assert!(outcome.phases.iter().all(|phase| phase.complete && phase.ops > 0));
}

/// Once takes some ten requests, and the full heap takes all the time that there is. Ten tries, as the machine may have
/// no time for it.
#[test]
fn a_heap_is_filled_again_until_that_took_long_enough() {
    let clock = Clock::new();
    for threads in [1, 2] {
        let setting = Setting::of(threads, 1e8, &clock);
        let is_filled_again = |_| {
            let outcome = on_heap("heap-random", "chunk", 1 << 16, setting, &clock);
            let [filling, _] = &outcome.phases[..] else { panic!("{:?}", outcome.phases) };
            filling.ops > 60 && filling.complete
        };
        assert!((0..10).any(is_filled_again), "{threads} threads");
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

/// A heap that counts its allocations.
struct Counting<'a>(&'a dyn Heap, AtomicU64);

#[allow(unsafe_code)]
// SAFETY: it passes everything on to another heap.
unsafe impl Heap for Counting<'_> {
    fn metadata_bytes(&self) -> Option<usize> {
        self.0.metadata_bytes()
    }

    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.1.fetch_add(1, Relaxed);
        self.0.alloc(layout)
    }

    unsafe fn free(&self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.0.free(at, layout) };
    }

    unsafe fn resize(&self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { self.0.resize(at, layout, size) }
    }
}

/// Heaps that get their memory from the system would do so while they are timed.
#[test]
fn a_heap_trace_is_replayed_once_before_it_is_timed() {
    let clock = Clock::new();
    let text = "# heap trace v1: test\n+0 5 16 0\n+1 7 8 1\n=1 2048 0\n+0 9 8 2\n-0 1\n";
    let trace = compress_to_vec(text.as_bytes(), CompressionLevel::Fastest);
    let trace = HeapTrace::read("test", &trace).unwrap();
    let Run::Heap(run) = workload("replay-heap").run else { panic!("it is for heaps") };
    find("chunk").unwrap().with_heap(1 << 20, |heap| {
        let counting = Counting(heap, AtomicU64::new(0));
        let checked = CheckedHeap::new(&counting);
        let (setting, trace) = (setting(2, &clock), Some(&trace));
        let outcome = round::run_heap(run, &checked, 1 << 20, setting, &clock, trace);
        assert_eq!((outcome.phases[0].ops, counting.1.load(Relaxed)), (5, 2 * 3));
        assert_eq!(checked.finish(), Ok(()));
    });
}
