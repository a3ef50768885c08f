//! Blocks allocated and freed, of each order, so that programs may ask after every call.

use nbbs::sync::{AtomicU64, Ordering};

/// How many blocks were ever allocated and freed. Units far apart have different shares, so that threads, which
/// allocate in different parts, do not all write to one cache line. All zero is a value: nothing was counted.
#[repr(C)]
pub(super) struct Counts([Share; SHARES]);

#[repr(C, align(64))]
struct Share {
    allocated: [AtomicU64; ORDERS],
    freed: [AtomicU64; ORDERS],
}

const SHARES: usize = 8;
/// log2 of the neighbouring units that one share counts.
const SHARE_ORDER: u32 = 9;
/// More than any block has.
const ORDERS: usize = 64;

impl Counts {
    fn share(&self, index: u64) -> &Share {
        &self.0[(index >> SHARE_ORDER) as usize % SHARES]
    }

    /// Counts a block that was allocated.
    #[inline]
    pub(super) fn allocated(&self, index: u64, order: u32) {
        // Relaxed, here and below: counts, which publish nothing.
        self.share(index).allocated[order as usize % ORDERS].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a block that was freed.
    #[inline]
    pub(super) fn freed(&self, index: u64, order: u32) {
        self.share(index).freed[order as usize % ORDERS].fetch_add(1, Ordering::Relaxed);
    }

    /// Blocks of all orders that were ever freed.
    pub(super) fn all_freed(&self) -> u64 {
        (0..ORDERS as u32).map(|order| self.sum(order, |share| &share.freed)).sum()
    }

    /// Blocks of `order` that are allocated. Exact when nothing else runs.
    pub(super) fn in_use(&self, order: u32) -> u64 {
        // The freed ones first: what comes and goes in between counts as in use, and never as fewer than none.
        let freed = self.sum(order, |share| &share.freed);
        self.sum(order, |share| &share.allocated).saturating_sub(freed)
    }

    fn sum(&self, order: u32, of: impl Fn(&Share) -> &[AtomicU64; ORDERS]) -> u64 {
        let counts = self.0.iter().map(|share| &of(share)[order as usize % ORDERS]);
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }
}
