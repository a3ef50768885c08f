//! The baseline: a spin lock around each allocation and free of a block, as around most kernels' frame allocators.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::arch;

/// The CPU that holds the lock: one word, so that a handler which waits always finds whom it waits for.
static HOLDER: AtomicUsize = AtomicUsize::new(NOBODY);
const NOBODY: usize = usize::MAX;

/// The lock, held.
pub struct Section(());

/// Waits for the lock.
pub fn enter() -> Section {
    let number = arch::cpu_number();
    // Acquire: pairs with the Release of the holder before.
    while HOLDER
        .compare_exchange_weak(NOBODY, number, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        spin_loop();
    }
    Section(())
}

impl Drop for Section {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the next holder.
        HOLDER.store(NOBODY, Ordering::Release);
    }
}

/// Returns whether this CPU holds the lock.
pub fn is_mine() -> bool {
    // Relaxed: a CPU's own store is in order for it.
    HOLDER.load(Ordering::Relaxed) == arch::cpu_number()
}
