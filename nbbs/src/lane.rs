//! Which lane a caller uses when it does not say.

/// The calling thread's lane: threads are numbered in the order in which they first ask.
///
/// Costs a thread-local read, and one read-modify-write the first time a thread asks.
#[cfg(feature = "std")]
#[inline]
pub(crate) fn default_lane() -> usize {
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::cell::Cell;

    static NEXT: AtomicUsize = AtomicUsize::new(0);
    const UNSET: usize = usize::MAX;
    std::thread_local! {
        static LANE: Cell<usize> = const { Cell::new(UNSET) };
    }
    // A thread that is being torn down, or that has no thread-locals, still gets a valid lane.
    LANE.try_with(|lane| {
        if lane.get() == UNSET {
            // Relaxed: only the number matters, nothing is published with it.
            lane.set(NEXT.fetch_add(1, Ordering::Relaxed) & (UNSET >> 1));
        }
        lane.get()
    })
    .unwrap_or(0)
}

/// Without `std` there is no thread to ask: every caller that names no lane shares lane 0.
#[cfg(not(feature = "std"))]
#[inline]
pub(crate) fn default_lane() -> usize {
    0
}
