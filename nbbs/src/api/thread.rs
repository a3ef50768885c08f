//! The lane of a caller that does not name one.

/// Returns the calling thread's lane, which every operation uses that is not given a lane. It is drawn from
/// [`next_lane`] when the thread first asks.
///
/// Cost: a thread-local read. In two cases, name a lane instead:
///
/// - In a library loaded by `dlopen`, a thread's first use of a thread-local may call `malloc`. A signal handler that can
///   interrupt `malloc`, and be the first in its thread to ask, must name a lane.
/// - After a `fork`, the thread in the child keeps the lane that it has in the parent.
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// let block = buddy.on(nbbs::default_lane()).alloc(0)?; // what `alloc(0)` does
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "std")]
#[inline]
#[must_use]
pub fn default_lane() -> usize {
    use std::cell::Cell;

    const UNSET: usize = usize::MAX;
    std::thread_local! {
        static LANE: Cell<usize> = const { Cell::new(UNSET) };
    }
    // A thread that is being torn down, or that has no thread-locals, still gets a valid lane.
    LANE.try_with(|lane| {
        if lane.get() == UNSET {
            lane.set(next_lane());
        }
        lane.get()
    })
    .unwrap_or(0)
}

/// Returns the lane of every caller that names none: lane 0, since threads are not known without `std`.
#[cfg(not(feature = "std"))]
#[inline]
#[must_use]
pub fn default_lane() -> usize {
    0
}

/// Draws a lane for another thread or CPU, for callers that keep track of lanes themselves, as a C interface does.
///
/// The lanes of one process are consecutive. The first depends on the process, so that processes that share an arena do
/// not all allocate from the same words. Cost: a read-modify-write and a system call; no thread-local is used.
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// let workers = [buddy.on(nbbs::next_lane()), buddy.on(nbbs::next_lane())];
/// let block = workers[0].alloc(0)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "std")]
#[must_use]
pub fn next_lane() -> usize {
    use core::sync::atomic::{AtomicUsize, Ordering};

    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: only the number matters, nothing is published with it.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // Never the largest number, which callers keep for "none".
    first_lane(process()).wrapping_add(number) & (usize::MAX >> 1)
}

/// Returns the number of this process; 0 where there may be none.
#[cfg(feature = "std")]
pub(crate) fn process() -> u32 {
    // Elsewhere asking for it panics.
    if cfg!(any(unix, windows)) { std::process::id() } else { 0 }
}

/// Returns the first lane of a process. Consecutive lanes have homes far apart, wherever they begin.
///
/// The step is near the golden section of 64, the lanes of 4 GiB of pages: five processes with consecutive numbers have
/// 11 lanes each before they meet, in larger arenas more. It is odd, so that two neighbours differ where there are two
/// or four lanes.
#[cfg(feature = "std")]
fn first_lane(process: u32) -> usize {
    const STEP: usize = 39;
    (process as usize).wrapping_mul(STEP)
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::{first_lane, next_lane};

    #[test]
    fn processes_with_consecutive_numbers_begin_far_apart() {
        for process in (0..500).chain([1 << 22, u32::MAX - 5]) {
            for other in process + 1..process + 5 {
                let apart = first_lane(other).wrapping_sub(first_lane(process)) % 64;
                assert!((11..=64 - 11).contains(&apart), "{process} and {other}: {apart}");
            }
            let next = first_lane(process + 1);
            assert_ne!(next % 2, first_lane(process) % 2);
        }
    }

    #[test]
    fn lanes_of_a_process_follow_each_other() {
        let lanes: std::vec::Vec<usize> = (0..20).map(|_| next_lane()).collect();
        // Other tests may draw some in between.
        assert!(lanes.is_sorted() && lanes[19] - lanes[0] < 40, "{lanes:?}");
    }
}
