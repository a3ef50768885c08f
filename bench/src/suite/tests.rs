//! Workloads on correct allocators, and on faulty ones.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use indicatif::ProgressBar;
use testkit::BackEnd;

use super::measure::{WorkloadCase, measure};
use super::round::{self, Outcome};
use super::worker::Setting;
use super::workloads::{Run, WORKLOADS, Workload};
use crate::clock::Clock;
use crate::market::{Build, CheckedHeap, Contender, Heap};
use crate::row::Row;
use crate::trace::HeapTrace;

mod counts;
mod judged;

const UNITS: u64 = 1 << 12;

/// A second for each part: enough to complete it on a busy machine.
fn setting(threads: usize, clock: &Clock) -> Setting {
    Setting::of(threads, 1e9, clock)
}

fn workload(name: &str) -> &'static Workload {
    WORKLOADS.iter().find(|workload| workload.name == name).unwrap()
}

fn blocks(name: &str) -> fn(&mut super::worker::Worker<'_>) {
    match workload(name).run {
        Run::Blocks(run) => run,
        _ => panic!("{name} is not for back-ends"),
    }
}

fn on_nbbs(name: &str, threads: usize) -> Outcome {
    let clock = Clock::new();
    let nbbs = crate::market::find("nbbs").unwrap();
    let setting = setting(threads, &clock);
    nbbs.with_back_end(UNITS, |back_end| round::run(blocks(name), back_end, setting, &clock))
}

#[test]
fn workloads_do_as_many_operations_as_they_say() {
    for (name, ops) in [
        ("alloc-seq", vec![UNITS]),
        ("free-seq", vec![UNITS]),
        ("fill", vec![UNITS]),
        ("bulk", vec![UNITS / 2, UNITS / 2]),
        ("rand", vec![UNITS / 2]),
        ("filling", vec![UNITS / 100 * 2 * 20; 4]),
        ("repeat", vec![2 * 100_000]),
    ] {
        for threads in [1, 2] {
            let outcome = on_nbbs(name, threads);
            assert_eq!(outcome.violation, None, "{name}");
            assert!(outcome.phases.iter().all(|phase| phase.complete), "{name}");
            let done: Vec<u64> = outcome.phases.iter().map(|phase| phase.ops).collect();
            let factor = if name == "repeat" { threads as u64 } else { 1 };
            let ops: Vec<u64> = ops.iter().map(|ops| ops * factor).collect();
            assert_eq!(done, ops, "{name}, {threads} threads");
            assert_eq!(outcome.refused, 0, "{name}");
        }
    }
}

/// Those that go on until time is up are complete then; those that fill the memory are not.
#[test]
fn what_is_cut_short_is_not_complete() {
    let clock = Clock::new();
    let no_time = |threads| Setting::of(threads, 1.0, &clock);
    for (name, complete) in
        [("alloc-rnd", false), ("free-rnd", false), ("churn", false), ("stress", true)]
    {
        let outcome = crate::market::find("nbbs").unwrap().with_back_end(1 << 18, |back_end| {
            round::run(blocks(name), back_end, no_time(2), &clock)
        });
        assert!(outcome.phases.iter().all(|phase| phase.complete == complete), "{name}");
    }
    for (name, complete) in [("mstress", false), ("hermit", true)] {
        let Run::Heap(run) = workload(name).run else { panic!("{name} is for heaps") };
        let outcome = crate::market::find("chunk").unwrap().with_heap(1 << 22, |heap| {
            round::run_heap(run, heap, 1 << 22, no_time(1), &clock, None)
        });
        assert_eq!(outcome.phases[0].complete, complete, "{name}");
    }
}

#[test]
fn frag_says_how_much_can_be_recovered() {
    let outcome = on_nbbs("frag", 1);
    let percent = outcome.recovered_percent.unwrap();
    assert!((0.0..=100.0).contains(&percent), "{percent} %");
    assert!(on_nbbs("alloc-seq", 1).recovered_percent.is_none());
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// No fault: a list of units that are free.
    None,
    /// The unit handed out last is handed out again.
    Twice,
    /// A unit that is freed stays in use.
    Leaks,
    /// No free is accepted.
    RefusesFrees,
}

/// An allocator that searches units from first to last, and hands one out when its word is 0.
struct Faulty {
    fault: Fault,
    units: Vec<AtomicU64>,
    calls: AtomicU64,
}

impl Faulty {
    fn new(fault: Fault, units: u64) -> Self {
        let units = (0..units).map(|_| AtomicU64::new(0)).collect();
        Self { fault, units, calls: AtomicU64::new(0) }
    }
}

impl BackEnd for Faulty {
    fn units(&self) -> u64 {
        self.units.len() as u64
    }

    fn max_order(&self) -> u32 {
        0
    }

    fn metadata_bytes(&self) -> usize {
        size_of_val(&*self.units)
    }

    fn alloc(&self, _lane: usize, _order: u32) -> Option<u64> {
        let call = self.calls.fetch_add(1, Relaxed);
        let is_mine = |unit: &AtomicU64| unit.compare_exchange(0, 1, Relaxed, Relaxed).is_ok();
        let index = self.units.iter().position(is_mine)? as u64;
        if self.fault == Fault::Twice && call == 100 {
            self.units[index as usize].store(0, Relaxed);
        }
        Some(index)
    }

    fn free(&self, _lane: usize, index: u64, _order: u32) -> Result<(), String> {
        match self.fault {
            Fault::RefusesFrees => return Err("a test".to_owned()),
            Fault::Leaks if index == 7 => {}
            _ => self.units[index as usize].store(0, Relaxed),
        }
        Ok(())
    }
}

fn contender(build: crate::market::WithBackEnd) -> Contender {
    Contender {
        name: "faulty",
        source: "a test",
        safe: true,
        private_caches: false,
        min_units: 1,
        max_units: UNITS,
        build: Build::BackEnd(build),
        counted: None,
    }
}

fn rows(build: crate::market::WithBackEnd) -> Vec<Row> {
    let clock = Clock::new();
    let contender: &'static Contender = Box::leak(Box::new(contender(build)));
    let setting = setting(2, &clock);
    let case = WorkloadCase {
        workload: workload("bulk"),
        units: 1 << 9,
        trace: None,
        once: false,
        setting,
        rounds: 2,
    };
    measure(&case, &[contender], &clock, &ProgressBar::hidden())
}

#[track_caller]
fn must_fail(words: &str, build: crate::market::WithBackEnd) {
    for row in rows(build) {
        assert!(row.is_wrong() && row.violation.as_ref().unwrap().contains(words), "{row:?}");
        let times = [row.ns_per_op, row.ops_per_s, row.min_ns_per_op, row.p50_ns, row.max_ns];
        assert_eq!(times, [None; 5], "{row:?}");
    }
}

#[test]
fn wrong_allocators_have_no_times() {
    must_fail("held", |units, visit| visit(&Faulty::new(Fault::Twice, units)));
    must_fail("blocks of order 0", |units, visit| visit(&Faulty::new(Fault::Leaks, units)));
    must_fail("refused", |units, visit| visit(&Faulty::new(Fault::RefusesFrees, units)));
}

#[test]
fn right_ones_have_times() {
    for row in rows(|units, visit| visit(&Faulty::new(Fault::None, units))) {
        assert!(
            row.verified == Some(true) && row.complete && row.ns_per_op.unwrap() > 0.0,
            "{row:?}"
        );
        assert!(row.p50_ns <= row.p99_ns && row.p999_ns <= row.max_ns && row.max_ns.is_some());
        assert_eq!(row.rmw_per_op, None, "{row:?}");
    }
}

/// Each run takes half of the units, and a round has as many runs as make a stretch long enough: one if the machine has
/// no time for it, hence ten tries.
#[test]
fn what_is_short_is_repeated() {
    let is_repeated = |row: &Row| row.ops.unwrap() > 2 * 256;
    let of_one_try = || rows(|units, visit| visit(&Faulty::new(Fault::None, units)));
    assert!((0..10).any(|_| of_one_try().iter().all(is_repeated)));
}

/// The system's heap, without frees. If it is to be faulty, the thousandth block is the one before again.
struct Leaky {
    wrong: bool,
    calls: AtomicU64,
    last: AtomicPtr<u8>,
}

impl Leaky {
    fn new(wrong: bool) -> Self {
        Self { wrong, calls: AtomicU64::new(0), last: AtomicPtr::default() }
    }
}

#[allow(unsafe_code)]
// SAFETY: this is a lie if the heap is to be faulty: then a block is handed out twice. Its holders do not write to it
// at the same time, as the test has one thread.
unsafe impl Heap for Leaky {
    fn metadata_bytes(&self) -> Option<usize> {
        None
    }

    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        if self.wrong && self.calls.fetch_add(1, Relaxed) == 1000 {
            return NonNull::new(self.last.load(Relaxed));
        }
        // SAFETY: the layout has a byte at least. Twice the size: the block may be handed out as another.
        let at = unsafe { System.alloc(Layout::from_size_align(1 << 14, layout.align()).ok()?) };
        self.last.store(at, Relaxed);
        NonNull::new(at)
    }

    unsafe fn free(&self, _at: NonNull<u8>, _layout: Layout) {}

    unsafe fn resize(&self, _: NonNull<u8>, _: Layout, _: usize) -> Option<NonNull<u8>> {
        None
    }
}

#[test]
fn heap_random_times_frees_too() {
    let clock = Clock::new();
    let Run::Heap(run) = workload("heap-random").run else { panic!("it is for heaps") };
    let setting = Setting { latency: true, ..setting(1, &clock) };
    let outcome = crate::market::find("talc")
        .unwrap()
        .with_heap(1 << 22, |heap| round::run_heap(run, heap, 1 << 22, setting, &clock, None));
    assert_eq!(outcome.phases.len(), 2);
    for phase in &outcome.phases {
        assert_eq!(phase.latency.as_ref().unwrap().count(), phase.ops, "{}", phase.name);
    }
}

/// The first must free what the main thread allocated, the second what other threads did.
#[test]
fn heap_workloads_free_what_they_allocate() {
    let (clock, bytes) = (Clock::new(), 1 << 24);
    for name in ["cache-scratch", "xmalloc", "mstress", "larson-sizes", "hermit", "random-pairs"] {
        let Run::Heap(run) = workload(name).run else { panic!("{name} is for heaps") };
        for threads in [2, 5] {
            let setting = Setting::of(threads, 5e6, &clock);
            let outcome = crate::market::find("talc").unwrap().with_heap(bytes, |heap| {
                let checked = CheckedHeap::new(heap);
                let outcome = round::run_heap(run, &checked, bytes, setting, &clock, None);
                outcome.found(checked.finish().err())
            });
            assert_eq!((outcome.violation, outcome.refused), (None, 0), "{name}");
            let [phase] = &outcome.phases[..] else { panic!("{name} has parts") };
            // Blocks that the main thread allocated are none of the operations.
            let given = if name == "cache-scratch" { threads as u64 } else { 0 };
            assert!(
                phase.ops > given && (phase.ops - given).is_multiple_of(2),
                "{name}: {phase:?}"
            );
        }
    }
}

#[test]
fn heap_efficiency_is_of_heaps_that_can_be_full() {
    let (clock, bytes) = (Clock::new(), 1 << 22);
    let Run::Heap(run) = workload("heap-efficiency").run else { panic!("it is for heaps") };
    let percent = |name: &str, threads| {
        let setting = setting(threads, &clock);
        let on_heap = |heap: &dyn Heap| round::run_heap(run, heap, bytes, setting, &clock, None);
        crate::market::find(name).unwrap().with_heap(bytes, on_heap).efficiency_percent
    };
    for (name, least, most) in [("talc", 80.0, 100.0), ("buddy-system", 40.0, 80.0)] {
        let percent = percent(name, 1).unwrap();
        assert!((least..most).contains(&percent), "{name}: {percent} %");
    }
    assert_eq!([percent("system", 1), percent("talc", 2)], [None; 2]);
}

#[test]
fn the_first_failure_is_where_there_is_no_room_left() {
    let (clock, trace) = (Clock::new(), HeapTrace::sample().unwrap());
    let Run::Heap(run) = workload("first-failure").run else { panic!("it is for heaps") };
    let outcome = |name: &str, bytes| {
        let setting = setting(1, &clock);
        let on_heap =
            |heap: &dyn Heap| round::run_heap(run, heap, bytes, setting, &clock, Some(&trace));
        crate::market::find(name).unwrap().with_heap(bytes, on_heap)
    };
    let crowded = outcome("talc", trace.peak_bytes / 2);
    assert!((50.0..100.0).contains(&crowded.efficiency_percent.unwrap()), "{crowded:?}");
    assert_eq!((crowded.refused, crowded.phases[0].complete), (1, true));
    for (name, bytes) in [("talc", trace.peak_bytes * 2), ("system", trace.peak_bytes / 2)] {
        let roomy = outcome(name, bytes);
        assert_eq!((roomy.refused, roomy.efficiency_percent), (0, None), "{name}");
        assert_eq!(roomy.phases[0].ops, trace.events.len() as u64);
    }
}

#[test]
fn wrong_heaps_have_no_times() {
    let clock = Clock::new();
    let rows = |name: &str, build: crate::market::WithHeap| {
        let contender = Contender { build: Build::Heap(build), ..contender(|_, _| {}) };
        let contender: &'static Contender = Box::leak(Box::new(contender));
        let setting = Setting { most_held: 1000, ..setting(1, &clock) };
        let (workload, units) = (workload(name), 1 << 24);
        let case = WorkloadCase { workload, units, trace: None, once: false, setting, rounds: 1 };
        measure(&case, &[contender], &clock, &ProgressBar::hidden())
    };
    for name in ["threadtest", "heap-random"] {
        for row in rows(name, |_, visit| visit(&Leaky::new(false))) {
            assert!(row.verified == Some(true) && row.ns_per_op.is_some(), "{row:?}");
            assert_eq!((&*row.kind, row.metadata_bytes, row.order), ("heap", None, None));
        }
        for row in rows(name, |_, visit| visit(&Leaky::new(true))) {
            assert!(row.is_wrong() && row.violation.as_ref().unwrap().contains("were held"));
            assert_eq!([row.ns_per_op, row.p50_ns, row.max_ns], [None; 3], "{row:?}");
        }
    }
}
