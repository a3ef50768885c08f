//! When memory that the program has used, and that is free now, goes back to the system without being asked for.
//!
//! A page that goes back and is used again costs a fault, and the system clears it, some 2 us in all. So memory waits,
//! unless nearly all that was used is free; and it goes back seldom enough that all of this takes a twentieth of the time
//! at most.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::memory::trim;
use crate::system::milliseconds;

/// How long half of what was used has to be free, if it is not nearly all.
const WAIT: u64 = 1000;

/// The milliseconds after which more may go back, for each MiB that has gone.
const EACH: u64 = 10;

/// How many milliseconds one caller may take; so long nothing goes back after one that dies at it, or stayed in the parent
/// of a fork.
const TURN: u64 = 60_000;

/// When memory may go back again. Relaxed everywhere, as below: only the numbers matter.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Since when much is free, as far as is known; 0 after it has gone back.
static SINCE: AtomicU64 = AtomicU64::new(0);

/// Gives free memory back to the system, if it is time: `idle` bytes of `touched` that the program has used.
pub fn give_back(idle: u64, touched: u64) {
    let (now, next) = (milliseconds(), NEXT.load(Ordering::Relaxed));
    let since = match SINCE.load(Ordering::Relaxed) {
        0 => now,
        since => since,
    };
    SINCE.store(since, Ordering::Relaxed);
    if !is_time(now, next, since, idle >= touched / 8 * 7) {
        return;
    }
    if NEXT.compare_exchange(next, now + TURN, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        let mib = trim() as u64 >> 20;
        SINCE.store(0, Ordering::Relaxed);
        NEXT.store(milliseconds() + EACH * mib, Ordering::Relaxed);
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
