//! The watchdog: interrupts that cannot be masked check whether the CPU's operations end.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::cpus::Cpu;
#[cfg(feature = "locked")]
use crate::memory::lock;
use crate::report;

/// The number of interrupts in one operation that is too many: about two seconds.
const PATIENCE: u64 = 2 * crate::arch::NMI_HERTZ as u64;

/// What a CPU's watchdog has seen. Relaxed: only one handler on one CPU uses it.
pub struct Watchdog {
    operations: AtomicU64,
    looks: AtomicU64,
}

impl Watchdog {
    pub const fn new() -> Self {
        Self { operations: AtomicU64::new(0), looks: AtomicU64::new(0) }
    }

    /// Checks the CPU, from its handler. Does not return if one operation has been under way for too long.
    pub fn look(&self, cpu: &Cpu) {
        let operations = cpu.operations.get();
        let is_stuck = cpu.depth() > 0 && self.operations.swap(operations, Relaxed) == operations;
        let looks = if is_stuck { self.looks.load(Relaxed) + 1 } else { 0 };
        self.looks.store(looks, Relaxed);
        #[cfg(feature = "locked")]
        if looks >= PATIENCE && lock::is_mine() {
            report::deadlock();
        }
        // The other CPUs wait for it, and must not be the first to say so.
        if looks >= 5 * PATIENCE {
            report::stuck(cpu);
        }
    }
}
