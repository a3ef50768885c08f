//! Tests what a cache sets aside, by slab: freed slots for which it has no other room.

mod support;

use std::collections::BTreeSet;
use std::ptr::NonNull;

use nbbs_heap::{AuditError, Placed};
use support::{WATCHED, layout, placed};

/// The bytes of a slot, of which a slab has 16.
const SIZE: usize = 64;
const SLAB: usize = 16;

/// The most slots of that size that a cache keeps: 32, what is left of a slab, and those of 8 slabs. With `quarantine`
/// others wait.
const MOST: usize = 32 + 9 * SLAB + if cfg!(feature = "quarantine") { 256 } else { 0 };

fn heap() -> &'static Placed {
    placed(1, 1 << 20)
}

fn alloc(heap: &Placed, count: usize) -> BTreeSet<NonNull<u8>> {
    let slots = (0..count).map(|_| heap.on(0).alloc(layout(SIZE, 8)).unwrap()).collect();
    BTreeSet::len(&slots).eq(&count).then_some(slots).expect("one was handed out twice")
}

/// Frees a slot.
///
/// # Safety
/// The caller holds it, or is wrong.
unsafe fn free(heap: &Placed, at: NonNull<u8>) {
    // SAFETY: as the caller promises.
    unsafe { heap.on(0).free(at, layout(SIZE, 8)) };
}

/// Frees slots, those of one slab far apart.
fn free_scattered(heap: &Placed, slots: &BTreeSet<NonNull<u8>>) {
    // SAFETY: the caller holds them.
    let free = |&at| unsafe { free(heap, at) };
    (0..SLAB).for_each(|first| slots.iter().skip(first).step_by(SLAB).for_each(free));
}

/// Returns how many slots are in use, or kept.
fn used(heap: &Placed) -> usize {
    heap.stats().classes().iter().map(|class| class.used).sum()
}

#[track_caller]
fn assert_whole(heap: &Placed) {
    heap.on(0).trim();
    assert_eq!((heap.audit(), heap.refused()), (Ok(()), 0));
    assert_eq!(heap.stats().free, heap.stats().bytes);
}

/// With `quarantine` the newest wait instead.
#[test]
#[cfg(not(feature = "quarantine"))]
fn what_was_set_aside_is_handed_out_first() {
    let heap = heap();
    let slots = alloc(heap, 8 * SLAB);
    for _ in 0..3 {
        free_scattered(heap, &slots);
        assert_eq!((used(heap), heap.audit()), (slots.len(), Ok(())), "all of it is kept");
        assert!(alloc(heap, slots.len()) == slots);
    }
    free_scattered(heap, &slots);
    assert_whole(heap);
}

/// Slots of more slabs than a cache has places for go back, those of one slab together.
#[test]
fn of_so_many_slabs_at_most() {
    let heap = heap();
    let slots = alloc(heap, 60 * SLAB);
    free_scattered(heap, &slots);
    assert_eq!(heap.audit(), Ok(()));
    assert!(used(heap) <= MOST, "{} are kept", used(heap));
    let again = alloc(heap, slots.len());
    free_scattered(heap, &again);
    assert_whole(heap);
}

/// A slot that is freed again while it is set aside is counted when it is set aside again. Where a free looks for it
/// there, as also with `shuffle`, it is refused at once.
#[test]
fn freed_again() {
    let heap = heap();
    let slots = alloc(heap, 4 * SLAB);
    free_scattered(heap, &slots);
    // SAFETY: wrong.
    unsafe { free(heap, *slots.first().unwrap()) };
    assert_one_is_wrong(heap, *slots.first().unwrap(), WATCHED || cfg!(feature = "shuffle"));
}

/// The same for a slot that its slab has already.
#[test]
fn freed_again_once_it_was_back() {
    let heap = heap();
    let mut slots = alloc(heap, 4 * SLAB);
    let first = slots.pop_first().unwrap();
    // SAFETY: ours.
    unsafe { free(heap, first) };
    heap.on(0).trim();
    // The cache heeds the request to give back what it keeps.
    let other = heap.on(0).alloc(layout(1000, 8)).unwrap();
    // SAFETY: ours.
    unsafe { heap.on(0).free(other, layout(1000, 8)) };
    // SAFETY: wrong.
    unsafe { free(heap, first) };
    free_scattered(heap, &slots);
    assert_one_is_wrong(heap, first, WATCHED);
}

#[track_caller]
fn assert_one_is_wrong(heap: &Placed, at: NonNull<u8>, at_once: bool) {
    assert_eq!(heap.refused(), usize::from(at_once));
    if !at_once {
        assert_eq!(heap.audit(), Err(AuditError::Kept { address: at.addr().get() }));
    }
    heap.on(0).trim();
    assert_eq!((heap.audit(), heap.refused()), (Ok(()), 1));
    assert_eq!(heap.stats().free, heap.stats().bytes);
}

/// Slots of slabs lie beside runs of their own, which served as slots while there was no room for slabs. Both go back,
/// also if they were set aside and taken back before.
#[test]
fn runs_that_serve_as_slots() {
    let heap = placed(1, 4 << 20);
    let (on, large, small) = (heap.on(0), layout(7 << 10, 8), layout(1024, 8));
    let fill: Vec<_> = std::iter::from_fn(|| on.alloc(large)).collect();
    // SAFETY: the caller holds them.
    let free_all = |blocks: &mut dyn Iterator<Item = NonNull<u8>>, layout| unsafe {
        blocks.for_each(|at| on.free(at, layout));
        on.drain();
    };
    free_all(&mut fill.iter().copied().skip(1).step_by(2), large);
    let runs: Vec<_> = (0..400).map(|_| on.alloc(small).unwrap()).collect();
    free_all(&mut fill.iter().copied().step_by(2), large);
    assert!(heap.stats().runs >= 300 << 10, "most are slots of slabs");
    on.trim();
    // SAFETY: ours.
    runs.into_iter().for_each(|at| unsafe { on.free(at, small) });
    let again: Vec<_> = (0..40).map(|_| on.alloc(small).unwrap()).collect();
    on.drain();
    free_all(&mut again.into_iter(), small);
    assert_whole(heap);
}

/// A cache sets no more aside than it may keep of its region, and so withholds little from others. With `quarantine`
/// more waits.
#[test]
#[cfg(not(feature = "quarantine"))]
fn no_more_than_a_64th_of_the_region() {
    let heap = placed(2, 2 << 20);
    let on = [heap.on(0), heap.on(1)];
    for size in (64..=1024).step_by(64) {
        let blocks: Vec<_> = (0..300_000 / size).map(|_| on[0].alloc(layout(size, 8))).collect();
        // SAFETY: ours.
        blocks.into_iter().flatten().for_each(|at| unsafe { on[0].free(at, layout(size, 8)) });
    }
    let taken = core::iter::from_fn(|| on[1].alloc(layout(1024, 8))).count();
    let most = heap.stats().bytes / 1024;
    assert!(taken > most * 17 / 20, "{taken} of {most} KiB");
}
