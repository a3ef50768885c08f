//! Which lane a caller uses when it does not say.

/// The calling thread's lane: threads are numbered in the order in which they first ask.
///
/// Costs a thread-local read, and one read-modify-write the first time a thread asks. What every operation uses
/// that is not told a lane; for those who choose lanes themselves now and then, such as a C interface.
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// let block = buddy.alloc_on(nbbs::default_lane(), 0)?; // what `alloc(0)` does
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "std")]
#[inline]
#[must_use]
pub fn default_lane() -> usize {
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
#[must_use]
pub fn default_lane() -> usize {
    0
}
