//! Whether what is counted as idle is what is free and was in use.
//!
//! ```text
//! parts   memory that goes back in parts
//! ```

mod parts;

use core::alloc::Layout;
use core::num::NonZeroUsize;
use core::ptr::NonNull;
use std::cell::Cell;
use std::sync::Mutex;
use std::thread;
use std::vec::Vec;

use nbbs::Piece;

use crate::api::{Cpu, Heap};
use crate::class::UNIT;
use crate::operations::Operations;
use crate::region::Region;

std::thread_local! {
    /// The number of the thread's cache.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
    /// How often memory was to go back, and what was said then.
    static CALLS: Cell<(u32, u64, u64)> = const { Cell::new((0, 0, 0)) };
}

struct GivesBack;

impl Cpu for GivesBack {
    fn number() -> Option<usize> {
        Some(NUMBER.get())
    }

    const GIVES_BACK: bool = true;

    fn give_back(idle: u64, touched: u64) {
        let (calls, ..) = CALLS.get();
        CALLS.set((calls + 1, idle, touched));
    }
}

type Counted<const BYTES: usize, const CPUS: usize = 1> = Heap<BYTES, CPUS, GivesBack>;

/// Counts what is idle in a region, by its bits and its blocks, and what was touched.
fn recounted(region: &Region<'_>) -> (u64, u64) {
    const EACH: u64 = UNIT as u64;
    let of = |units| EACH * region.fresh.touched(units);
    let mut idle = 0;
    region.buddy().walk(|piece| match piece {
        Piece::Free { index, order } => {
            idle += of(index..index + (1 << order)).min(EACH << order);
        }
        // A whole slab, unless it is a run of this length.
        Piece::Used { index, order } => match region.slab_at(index, order) {
            Some((class, free)) if free == class.all_slots().count_ones() => idle += EACH << order,
            _ => (),
        },
        _ => (),
    });
    (idle, of(0..region.buddy().units()))
}

fn assert_counted<const BYTES: usize, const CPUS: usize>(heap: &'static Counted<BYTES, CPUS>) {
    heap.memory().each(|region| assert_eq!(region.idle(), recounted(region)));
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).expect("a layout")
}

/// Gives pages back, of which those at every third multiple of 4 KiB are said not to be zero.
fn discard<const BYTES: usize>(heap: &'static Counted<BYTES>) {
    // SAFETY: nobody else has the pages, which are zero if this says so.
    let discard = |at: NonNull<u8>, bytes: usize| unsafe {
        at.write_bytes(0, bytes);
        !(at.addr().get() >> 12).is_multiple_of(3)
    };
    // SAFETY: as above.
    unsafe { heap.discard(4096, discard) }.expect("a page");
}

#[test]
fn what_is_counted_is_idle() {
    static HEAP: Counted<{ 64 << 20 }> = Heap::new();
    let (mut rng, mut held) = (fastrand::Rng::with_seed(5), Vec::new());
    for _ in 0..20_000 {
        let most = [300, 40_000, 2_000_000][rng.usize(..3)];
        let bytes = 1 + rng.usize(..most);
        match rng.u32(..100) {
            0 => _ = HEAP.trim(),
            1 => discard(&HEAP),
            2..10 if !held.is_empty() => {
                let at = held.swap_remove(rng.usize(..held.len()));
                // SAFETY: it is ours.
                held.push(unsafe { HEAP.resize_at(at, bytes) }.unwrap().unwrap_or(at));
            }
            10..20 if !held.is_empty() => {
                let at = held.swap_remove(rng.usize(..held.len()));
                // SAFETY: it is ours, and is cleared.
                let clear = |bytes| unsafe {
                    at.write_bytes(0, bytes);
                    1..bytes
                };
                // SAFETY: as above.
                unsafe { HEAP.free_at_after(at, clear) }.unwrap();
            }
            20..60 => held.extend(HEAP.alloc(layout(bytes))),
            _ if !held.is_empty() => {
                let at = held.swap_remove(rng.usize(..held.len()));
                // SAFETY: it is ours.
                unsafe { HEAP.free_at(at) }.unwrap();
            }
            _ => (),
        }
        assert_counted(&HEAP);
    }
    // SAFETY: they are ours.
    held.into_iter().for_each(|at| _ = unsafe { HEAP.free_at(at) }.unwrap());
    HEAP.trim();
    assert_counted(&HEAP);
}

#[test]
fn memory_of_any_content_was_touched() {
    static HEAP: Counted<0> = Heap::new();
    let memory = NonNull::from(std::vec![7_u8; 1 << 20].leak()).cast();
    // SAFETY: the memory is leaked.
    unsafe { HEAP.add(memory, 1 << 20) }.unwrap();
    assert!(HEAP.memory().idle().is_some());
    discard(&HEAP);
    HEAP.memory().each(|region| {
        let (counted, recounted) = (region.idle(), recounted(region));
        // The last stretch counts as a whole one.
        assert!((recounted.0..recounted.0 + (64 << 10)).contains(&counted.0), "{counted:?}");
        assert_eq!(counted.1, recounted.1);
    });
}

/// Threads that free what others have allocated, so that several make a slab whole at once.
#[test]
fn what_threads_free_is_counted_once() {
    static HEAP: Counted<{ 128 << 20 }, 4> = Heap::new();
    const THREADS: usize = 4;
    for bytes in [64, 600, 10_000, 30_000, 100_000] {
        let shared = Mutex::new(Vec::new());
        let work = |thread| {
            NUMBER.set(thread);
            let mut rng = fastrand::Rng::with_seed(thread as u64);
            for _ in 0..3000 {
                let mine = (0..32).filter_map(|_| HEAP.alloc(layout(bytes)));
                let mine: Vec<_> = mine.map(|at| at.expose_provenance()).collect();
                let mut all = shared.lock().unwrap();
                all.extend(mine);
                rng.shuffle(&mut all);
                let stay = all.len().saturating_sub(rng.usize(..150));
                let some = all.split_off(stay);
                drop(all);
                some.into_iter().for_each(free);
            }
            HEAP.drain();
        };
        fn free(at: NonZeroUsize) {
            // SAFETY: it was shared by who allocated it.
            _ = unsafe { HEAP.free_at(NonNull::with_exposed_provenance(at)) }.unwrap();
        }
        thread::scope(|scope| {
            (0..THREADS).for_each(|thread| _ = scope.spawn(move || work(thread)))
        });
        shared.into_inner().unwrap().into_iter().for_each(free);
        HEAP.drain();
        assert_counted(&HEAP);
    }
}

/// Memory that somebody frees while other memory goes back, in front of that.
#[test]
fn what_is_freed_meanwhile_is_to_go_back_next() {
    static HEAP: Counted<{ 128 << 20 }> = Heap::new();
    let [front, behind] = [40 << 20, 60 << 20];
    let mut first = HEAP.alloc(layout(front));
    let second = HEAP.alloc(layout(behind)).expect("room");
    assert!(first.is_some_and(|first| first < second));
    // SAFETY: it is ours.
    unsafe { HEAP.free(second, layout(behind)) };
    assert!(HEAP.memory().idle().is_some());
    let discard = |at: NonNull<u8>, bytes: usize| {
        if let Some(at) = first.take() {
            // SAFETY: it is ours.
            unsafe { HEAP.free(at, layout(front)) };
        }
        // SAFETY: nobody else has the pages.
        unsafe { at.write_bytes(0, bytes) };
        true
    };
    // SAFETY: they are zero.
    unsafe { HEAP.discard(4096, discard) }.expect("a page");
    let (idle, touched) = HEAP.memory().idle().expect("much is idle");
    assert!(idle >= front as u64 && touched < front as u64 + (2 << 20), "{idle} {touched}");
}

/// Slots and runs, freed to a cache and past it.
#[test]
fn much_idle_memory_is_to_go_back() {
    static HEAP: Counted<{ 128 << 20 }> = Heap::new();
    for bytes in [1000, 20_000, 400_000, 3 << 20] {
        discard(&HEAP);
        let blocks: Vec<_> =
            (0..(80 << 20) / bytes).map(|_| HEAP.alloc(layout(bytes)).expect("room")).collect();
        CALLS.set((0, 0, 0));
        let mut calls = Vec::new();
        for at in blocks {
            // SAFETY: it is ours.
            unsafe { HEAP.free(at, layout(bytes)) };
            calls.push(CALLS.get());
        }
        let by_frees = CALLS.get().0;
        HEAP.drain();
        assert_eq!(CALLS.get().0, by_frees + 1);
        let (first, idle, touched) = *calls.iter().find(|&&(calls, ..)| calls > 0).unwrap();
        // A quarter of the heap is less than half of what was touched.
        assert!(first == 1 && idle >= touched / 2 && idle <= touched / 2 + (4 << 20), "{bytes}");
        assert!((75..100).contains(&(touched >> 20)), "{touched}");
        let before = CALLS.get().0;
        assert!(before > 1, "it is asked until it does so");
        HEAP.trim();
        discard(&HEAP);
        HEAP.drain();
        assert_eq!(CALLS.get().0, before);
    }
}
