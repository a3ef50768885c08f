//! Tests what a CPU's handle does as a heap in a static does: what is called before memory is given up, and draining.

mod support;

use std::ptr::NonNull;

use nbbs_heap::Placed;
use support::{layout, placed};

const BYTES: usize = 1 << 20;

#[test]
fn what_is_freed_as_zero_is_not_cleared() {
    let on = placed(1, 4 * BYTES).on(0);
    let at = on.alloc(layout(BYTES, 1)).unwrap();
    // SAFETY: ours.
    unsafe { at.write_bytes(7, BYTES) };
    // SAFETY: ours; what is not zero, though said to be, shows what is not cleared.
    assert_eq!(unsafe { on.free_at_after(at, |bytes| 0..bytes / 2) }, Ok(BYTES));
    assert_eq!(on.alloc_zeroed(layout(BYTES, 1)), Some(at));
    // SAFETY: ours, and initialized.
    let bytes = unsafe { NonNull::slice_from_raw_parts(at, BYTES).as_ref() };
    let left = |range: &[u8]| range.iter().filter(|&&byte| byte == 7).count();
    let [said, other] = [left(&bytes[..BYTES / 2]), left(&bytes[BYTES / 2..])];
    assert!(said >= BYTES / 2 - (2 << 16), "{said} bytes");
    assert_eq!(other, 0);
}

/// `last` sees what is longer than any slot, once, and before it is anybody else's.
#[test]
fn what_is_called_before_memory_goes() {
    let on = placed(1, 4 * BYTES).on(0);
    let unseen = |bytes| panic!("{bytes} bytes that stay, or are a slot");
    let slot = on.alloc(layout(100, 1)).unwrap();
    // SAFETY: ours.
    assert_eq!(unsafe { on.free_at_after(slot, unseen) }, Ok(112));
    let run = on.alloc(layout(300_000, 1)).unwrap();
    // SAFETY: ours.
    assert_eq!(unsafe { on.resize_at_after(run, 299_000, unseen) }, Ok(Some(run)));
    let mut seen = Vec::new();
    let mut last = |bytes| {
        assert!(on.usable(run) == Ok(bytes), "it is not held any more");
        seen.push(bytes);
        0..0
    };
    // SAFETY: ours.
    let moved = unsafe { on.resize_at_after(run, 50_000, &mut last) }.unwrap().unwrap();
    assert_ne!(moved, run);
    assert_eq!(seen, [293 << 10]);
    // SAFETY: ours.
    assert_eq!(unsafe { on.free_at_after(moved, |_| 0..0) }, Ok(49 << 10));
    // SAFETY: wrong, and so nothing is called.
    assert!(unsafe { on.free_at_after(NonNull::dangling(), unseen) }.is_err());
}

/// Returns how many slots are in use, or kept.
fn used(heap: &Placed) -> usize {
    heap.stats().classes().iter().map(|class| class.used).sum()
}

#[test]
fn a_drain_empties_one_cache() {
    let heap = placed(2, 8 * BYTES);
    // SAFETY: there is no other thread.
    let nested = unsafe { heap.on_nested(1) };
    for (on, other) in [(heap.on(0), nested), (nested, heap.on(0))] {
        let of = [100, 40_000].map(|size| layout(size, 8));
        for of in of {
            let at = on.alloc(of).unwrap();
            // SAFETY: ours.
            unsafe { on.free(at, of) };
        }
        let kept = used(heap);
        assert!(kept > 0, "the cache keeps the slot");
        other.drain();
        assert_eq!(used(heap), kept, "the other cache was emptied");
        let runs = heap.stats().runs;
        assert!(on.drain() >= runs, "{runs} bytes of runs");
        assert_eq!((used(heap), heap.stats().runs), (0, 0));
        assert_eq!((heap.audit(), heap.refused()), (Ok(()), 0));
    }
}
