//! Tests heaps in memory that is given at run time, and blocks of which only the address is known.

mod support;

use std::collections::BTreeMap;
use std::ptr::NonNull;

use nbbs_heap::{AddError, AuditError, FreeError, Placed};
use support::{layout, memory, placed};

fn heap(caches: usize, bytes: usize) -> &'static Placed {
    placed(caches, if cfg!(miri) { bytes.min(256 << 10) } else { bytes })
}

/// Checks that all of a heap is free.
#[track_caller]
fn assert_whole(heap: &Placed, caches: usize) {
    (0..caches).for_each(|cpu| _ = heap.on(cpu).trim());
    assert_eq!(heap.audit(), Ok(()));
    let stats = heap.stats();
    assert_eq!(stats.free, stats.bytes, "not whole: {} bytes of runs", stats.runs);
}

/// # Safety
/// The caller holds what is allocated there.
unsafe fn free(heap: &Placed, at: NonNull<u8>) -> Result<usize, FreeError> {
    // SAFETY: as the caller promises.
    unsafe { heap.on(0).free_at(at) }
}

const SIZES: [usize; 14] =
    [0, 1, 16, 17, 100, 1000, 1024, 1025, 5000, 20_000, 32 << 10, 40_000, 100_000, 1 << 18];

#[test]
fn any_memory() {
    for (caches, skip) in [(0, 0), (1, 1), (2, 63), (3, 4095)] {
        for bytes in [1, 1024, 50_000, if cfg!(miri) { 60_000 } else { 1 << 20 }] {
            let all = Placed::bytes_for(caches, bytes).unwrap();
            // SAFETY: the memory is leaked, and this much of it is left.
            let heap = unsafe { Placed::new(memory(all + skip).add(skip), all, caches) }.unwrap();
            assert!(heap.stats().bytes >= bytes, "{} of {bytes}", heap.stats().bytes);
            let found = heap.on(7).alloc(layout(1, 1)).unwrap();
            assert!(heap.contains(found.as_ptr()));
            // SAFETY: ours.
            assert_eq!(unsafe { heap.on(7).free_at(found) }.unwrap() % 16, 0);
            assert!(heap.stats().classes()[0].used > 0, "the cache keeps the slot");
            assert_whole(heap, caches.max(1));
        }
    }
    assert_eq!(Placed::bytes_for(usize::MAX, 1), None);
    assert_eq!(Placed::bytes_for(1, 0), None);
    assert_eq!(Placed::bytes_for(1, usize::MAX), None);
    let needed = Placed::bytes_for(2, 1).unwrap();
    // SAFETY: the memory is leaked.
    let made = unsafe { Placed::new(memory(1000), 1000, 2) };
    assert_eq!(made.unwrap_err(), AddError::TooSmall { bytes: 1000, needed });
}

#[test]
fn any_address() {
    let heap = heap(1, 4 << 20);
    let mut held = BTreeMap::new();
    for round in 0..if cfg!(miri) { 1 } else { 40 } {
        for (number, size) in SIZES.into_iter().enumerate() {
            let align = 1 << ((round + number) % 13);
            let Some(at) = heap.on(0).alloc(layout(size, align)) else { continue };
            held.insert(at, size);
        }
        while held.len() > 60 {
            let (at, size) = held.pop_first().unwrap();
            let usable = heap.on(0).usable(at).unwrap();
            assert!(usable >= size, "{usable} of {size}");
            // SAFETY: ours, and of this many bytes, as the heap says.
            unsafe { at.write_bytes(round as u8, usable) };
            // SAFETY: ours.
            assert_eq!(unsafe { free(heap, at) }, Ok(usable));
        }
    }
    // SAFETY: ours.
    held.into_keys().for_each(|at| _ = unsafe { free(heap, at) }.unwrap());
    assert_whole(heap, 1);
    assert_eq!(heap.refused(), 0);
}

#[test]
fn addresses_of_nothing() {
    let heap = heap(1, 1 << 20);
    let slot = heap.on(0).alloc(layout(100, 1)).unwrap();
    let run = heap.on(0).alloc(layout(50_000, 1)).unwrap();
    for block in [slot, run] {
        for by in [1, 8, 100] {
            let at = NonNull::new(block.as_ptr().wrapping_add(by)).unwrap();
            let (address, begins) = (at.addr().get(), block.addr().get());
            // SAFETY: wrong, as the heap notices.
            let refused = unsafe { free(heap, at) };
            assert_eq!(refused, Err(FreeError::Inside { address, begins }));
        }
    }
    for by in [1024, 1025, 40_000] {
        let at = NonNull::new(run.as_ptr().wrapping_add(by)).unwrap();
        let refused = FreeError::InsideRun { address: at.addr().get() };
        // SAFETY: wrong.
        assert_eq!(unsafe { free(heap, at) }, Err(refused));
        assert_eq!(heap.on(0).usable(at), Err(refused));
    }
    let mut own = 0_u8;
    let at = NonNull::from(&mut own);
    let (address, regions) = (at.addr().get(), 1);
    // SAFETY: wrong.
    assert_eq!(unsafe { free(heap, at) }, Err(FreeError::Foreign { address, regions }));
    assert_eq!(heap.on(0).usable(at), Err(FreeError::Foreign { address, regions }));
    assert_eq!(heap.refused(), 10);
    // A slot that is back in its slab belongs to nobody, and the slab stays while another of its slots is held.
    let other = heap.on(0).alloc(layout(100, 1)).unwrap();
    for block in [slot, run] {
        // SAFETY: ours.
        unsafe { free(heap, block) }.unwrap();
        heap.on(0).trim();
        let nothing = FreeError::NotAllocated { address: block.addr().get() };
        assert_eq!(heap.on(0).usable(block), Err(nothing));
        // SAFETY: wrong.
        assert_eq!(unsafe { free(heap, block) }, Err(nothing));
        // SAFETY: wrong.
        assert_eq!(unsafe { heap.on(0).resize_at(block, 5) }, Err(nothing));
    }
    // SAFETY: ours.
    unsafe { free(heap, other) }.unwrap();
    assert_whole(heap, 1);
    assert_eq!(heap.refused(), 12);
}

#[test]
fn pages_are_powers_of_two() {
    let heap = heap(1, 1 << 20);
    let run = heap.on(0).alloc(layout(100_000, 1)).unwrap();
    // SAFETY: ours.
    unsafe { free(heap, run) }.unwrap();
    for page in [0, 3, 1000, 4095, 128 << 10, 2 << 20, 1 << (usize::BITS - 1), usize::MAX] {
        // SAFETY: it does not return.
        let refused = unsafe { heap.on(0).discard(page, |_, _| panic!("{page}")) };
        let refused = refused.unwrap_err();
        assert_eq!(refused.page, page);
        let text = format!("pages of {page} bytes: a page is a power of two, and at most 64 KiB");
        assert_eq!(refused.to_string(), text);
    }
    for page in [1, 512, 1 << 16] {
        // SAFETY: no pages have no bytes.
        assert!(unsafe { heap.on(0).discard(page, |_, bytes| bytes == 0) }.is_ok());
    }
}

#[test]
fn twice_in_a_cache() {
    let heap = heap(1, 1 << 20);
    let blocks = [(); 4].map(|()| heap.on(0).alloc(layout(100, 1)).unwrap());
    let twice = |at: NonNull<u8>| {
        let nothing = Err(FreeError::NotAllocated { address: at.addr().get() });
        // SAFETY: wrong.
        assert_eq!(unsafe { free(heap, at) }, nothing);
    };
    // SAFETY: ours.
    unsafe { free(heap, blocks[0]) }.unwrap();
    twice(blocks[0]);
    // A slot that the cache took with its slab, and that has never been handed out: with `shuffle` the next one may be
    // held.
    let lowest = blocks.iter().min().unwrap().as_ptr();
    let slots = (1..).map(|slot| NonNull::new(lowest.wrapping_add(slot * 112)).unwrap());
    twice({ slots }.find(|slot| !blocks.contains(slot)).unwrap());
    assert_eq!(heap.refused(), 2);
    // SAFETY: ours.
    blocks[1..].iter().for_each(|&at| _ = unsafe { free(heap, at) }.unwrap());
    assert_whole(heap, 1);
    assert_eq!(heap.refused(), 2);
}

#[test]
fn resized_by_address() {
    let heap = heap(1, 4 << 20);
    let sizes = || SIZES.into_iter().step_by(if cfg!(miri) { 7 } else { 1 });
    for (from, to) in sizes().flat_map(|from| sizes().map(move |to| (from, to))) {
        let at = heap.on(0).alloc(layout(from, 1)).unwrap();
        // SAFETY: ours.
        unsafe { at.write_bytes(7, from) };
        // SAFETY: ours.
        let at = unsafe { heap.on(0).resize_at(at, to) }.unwrap().unwrap();
        assert!(heap.on(0).usable(at).unwrap() >= to, "{from} to {to}");
        // SAFETY: ours, and was filled so far.
        let kept = unsafe { NonNull::slice_from_raw_parts(at, from.min(to)).as_ref() };
        assert!(kept.iter().all(|&byte| byte == 7), "{from} to {to}");
        // SAFETY: ours.
        assert_eq!(unsafe { heap.on(0).resize_at(at, 5 << 20) }, Ok(None));
        // SAFETY: ours.
        assert_eq!(unsafe { heap.on(0).resize_at(at, usize::MAX) }, Ok(None));
        // SAFETY: ours.
        unsafe { free(heap, at) }.unwrap();
    }
    // Slots are runs if no slab has room: a heap of twelve units has none for slots of 3 KiB.
    let tight = self::heap(1, 12 << 10);
    let at = tight.on(0).alloc(layout(3000, 1)).unwrap();
    assert_eq!(tight.on(0).usable(at), Ok(3072));
    // SAFETY: ours.
    let same = unsafe { tight.on(0).resize_at(at, 2900) }.unwrap().unwrap();
    assert_eq!(same, at);
    // SAFETY: ours.
    let larger = unsafe { tight.on(0).resize_at(at, 4000) }.unwrap().unwrap();
    assert!(tight.on(0).usable(larger).unwrap() >= 4000);
    // SAFETY: ours.
    unsafe { free(tight, larger) }.unwrap();
    assert_whole(heap, 1);
    assert_whole(tight, 1);
}

#[test]
fn resized_by_layout() {
    let heap = heap(1, 4 << 20);
    let sizes = || SIZES.into_iter().step_by(if cfg!(miri) { 7 } else { 1 });
    for (from, to) in sizes().flat_map(|from| sizes().map(move |to| (from, to))) {
        let (on, [old, new]) = (heap.on(0), [from, to].map(|size| layout(size, 64)));
        let at = on.alloc(old).unwrap();
        // SAFETY: ours, and given up for what is returned.
        let at = unsafe {
            at.write_bytes(7, from);
            on.resize(at, old, to).unwrap()
        };
        assert!(on.usable(at).unwrap() >= to && at.addr().get().is_multiple_of(64));
        // SAFETY: ours, and was filled so far.
        let kept = unsafe { NonNull::slice_from_raw_parts(at, from.min(to)).as_ref() };
        assert!(kept.iter().all(|&byte| byte == 7), "{from} to {to}");
        // SAFETY: ours.
        assert_eq!(unsafe { on.resize(at, new, 5 << 20) }, None);
        // SAFETY: ours.
        assert_eq!(unsafe { on.resize(at, new, usize::MAX) }, None);
        // SAFETY: ours.
        unsafe { on.free(at, new) };
    }
    assert_eq!(heap.refused(), 0);
    assert_whole(heap, 1);
}

#[test]
fn threads_that_share_caches() {
    let heap = heap(2, 8 << 20);
    let rounds = if cfg!(miri) { 20 } else { 20_000 };
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            scope.spawn(move || {
                let (mut rng, mut held) = (fastrand::Rng::with_seed(thread), Vec::new());
                for _ in 0..rounds {
                    let most = SIZES[rng.usize(1..SIZES.len() - 2)];
                    let size = 8 + rng.usize(..most);
                    let Some(at) = heap.on(rng.usize(..3)).alloc(layout(size, 8)) else { continue };
                    // SAFETY: ours, and aligned.
                    unsafe { at.cast().write(thread) };
                    held.push(at);
                    if held.len() > 20 {
                        let at = held.swap_remove(rng.usize(..held.len()));
                        // SAFETY: ours.
                        unsafe {
                            assert_eq!(at.cast::<u64>().read(), thread, "handed out twice");
                            heap.on(rng.usize(..3)).free_at(at).unwrap();
                        }
                    }
                }
                // SAFETY: ours.
                held.into_iter().for_each(|at| _ = unsafe { heap.on(0).free_at(at) }.unwrap());
            });
        }
    });
    assert_whole(heap, 2);
    assert_eq!(heap.refused(), 0);
}

/// Threads whose operations nest, one on each CPU, beside others that have the numbers that are left, or none.
#[test]
fn threads_with_caches_of_their_own() {
    let heap = heap(3, 8 << 20);
    let rounds = if cfg!(miri) { 20 } else { 20_000 };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let on = match thread {
                    // SAFETY: no other thread has this number.
                    0 | 1 => unsafe { heap.on_nested(thread) },
                    // SAFETY: there is no such cache.
                    2 => unsafe { heap.on_nested(3) },
                    _ => heap.on(2),
                };
                let (mut rng, mut held) = (fastrand::Rng::with_seed(thread as u64), Vec::new());
                for _ in 0..rounds {
                    let most = SIZES[rng.usize(1..SIZES.len() - 2)];
                    let size = 8 + rng.usize(..most);
                    let Some(at) = on.alloc(layout(size, 8)) else { continue };
                    // SAFETY: ours, and aligned.
                    unsafe { at.cast().write(thread) };
                    held.push(at);
                    if held.len() > 20 {
                        let at = held.swap_remove(rng.usize(..held.len()));
                        // SAFETY: ours.
                        unsafe {
                            assert_eq!(at.cast::<usize>().read(), thread, "handed out twice");
                            on.free_at(at).unwrap();
                        }
                    }
                }
                // SAFETY: ours.
                held.into_iter().for_each(|at| _ = unsafe { on.free_at(at) }.unwrap());
            });
        }
    });
    assert_whole(heap, 3);
    assert_eq!(heap.refused(), 0);
}

/// Numbers from the number of caches on share no cache where operations nest: what they free, all find.
#[test]
fn numbers_without_a_cache() {
    let heap = heap(1, 1 << 20);
    // SAFETY: there is no other thread.
    let on = unsafe { heap.on_nested(1) };
    let at = on.alloc(layout(100, 1)).unwrap();
    // SAFETY: ours.
    unsafe { on.free_at(at) }.unwrap();
    let used: usize = heap.stats().classes().iter().map(|class| class.used).sum();
    assert_eq!(used, 0, "a cache keeps the slot");
    assert_whole(heap, 1);
}

#[test]
fn an_audit_finds_what_was_freed_twice() {
    let heap = heap(2, 1 << 20);
    let blocks = [(); 3].map(|()| heap.on(0).alloc(layout(100, 1)).unwrap());
    assert_eq!(heap.audit(), Ok(()));
    // SAFETY: ours.
    unsafe { free(heap, blocks[0]) }.unwrap();
    assert_eq!(heap.audit(), Ok(()));
    // SAFETY: wrong, and the cache of another CPU does not notice.
    unsafe { heap.on(1).free_at(blocks[0]) }.unwrap();
    assert_eq!(heap.audit(), Err(AuditError::Kept { address: blocks[0].addr().get() }));
    // One of the two frees is refused when both come back.
    heap.on(0).trim();
    heap.on(1).trim();
    assert_eq!((heap.audit(), heap.refused()), (Ok(()), 1));
    if !support::WATCHED {
        // SAFETY: ours; the layout is wrong.
        unsafe { heap.on(0).free(blocks[1], layout(300, 1)) };
        assert_eq!(heap.audit(), Err(AuditError::Kept { address: blocks[1].addr().get() }));
        heap.on(0).trim();
    }
    // SAFETY: ours.
    blocks[1..].iter().for_each(|&at| _ = unsafe { free(heap, at) }.unwrap());
    assert_whole(heap, 2);
}

/// What was freed last is nobody's, and is not resized, in place or elsewhere.
#[test]
fn what_the_cache_keeps_is_not_resized() {
    let heap = heap(1, 1 << 20);
    let block = heap.on(0).alloc(layout(100, 1)).unwrap();
    // SAFETY: ours.
    unsafe { free(heap, block) }.unwrap();
    let free_bytes = heap.stats().free;
    for size in [100, 200, 100_000] {
        let nothing = FreeError::NotAllocated { address: block.addr().get() };
        // SAFETY: wrong.
        assert_eq!(unsafe { heap.on(0).resize_at(block, size) }, Err(nothing), "{size}");
    }
    assert_eq!((heap.refused(), heap.stats().free), (3, free_bytes));
    assert_whole(heap, 1);
    // The same for a run that serves as a slot.
    let short = self::heap(1, 30 << 10);
    let of = layout(5600, 16);
    let run = short.on(0).alloc(of).unwrap();
    // SAFETY: ours.
    unsafe { short.on(0).free(run, of) };
    let nothing = FreeError::NotAllocated { address: run.addr().get() };
    for size in [5600, 6144, 6145, 20_000] {
        // SAFETY: wrong.
        assert_eq!(unsafe { short.on(0).resize_at(run, size) }, Err(nothing), "{size}");
    }
    // SAFETY: wrong.
    assert_eq!(unsafe { free(short, run) }, Err(nothing));
    let blocks = [(); 2].map(|()| short.on(0).alloc(of).unwrap());
    assert_ne!(blocks[0], blocks[1]);
    // SAFETY: ours.
    blocks.into_iter().for_each(|block| unsafe { short.on(0).free(block, of) });
    assert_whole(short, 1);
}

/// A run that is resized where it is, and then freed by its layout, serves as a slot only if it is aligned as one.
#[test]
fn runs_that_serve_as_slots_are_aligned() {
    let heap = heap(1, 30 << 10);
    // A unit, so that what follows is not at a page.
    let first = heap.on(0).alloc(layout(1, 8192)).unwrap();
    for (from, to, align) in [(5600, 6144, 2048), (3400, 4096, 4096), (7600, 8192, 4096)] {
        let run = heap.on(0).alloc(layout(from, 16)).unwrap();
        // SAFETY: ours.
        let run = unsafe { heap.on(0).resize_at(run, to - 16) }.unwrap().unwrap();
        // SAFETY: ours.
        unsafe { heap.on(0).free(run, layout(to - 16, 16)) };
        let aligned = heap.on(0).alloc(layout(to, align)).unwrap();
        assert_eq!(aligned.addr().get() % align, 0, "{from} bytes, {to} bytes");
        // SAFETY: ours.
        unsafe { heap.on(0).free(aligned, layout(to, align)) };
    }
    // SAFETY: ours.
    unsafe { heap.on(0).free(first, layout(1, 8192)) };
    assert_whole(heap, 1);
    assert_eq!(heap.refused(), 0);
}

/// In a heap that has nothing left, whatever the caller knows of the block.
#[test]
fn a_full_heap_makes_runs_smaller() {
    for (by_layout, size) in
        [true, false].into_iter().flat_map(|by| [20 << 10, 1025, 129].map(|size| (by, size)))
    {
        let heap = heap(1, 60 << 10);
        let of = layout(40 << 10, 16);
        let run = heap.on(0).alloc(of).unwrap();
        let mut rest: Vec<_> =
            std::iter::from_fn(|| heap.on(0).alloc(layout(1024, 1024))).collect();
        // SAFETY: ours.
        let smaller = unsafe {
            run.write_bytes(5, size);
            if by_layout {
                heap.on(0).resize(run, of, size)
            } else {
                heap.on(0).resize_at(run, size).unwrap()
            }
        };
        assert_eq!(smaller, Some(run), "{size}");
        // SAFETY: ours, and written to.
        let bytes = unsafe { NonNull::slice_from_raw_parts(run, size).as_ref() };
        assert!(bytes.iter().all(|&byte| byte == 5));
        // What is left over can be had.
        rest.extend((0..18).map(|_| heap.on(0).alloc(layout(1024, 1024)).unwrap()));
        // SAFETY: ours.
        unsafe {
            heap.on(0).free(run, layout(size, 16));
            rest.into_iter().for_each(|at| heap.on(0).free(at, layout(1024, 1024)));
        }
        assert_whole(heap, 1);
        assert_eq!(heap.refused(), 0);
    }
}

/// Memory that is not added, or no heap, stays as it is.
#[test]
fn what_is_refused_is_not_written_to() {
    let is_same = |at: NonNull<u8>, bytes| {
        // SAFETY: leaked memory, and written to.
        unsafe { NonNull::slice_from_raw_parts(at, bytes).as_ref() }
            .iter()
            .all(|&byte| byte == 0xa5)
    };
    let fresh = |bytes| {
        let at = memory(bytes);
        // SAFETY: nobody else has it.
        unsafe { at.write_bytes(0xa5, bytes) };
        at
    };
    let bytes = Placed::bytes_for(8, 1).unwrap() - 2 * 4096;
    let too_short = fresh(bytes);
    // SAFETY: leaked.
    assert!(unsafe { Placed::new(too_short, bytes, 8) }.is_err());
    assert!(is_same(too_short, bytes));
    let heap = heap(1, 64 << 10);
    const MORE: usize = 64 << 10;
    // SAFETY: leaked.
    (0..8).for_each(|_| assert!(unsafe { heap.add(memory(100), 100) }.is_err()));
    // SAFETY: leaked.
    (0..7).for_each(|_| unsafe { heap.add(memory(MORE), MORE) }.unwrap());
    for bytes in [MORE, 100] {
        let more = fresh(MORE);
        // SAFETY: leaked.
        assert!(unsafe { heap.add(more, bytes) }.is_err());
        assert!(is_same(more, MORE), "{bytes}");
    }
}
