//! Caches keep runs, which are too large for a slot.
#![cfg(not(any(
    feature = "poison",
    feature = "asan",
    feature = "valgrind",
    feature = "quarantine",
    feature = "shuffle"
)))]

mod support;

use std::alloc::Layout;
use std::ptr::NonNull;
use std::thread;

use nbbs_heap::{AuditError, FreeError, Heap, On, Placed};
use support::{Block, assert_whole, layout, memory, placed};

/// Of a heap with this many bytes a cache keeps runs of 128 units.
const BYTES: usize = 8 << 20;
const MOST: usize = 128 << 10;

fn heap() -> &'static Placed {
    placed(2, BYTES)
}

fn of(size: usize) -> Layout {
    layout(size, 8)
}

fn alloc(on: On<'_>, size: usize) -> NonNull<u8> {
    on.alloc(of(size)).unwrap()
}

/// # Safety
/// The caller holds the block, of so many bytes, and gives it up, unless the free is to be refused.
unsafe fn free(on: On<'_>, at: NonNull<u8>, size: usize) {
    // SAFETY: as the caller promises.
    unsafe { on.free(at, of(size)) };
}

/// Allocates and frees a run.
fn kept(on: On<'_>, size: usize) -> NonNull<u8> {
    let at = alloc(on, size);
    // SAFETY: ours.
    unsafe { free(on, at, size) };
    at
}

#[track_caller]
fn whole(heap: &Placed) {
    (0..2).for_each(|cpu| _ = heap.on(cpu).trim());
    assert_eq!(heap.audit(), Ok(()));
    assert_eq!(heap.stats().free, heap.stats().bytes);
}

#[test]
fn a_run_is_handed_out_again_for_its_length() {
    let heap = heap();
    let on = heap.on(0);
    let at = kept(on, 40_000);
    assert_eq!(heap.stats().runs, 40 << 10, "it is kept");
    let [shorter, longer] = [39_000, 41_000].map(|size| alloc(on, size));
    assert!(shorter != at && longer != at);
    assert_eq!(alloc(on, 40_500), at, "as many units");
    assert_ne!(alloc(on, 40_500), at, "it is in use");
    assert_eq!((heap.audit(), heap.refused()), (Ok(()), 0));
}

/// Whoever frees by address need not know how long a run is, and gets one that is up to an eighth longer: the shortest.
#[test]
fn a_longer_one_serves_who_frees_by_address() {
    static HEAP: Heap<{ 16 << 20 }> = Heap::new();
    let of = |units: usize| of(units << 10);
    let [long, short] = [90, 84].map(|units| HEAP.alloc(of(units)).unwrap());
    for (at, units) in [(long, 90), (short, 84)] {
        // SAFETY: ours.
        unsafe { HEAP.free(at, of(units)) };
    }
    for (units, expected) in [(74, None), (81, Some(short)), (81, Some(long)), (81, None)] {
        let at = HEAP.alloc_at_least(of(units)).unwrap();
        let found = [short, long].into_iter().find(|&kept| kept == at);
        assert_eq!(found, expected, "{units} units");
    }
    // SAFETY: ours.
    assert_eq!([long, short].map(|at| unsafe { HEAP.free_at(at) }), [Ok(90 << 10), Ok(84 << 10)]);
    let exact = HEAP.alloc(of(81)).unwrap();
    assert!(![long, short].contains(&exact), "its layout says how long it is");
    // What moves by its address gets one, too.
    let slot = HEAP.alloc(of(1)).unwrap();
    // SAFETY: ours.
    assert_eq!(unsafe { HEAP.resize_at(slot, 85 << 10) }, Ok(Some(long)));
    assert_eq!((HEAP.audit(), HEAP.refused()), (Ok(()), 0));
}

#[test]
fn it_is_aligned_as_asked() {
    // At a multiple of its size, so that it does not depend on the system how far runs are aligned.
    let all = Placed::bytes_for(2, BYTES).unwrap();
    let start = memory(all + BYTES);
    let skip = start.addr().get().wrapping_neg() % BYTES;
    // SAFETY: the memory is leaked, and there are so many bytes more.
    let heap = unsafe { Placed::new(start.add(skip), all, 2) }.unwrap();
    let on = heap.on(0);
    let first = alloc(on, 40_000);
    let second = kept(on, 40_000);
    assert!(second.addr().get() > first.addr().get());
    let align = 2 << second.addr().get().trailing_zeros();
    let aligned = on.alloc(layout(40_000, align)).unwrap();
    assert!(aligned != second && aligned.addr().get().is_multiple_of(align));
    assert_eq!(on.alloc(layout(40_000, align / 2)), Some(second));
}

#[test]
fn it_is_zero_if_asked_for() {
    let on = heap().on(0);
    let at = alloc(on, 40_000);
    // SAFETY: ours.
    unsafe {
        at.write_bytes(7, 40_000);
        free(on, at, 40_000);
    }
    assert_eq!(on.alloc_zeroed(of(40_000)), Some(at));
    // SAFETY: ours.
    let bytes = unsafe { std::slice::from_raw_parts(at.as_ptr(), 40_000) };
    assert!(bytes.iter().all(|&byte| byte == 0));
}

/// What is freed wrongly is refused at once, whether the cache keeps it or not.
#[test]
fn wrong_frees() {
    let heap = heap();
    let on = heap.on(0);
    let [first, held] = [(); 2].map(|()| alloc(on, 40_000));
    let other = alloc(on, 50_000);
    // SAFETY: ours.
    unsafe {
        free(on, first, 40_000);
        free(on, other, 50_000);
    }
    // SAFETY: wrong, or ours.
    unsafe {
        free(on, first, 40_000);
        free(on, first, 41_000);
        free(on, held, 39_000);
        free(on, held.add(1024), 40_000 - 1024);
        free(on, held.add(1), 40_000);
        free(on, NonNull::from(&mut [0; 50_000]).cast(), 50_000);
        assert_eq!(heap.refused(), 6);
        let nothing = FreeError::NotAllocated { address: first.addr().get() };
        assert_eq!(on.free_at(first), Err(nothing));
        assert_eq!(on.resize_at(first, isize::MAX as usize / 2), Err(nothing));
        assert_eq!(heap.refused(), 8);
        // It is not made shorter, as the cache hands it out as long as it was.
        let moved = on.resize(first, of(40_000), 35_000).unwrap();
        assert!(moved != first && heap.refused() == 9);
        assert_eq!(alloc(on, 40_000), first);
        free(on, first, 40_000);
        free(on, held, 40_000);
        free(on, moved, 35_000);
    }
    whole(heap);
}

/// A block that somebody else frees while it is moved: the longer run to which it was copied goes back, too.
#[test]
fn a_move_that_is_refused_gives_back_a_longer_run() {
    let heap = heap();
    let on = heap.on(0);
    let [at, behind, longer] = [40, 40, 50].map(|units| alloc(on, units << 10));
    assert_eq!(behind.addr().get() - at.addr().get(), 40 << 10, "it cannot grow in place");
    // SAFETY: ours, or wrong.
    unsafe {
        free(on, longer, 50 << 10);
        free(heap.on(1), at, 40 << 10);
        let others_trim = |_| {
            heap.on(1).trim();
            0..0
        };
        let nothing = FreeError::NotAllocated { address: at.addr().get() };
        assert_eq!(on.resize_at_after(at, 46 << 10, others_trim), Err(nothing));
        assert_eq!(heap.refused(), 1);
        free(on, behind, 40 << 10);
    }
    whole(heap);
}

/// A slab is no run, though one of its slots begins where it does, and it is as long.
#[test]
fn slabs_are_no_runs() {
    static HEAP: Heap<{ 128 << 20 }> = Heap::new();
    let slab = 64 << 10;
    let block = HEAP.alloc(of(8 << 10)).unwrap();
    let stats = HEAP.stats();
    let [class] = stats.classes().iter().filter(|class| class.slabs > 0).collect::<Vec<_>>()[..]
    else {
        panic!("a slab")
    };
    assert_eq!((class.used + class.free) * class.size, slab);
    // SAFETY: wrong, then ours.
    unsafe {
        HEAP.free(block, of(slab));
        assert_eq!(HEAP.refused(), 1);
        HEAP.free(block, of(8 << 10));
    }
    assert_whole(&HEAP);
}

/// A run that another cache keeps is handed out once for each free, as slots are, and counted when both give it back.
#[test]
fn twice_to_two_caches() {
    let heap = heap();
    let at = kept(heap.on(0), 40_000);
    // SAFETY: wrong.
    unsafe { free(heap.on(1), at, 40_000) };
    assert_eq!(heap.refused(), 0);
    assert_eq!(heap.audit(), Err(AuditError::Kept { address: at.addr().get() }));
    (0..2).for_each(|cpu| _ = heap.on(cpu).trim());
    assert_eq!(heap.refused(), 1);
    whole(heap);
}

#[test]
fn a_64th_of_the_memory_at_most() {
    let heap = heap();
    let on = heap.on(0);
    let all: Vec<_> = (0..10).map(|_| alloc(on, 40_000)).collect();
    // SAFETY: ours.
    all.iter().for_each(|&at| unsafe { free(on, at, 40_000) });
    assert_eq!(heap.stats().runs, 3 * (40 << 10));
    assert_eq!(alloc(on, 40_000), all[9], "the newest");
    let larger = kept(on, MOST + 1);
    assert_eq!(heap.stats().runs, 3 * (40 << 10), "it is not kept, and makes no other go");
    assert_eq!(kept(on, MOST), larger);
    assert_eq!(
        heap.stats().runs,
        3 * (40 << 10) - (40 << 10),
        "one makes room, and that is not enough"
    );
    kept(on, MOST);
    assert_eq!(heap.stats().runs, (40 << 10) + MOST);
    assert_eq!(heap.refused(), 0);
}

/// However much memory there is.
#[test]
fn a_mib_at_most() {
    static HEAP: Heap<{ 80 << 20 }> = Heap::new();
    let all = [(); 3].map(|()| HEAP.alloc(of(400 << 10)).unwrap());
    // SAFETY: ours.
    all.into_iter().for_each(|at| unsafe { HEAP.free(at, of(400 << 10)) });
    assert_eq!(HEAP.stats().runs, 800 << 10);
    assert_whole(&HEAP);
}

/// What is a run for its alignment alone may lie where a slot does.
#[test]
fn what_is_not_kept() {
    let heap = heap();
    let of = layout(20_000, 64 << 10);
    let at = heap.on(0).alloc(of).unwrap();
    // SAFETY: ours.
    unsafe { heap.on(0).free(at, of) };
    assert_eq!(heap.stats().runs, 0);
}

/// Each region has its limit, and gets its own back.
#[test]
fn of_added_memory() {
    let (heap, more) = (heap(), 4 << 20);
    let (on, rest) = (heap.on(0), heap.stats().bytes - (120 << 10));
    kept(on, 120 << 10);
    let own = alloc(on, rest);
    // SAFETY: the memory is leaked.
    unsafe { heap.add(memory(more), more) }.unwrap();
    let added = kept(on, 60 << 10);
    assert_eq!(heap.stats().runs, rest + (60 << 10), "both are more than the added memory allows");
    assert_eq!(kept(on, 60 << 10), added);
    kept(on, 64 << 10);
    assert_eq!(heap.stats().runs, rest + (60 << 10), "this is, too");
    // SAFETY: ours.
    unsafe { free(on, own, rest) };
    assert_eq!(on.trim(), 60 << 10);
    assert_eq!(heap.refused(), 0);
    whole(heap);
}

#[test]
fn they_are_given_back() {
    let heap = heap();
    kept(heap.on(0), 40_000);
    assert_eq!(heap.on(1).trim(), 0, "it is another's");
    assert_eq!(heap.stats().runs, 40 << 10);
    // Its next free of a run is a call that heeds what the trim asked for.
    kept(heap.on(0), 50_000);
    assert_eq!(heap.stats().runs, 49 << 10);
    assert_eq!(heap.on(0).trim(), 49 << 10);
    assert_eq!(heap.stats().free, heap.stats().bytes);
    // What is kept serves whoever would be refused.
    kept(heap.on(0), 40_000);
    let all = heap.stats().bytes;
    assert!(heap.on(0).alloc(of(all)).is_some());
}

/// Also to whoever can only grow into it.
#[test]
fn they_are_given_back_to_what_lies_in_front() {
    for by_address in [false, true] {
        let heap = heap();
        let (on, all) = (heap.on(0), heap.stats().bytes);
        let at = alloc(on, 40 << 10);
        let behind = kept(on, 40 << 10);
        assert_eq!(behind.addr().get() - at.addr().get(), 40 << 10);
        alloc(on, all - (80 << 10));
        assert_eq!(heap.stats().free, 0, "it is kept");
        // SAFETY: ours.
        let grown = unsafe {
            if by_address {
                on.resize_at(at, 80 << 10).unwrap()
            } else {
                on.resize(at, of(40 << 10), 80 << 10)
            }
        };
        assert_eq!(grown, Some(at));
        assert_eq!((heap.audit(), heap.refused()), (Ok(()), 0));
    }
}

/// None is kept while memory is short.
#[test]
fn where_memory_is_short() {
    let heap = heap();
    let on = heap.on(0);
    let more_than_half = (heap.stats().bytes / 2).next_multiple_of(1024) + 1024;
    let held = alloc(on, more_than_half);
    kept(on, 40_000);
    assert_eq!(heap.stats().runs, more_than_half);
    // SAFETY: ours.
    unsafe { free(on, held, more_than_half) };
    whole(heap);
}

#[test]
fn a_thread_gives_them_back_when_it_ends() {
    static HEAP: Heap<BYTES> = Heap::new();
    let work = || {
        Block::alloc(&HEAP, of(40_000), 1).unwrap().free(&HEAP);
        assert_eq!(HEAP.stats().runs, 40 << 10);
    };
    thread::spawn(work).join().unwrap();
    assert_eq!(HEAP.stats().free, HEAP.stats().bytes);
    // Also one that frees what another has allocated, and nothing else.
    let block = Block::alloc(&HEAP, of(40_000), 2).unwrap();
    let work = || {
        block.free(&HEAP);
        assert_eq!(HEAP.stats().runs, 40 << 10);
    };
    thread::scope(|scope| scope.spawn(work).join().unwrap());
    assert_eq!(HEAP.stats().free, HEAP.stats().bytes);
    assert_whole(&HEAP);
}
