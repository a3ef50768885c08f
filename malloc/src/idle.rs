//! When memory that the program has used, and that is free now, goes back to the system without being asked for.
//!
//! A page that goes back and is used again costs a fault, and the system clears it: 2 to 4 us in all on virtual machines,
//! half a millisecond or one for each MiB. So memory waits, unless nearly all that was used is free, and it goes back so
//! seldom that this takes a twentieth of the time at most. It goes back in parts, one by each call, as to give back a GiB
//! takes a tenth of a second.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::memory::trim_part;
use crate::system::{keeping_errno, milliseconds};

/// How many milliseconds after half of what was used was first free, if not nearly all is, it may go back; and how long
/// nothing goes back after that in any case.
const WAIT: u64 = 1000;

/// The milliseconds from one part to the next: as long as a part takes.
const PAUSE: u64 = 3;

/// The milliseconds in which no more goes back, for each MiB that has gone; and all of them at most.
const EACH: u64 = 20;
const MOST: u64 = 60_000;

/// When memory may go back again. While somebody is at it, that is later: for a caller that dies at it, or stayed in the
/// parent of a fork. Relaxed everywhere, as below: only the numbers matter.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Since when much is free, as far as is known; 0 after it has gone back.
static SINCE: AtomicU64 = AtomicU64::new(0);

/// What stands in [`SINCE`] while a part has gone and another is to follow: so long ago that it may go at any time.
const UNDER_WAY: u64 = 1;

/// The bytes that have gone in the parts so far.
static GONE: AtomicU64 = AtomicU64::new(0);

/// Gives free memory back to the system, if it is time: a part of `idle` bytes of `touched` that the program has used.
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
        let (bytes, is_last) = keeping_errno(|| trim_part(since != UNDER_WAY));
        let gone = bytes + GONE.fetch_add(bytes, Ordering::Relaxed);
        if is_last {
            all_has_gone();
        } else {
            SINCE.store(UNDER_WAY, Ordering::Relaxed);
        }
        NEXT.store(milliseconds() + pause(bytes, gone, is_last), Ordering::Relaxed);
    }
}

/// Notes that all free memory has gone back: no part is left.
pub fn all_has_gone() {
    GONE.store(0, Ordering::Relaxed);
    SINCE.store(0, Ordering::Relaxed);
}

/// Returns for how many milliseconds no more goes back after a part of so many bytes, with which so many have gone.
fn pause(bytes: u64, gone: u64, is_last: bool) -> u64 {
    match (is_last, bytes) {
        (true, _) => WAIT + (EACH * (gone >> 20)).min(MOST),
        (false, 0) => 0,
        (false, _) => PAUSE,
    }
}

fn is_time(now: u64, next: u64, since: u64, is_nearly_all: bool) -> bool {
    now >= next && (is_nearly_all || now.saturating_sub(since) >= WAIT)
}

#[cfg(test)]
mod tests {
    use super::{EACH, MOST, PAUSE, WAIT, is_time, pause};

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

    #[test]
    fn the_pause_is_long_after_the_last_part() {
        const MIB: u64 = 1 << 20;
        assert_eq!(pause(32 * MIB, 64 * MIB, false), PAUSE);
        assert_eq!(pause(0, 64 * MIB, false), 0);
        assert_eq!(pause(0, 64 * MIB, true), WAIT + 64 * EACH);
        assert_eq!(pause(MIB, 1 << 40, true), WAIT + MOST);
    }
}
