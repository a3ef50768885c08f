//! The baseline: a spin lock around each allocation and free of a block, as around most kernels' frame allocators.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use spin::{Mutex, MutexGuard};

use crate::arch;

static LOCK: Mutex<()> = Mutex::new(());
/// The CPU that holds the lock. Relaxed: only that CPU has to know, and for it its accesses are in order.
static HOLDER: AtomicUsize = AtomicUsize::new(NOBODY);
const NOBODY: usize = usize::MAX;

/// The lock, held.
pub struct Section(#[expect(dead_code, reason = "held for its end")] MutexGuard<'static, ()>);

/// Waits for the lock.
pub fn enter() -> Section {
    let guard = LOCK.lock();
    HOLDER.store(arch::cpu_number(), Relaxed);
    Section(guard)
}

impl Drop for Section {
    fn drop(&mut self) {
        HOLDER.store(NOBODY, Relaxed);
    }
}

/// Returns whether this CPU holds the lock.
pub fn is_mine() -> bool {
    HOLDER.load(Relaxed) == arch::cpu_number()
}
