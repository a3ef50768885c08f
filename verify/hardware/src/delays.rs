//! Lets time pass between two atomic steps.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use crate::hooked::with_hook;

/// How often and how long a thread pauses before an access to a [`Hooked`](crate::Hooked) word.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    /// A delay comes before one access in this many.
    pub one_in: u32,
}

thread_local! {
    /// 0: not begun yet.
    static RANDOM: Cell<u64> = const { Cell::new(0) };
    static ONE_IN: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// Calls `body` with delays.
pub fn delayed<R>(delays: Delays, body: impl FnOnce() -> R) -> R {
    ONE_IN.set(delays.one_in.max(1));
    with_hook(wait_sometimes, body)
}

/// Waits now and then: mostly gives another thread a turn, sometimes spins for a while, and rarely sleeps.
fn wait_sometimes() {
    let drawn = random();
    if !(drawn as u32).is_multiple_of(ONE_IN.get()) {
        return;
    }
    match drawn >> 32 & 255 {
        0 => thread::sleep(Duration::from_micros(50)),
        1..=63 => (0..drawn >> 40 & 1023).for_each(|_| std::hint::spin_loop()),
        _ => thread::yield_now(),
    }
}

/// Returns a random number of 48 bits, by Marsaglia's xorshift. It locks and allocates nothing, so signal handlers may
/// call it.
pub fn random() -> u64 {
    let mut state = RANDOM.get();
    if state == 0 {
        // A different seed for each thread: the address of its thread-locals.
        state = RANDOM.with(|random| std::ptr::from_ref(random).addr() as u64);
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    RANDOM.set(state);
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
}
