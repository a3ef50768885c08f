//! Second frees in the middle of an operation that has the slot in hand.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;

use super::placed;
use crate::api::{On, Placed};
use crate::class::UNIT;
use crate::words::interrupted;

const SLOT: Layout = Layout::new::<[u64; 16]>();

std::thread_local! {
    /// How many accesses are left until the free.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    /// The free slot, until it has been freed a second time, and what that was told.
    static FREED: Cell<Option<(&'static Placed, NonNull<u8>)>> = const { Cell::new(None) };
    static SAID: Cell<bool> = const { Cell::new(false) };
}

/// Returns the heap for a caller that bypasses the caches.
fn past_caches(heap: &Placed) -> On<'_> {
    // SAFETY: there is no cache of this number.
    unsafe { heap.on_nested(9) }
}

fn free_again() {
    LEFT.set(LEFT.get().saturating_sub(1));
    if LEFT.get() == 0
        && let Some((heap, at)) = FREED.take()
    {
        // SAFETY: wrong, and the heap must lose nothing by it.
        SAID.set(unsafe { past_caches(heap).free_at(at) }.is_ok());
    }
}

/// Whoever has a slab's slots in hand gives back all but the one that was freed meanwhile, and counts that one, as the
/// free could not be refused.
#[test]
fn a_free_slot_that_an_operation_has_in_hand() {
    let trim: fn(On<'_>) = |on| _ = on.trim();
    let alloc: fn(On<'_>) = |on| assert!(on.alloc(SLOT).is_some());
    let mut accepted = 0;
    for (held, operation) in [(1, trim), (2, alloc)] {
        for step in 1.. {
            let heap = placed(UNIT << 6);
            // Two slabs of eight slots, of which one slot is held.
            let blocks = [(); 16].map(|()| past_caches(heap).alloc(SLOT).expect("a slot"));
            // SAFETY: the blocks are ours.
            blocks[..15].iter().for_each(|&at| unsafe { past_caches(heap).free(at, SLOT) });
            FREED.set(Some((heap, blocks[13])));
            LEFT.set(step);
            SAID.set(false);
            interrupted(free_again, || operation(past_caches(heap)));
            if FREED.take().is_some() {
                break;
            }
            accepted += usize::from(SAID.get());
            let used: usize = heap.stats().classes().iter().map(|class| class.used).sum();
            assert_eq!((used, heap.refused()), (held, 1), "step {step}");
            assert_eq!(heap.audit(), Ok(()));
        }
    }
    assert_ne!(accepted, 0, "some frees come while the slot is in hand");
}
