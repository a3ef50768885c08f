//! What the CPUs do with the memory, all at once.
//!
//! ```text
//! blocks    blocks of all orders          handler    the same in interrupt handlers
//! tables    page tables                   objects    objects of one type, which CPUs hand each other
//! lists     collections in the heap       plug       memory that comes and goes
//! ```

mod blocks;
mod handler;
mod lists;
mod objects;
mod plug;
mod tables;

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::random::Random;
use crate::{arch, cpus, memory};

pub use handler::{Handler, nmi, timer};
pub use objects::tasks;
pub use plug::Plug;

/// The state of the load.
pub struct Load {
    /// Set by the boot CPU when everything has been set up.
    begin: AtomicBool,
    /// Set by the boot CPU when the load has run long enough.
    stop: AtomicBool,
    /// How many CPUs have ended.
    ended: AtomicUsize,
}

/// The one load.
pub static LOAD: Load = Load {
    begin: AtomicBool::new(false),
    stop: AtomicBool::new(false),
    ended: AtomicUsize::new(0),
};

impl Load {
    /// Lets all CPUs begin.
    pub fn begin(&self) {
        // Release: pairs with the Acquire in `run`.
        self.begin.store(true, Ordering::Release);
    }

    /// Waits for [`begin`](Self::begin), and works until [`stop`](Self::stop), calling `meanwhile` now and then. Then
    /// it gives everything back.
    pub fn run(&self, mut meanwhile: impl FnMut()) {
        // Acquire: pairs with the Release in `begin`.
        while !self.begin.load(Ordering::Acquire) {
            core::hint::spin_loop();
        }
        let cpu = arch::cpu_number();
        let mut random = Random::new(cpu as u64 + 1);
        let mut blocks = blocks::Blocks::new();
        let mut objects = objects::Objects::new(cpu);
        let mut lists = lists::Lists::new();
        arch::enable_interrupts();
        // Relaxed: nothing is handed over with it.
        while !self.stop.load(Ordering::Relaxed) {
            for _ in 0..64 {
                blocks.step(&mut random);
            }
            tables::step(&mut random);
            objects.step(&mut random);
            lists.step(&mut random);
            meanwhile();
        }
        arch::disable_interrupts();
        blocks.free_all();
        objects.free_all();
        lists.free_all();
        let this = cpus::this();
        this.timer.end();
        this.nmi.end();
        memory::memory().caches().drain(cpu);
        // Release: pairs with the Acquire in `have_ended`. What this CPU has freed is freed before it is counted.
        self.ended.fetch_add(1, Ordering::Release);
    }

    /// Ends the load on all CPUs.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns whether this many CPUs have given everything back.
    pub fn have_ended(&self, cpus: usize) -> bool {
        // Acquire: pairs with the Release in `run`.
        self.ended.load(Ordering::Acquire) == cpus
    }
}
