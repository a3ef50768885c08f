//! When memory that the program has used, and that is free now, goes back to the system without being asked for.
//!
//! A page that goes back and is used again costs a fault, and the system clears it: 2 to 4 us in all on virtual machines,
//! half a millisecond or one for each MiB. So memory waits, unless nearly all that was used is free, and it goes back so
//! seldom that this takes a twentieth of the time at most.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::memory::trim;
use crate::system::{keeping_errno, milliseconds};

/// How many milliseconds after half of what was used was first free, if not nearly all is, it may go back; and how long
/// nothing goes back after that in any case.
const WAIT: u64 = 1000;

/// The milliseconds in which no more goes back, for each MiB that has gone; and all of them at most.
const EACH: u64 = 20;
const MOST: u64 = 60_000;

/// When memory may go back again. While somebody is at it, that is later: for a caller that dies at it, or stayed in the
/// parent of a fork. Relaxed everywhere, as below: only the numbers matter.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Since when much is free, as far as is known; 0 after it has gone back.
static SINCE: AtomicU64 = AtomicU64::new(0);

/// Gives free memory back to the system, if it is time: `idle` bytes of `touched` that the program has used.
pub fn give_back(idle: u64, touched: u64) {
    let (now, next) = (milliseconds(), NEXT.load(Ordering::Relaxed));
    let mut since = SINCE.load(Ordering::Relaxed);
    if since == 0 {
        since = now;
        // Another may have been first.
        _ = SINCE.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }
    if !is_time(now, next, since, idle >= touched / 8 * 7) {
        return;
    }
    if NEXT.compare_exchange(next, now + MOST, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        let mib = keeping_errno(trim) as u64 >> 20;
        SINCE.store(0, Ordering::Relaxed);
        NEXT.store(milliseconds() + WAIT + (EACH * mib).min(MOST), Ordering::Relaxed);
    }
}

fn is_time(now: u64, next: u64, since: u64, is_nearly_all: bool) -> bool {
    now >= next && (is_nearly_all || now.saturating_sub(since) >= WAIT)
}

#[cfg(test)]
mod tests {
    use super::is_time;

    #[test]
    fn memory_goes_back_when_it_is_time() {
        // At once, if it is nearly all; half of it after a second.
        assert!(is_time(5000, 0, 5000, true));
        assert!(!is_time(5999, 0, 5000, false) && is_time(6000, 0, 5000, false));
        // A while after the last time.
        assert!(!is_time(8999, 9000, 5000, true) && is_time(9000, 9000, 5000, false));
        // Another has read the clock later.
        assert!(!is_time(5000, 0, 5001, false));
    }
}
