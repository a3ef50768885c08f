//! Memory that goes back in parts.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::vec::Vec;

use super::{Counted, NUMBER, assert_counted, discard, layout};
use crate::api::Heap;
use crate::operations::Operations;

/// In parts, of which each is asked for by a free, until the last.
#[test]
fn idle_memory_goes_back_in_parts() {
    static HEAP: Counted<{ 128 << 20 }> = Heap::new();
    let part = |most| {
        // SAFETY: nobody else has the pages.
        let zero = |at: NonNull<u8>, bytes| unsafe {
            at.write_bytes(0, bytes);
            true
        };
        // SAFETY: they are zero.
        unsafe { HEAP.discard_next(most, 4096, zero) }.expect("a page")
    };
    let is_asked_for = || HEAP.memory().idle().is_some();
    let nothing = part(1 << 20);
    assert!(nothing.is_last && nothing.bytes == 0, "{nothing:?}");
    // A block of 30 MiB in use, and one of 60 that is free, on both sides of it.
    let [first, held, last] =
        [60_usize, 30, 10].map(|mib| HEAP.alloc(layout(mib << 20)).expect("room"));
    for (block, mib) in [(first, 60), (last, 10)] {
        // SAFETY: it is ours.
        unsafe { HEAP.free(block, layout(mib << 20)) };
    }
    let (mut gone, mut parts) = (0, 0);
    while is_asked_for() {
        let part = part(8 << 20);
        assert!(part.bytes <= 8 << 20 && part.is_last != is_asked_for(), "{part:?}");
        assert!(parts < 20, "no part is the last");
        (gone, parts) = (gone + part.bytes, parts + 1);
    }
    // All but what lies in a stretch with the block in use. Parts begin with what may be other than zero.
    assert!((69 << 20..=70 << 20).contains(&gone) && (12..=14).contains(&parts), "{gone} {parts}");
    assert_counted(&HEAP);
    // A discard of all leaves no part.
    let again = HEAP.alloc(layout(60 << 20)).expect("room");
    // SAFETY: it is ours.
    unsafe { HEAP.free(again, layout(60 << 20)) };
    assert!(is_asked_for() && !part(1).is_last && is_asked_for());
    // SAFETY: it is ours.
    unsafe { HEAP.free(held, layout(30 << 20)) };
    discard(&HEAP);
    assert!(!is_asked_for());
}

/// What parts leave idle is no reason to look again, as with all at once.
#[test]
fn what_parts_leave_is_settled_with_the_last() {
    static HEAP: Counted<{ 128 << 20 }> = Heap::new();
    let block = HEAP.alloc(layout(80 << 20)).expect("room");
    // SAFETY: it is ours.
    unsafe { HEAP.free(block, layout(80 << 20)) };
    let mut parts = 0;
    while HEAP.memory().idle().is_some() {
        // SAFETY: nothing is said to be zero.
        let part = unsafe { HEAP.discard_next(20 << 20, 4096, |_, _| false) }.expect("a page");
        parts += 1;
        assert_eq!((part.bytes, part.is_last), (0, parts == 4));
    }
    assert_eq!(parts, 4);
    let (one, another) = (20 << 20, 30 << 20);
    for bytes in [one, another] {
        let block = HEAP.alloc(layout(bytes)).expect("room");
        // SAFETY: it is ours.
        unsafe { HEAP.free(block, layout(bytes)) };
        assert!(HEAP.memory().idle().is_none(), "{bytes} that were idle before");
    }
}

/// Whole slabs are returned before the first part, and no call looks at many.
#[test]
fn slabs_go_back_in_parts() {
    static HEAP: Counted<{ 128 << 20 }> = Heap::new();
    let blocks: Vec<_> = (0..60 << 10).map(|_| HEAP.alloc(layout(1000)).expect("room")).collect();
    // So that no slab becomes whole in one piece.
    for odd in [0, 1] {
        // SAFETY: they are ours.
        blocks.iter().skip(odd).step_by(2).for_each(|&at| unsafe { HEAP.free(at, layout(1000)) });
    }
    HEAP.drain();
    let free = || HEAP.stats().free;
    let (mut gone, mut parts, mut most) = (0, 0, 0);
    while HEAP.memory().idle().is_some() {
        let before = free();
        // SAFETY: nothing is said to be zero.
        let part = unsafe {
            HEAP.discard_next(1 << 20, 4096, |_, bytes| {
                gone += bytes;
                false
            })
        };
        most = most.max(free() - before);
        parts += 1;
        assert!(parts < 1000 && part.expect("a page").bytes == 0);
    }
    // All that has no slot in use; in each part at most 1024 slabs, and those that are looked at together.
    assert!(gone >= 58 << 20, "{gone}");
    assert!((1 << 20..=30 << 20).contains(&most), "{most} in one of {parts} parts");
}

/// Each region in which much is idle has its turn, though the first is idle again whenever it had its own.
#[test]
fn no_region_keeps_others_waiting() {
    static HEAP: Counted<{ 64 << 20 }> = Heap::new();
    let more = NonNull::from(std::vec![0_u8; 64 << 20].leak()).cast();
    // SAFETY: the memory is leaked, and zero.
    unsafe { HEAP.add_zeroed(more, 64 << 20) }.unwrap();
    let blocks = [(); 2].map(|()| HEAP.alloc(layout(50 << 20)).expect("room"));
    // SAFETY: they are ours.
    blocks.into_iter().for_each(|at| unsafe { HEAP.free(at, layout(50 << 20)) });
    let mut of_more = 0;
    for parts in 0.. {
        assert!(parts < 100, "no part is the last");
        let zero = |at: NonNull<u8>, bytes| {
            of_more += if at < more { 0 } else { bytes };
            // SAFETY: nobody else has the pages.
            unsafe { at.write_bytes(0, bytes) };
            true
        };
        // SAFETY: they are zero.
        let is_last = unsafe { HEAP.discard_next(8 << 20, 4096, zero) }.expect("a page").is_last;
        let again = HEAP.alloc(layout(40 << 20)).expect("room");
        // SAFETY: it is ours.
        unsafe { HEAP.free(again, layout(40 << 20)) };
        if is_last {
            break;
        }
    }
    assert!(of_more > 45 << 20, "{of_more}");
}

/// Threads allocate, write and free while two others give back in parts what is free, and one all at once.
#[test]
fn what_is_in_use_does_not_go_back() {
    static HEAP: Counted<{ 128 << 20 }, 6> = Heap::new();
    static GONE: AtomicUsize = AtomicUsize::new(0);
    let is_done = AtomicBool::new(false);
    let works = |thread: usize| {
        NUMBER.set(thread);
        let (mut rng, mut held) = (fastrand::Rng::with_seed(thread as u64), Vec::new());
        for step in 0..8000 {
            let bytes = 8 + rng.usize(..[200, 20_000, 600_000][step / 500 % 3]);
            if let Some(at) = HEAP.alloc(layout(bytes)) {
                // SAFETY: it is ours.
                unsafe { at.write_bytes(thread as u8, bytes) };
                held.push((at, bytes));
            }
            while !held.is_empty() && (held.len() > 60 || rng.u32(..100) < 45) {
                let (at, bytes) = held.swap_remove(rng.usize(..held.len()));
                // SAFETY: it is ours, and was written.
                let written = unsafe { core::slice::from_raw_parts(at.as_ptr(), bytes) };
                assert!(written.iter().all(|&byte| byte == thread as u8), "{bytes} bytes");
                // SAFETY: it is ours.
                unsafe { HEAP.free(at, layout(bytes)) };
            }
        }
        // SAFETY: they are ours.
        held.into_iter().for_each(|(at, bytes)| unsafe { HEAP.free(at, layout(bytes)) });
        HEAP.drain();
    };
    let gives_back = |thread: usize| {
        NUMBER.set(thread);
        while !is_done.load(Ordering::Relaxed) {
            let zero = |at: NonNull<u8>, bytes: usize| {
                GONE.fetch_add(bytes, Ordering::Relaxed);
                // SAFETY: nobody else has the pages.
                unsafe { at.write_bytes(0, bytes) };
                true
            };
            if thread == 3 {
                // SAFETY: they are zero.
                _ = unsafe { HEAP.discard(4096, zero) }.expect("a page");
            } else {
                // SAFETY: they are zero.
                _ = unsafe { HEAP.discard_next(1 << 20, 4096, zero) }.expect("a page");
            }
        }
    };
    // So much is idle that parts go back.
    let block = HEAP.alloc(layout(100 << 20)).expect("room");
    // SAFETY: it is ours.
    unsafe { HEAP.free(block, layout(100 << 20)) };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3).map(|thread| scope.spawn(move || works(thread))).collect();
        let gives_back = &gives_back;
        (3..6).for_each(|thread| _ = scope.spawn(move || gives_back(thread)));
        let ended: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_done.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.expect("nobody else writes"));
    });
    assert!(GONE.load(Ordering::Relaxed) > 100 << 20);
    HEAP.trim();
    assert_counted(&HEAP);
}
