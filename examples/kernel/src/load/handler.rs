//! The work of an interrupt handler: it allocates and frees, whatever it has interrupted.

use arrayvec::ArrayVec;

use crate::cpus::{self, Interrupts};
use crate::memory::{Context, Held};
use crate::random::Random;

/// The most blocks that a handler leaves allocated: a device driver's buffers, say.
const MOST: usize = 8;

/// What the handlers of one kind on one CPU hold.
pub struct Handler {
    context: Context,
    held: ArrayVec<Held, MOST>,
    random: Random,
    has_ended: bool,
}

impl Handler {
    /// Creates a handler that holds nothing.
    pub const fn new(context: Context) -> Self {
        let random = Random::new(context as u64);
        Self { context, held: ArrayVec::new_const(), random, has_ended: false }
    }

    /// Allocates a block, and frees another. Returns how many it has allocated.
    fn work(&mut self) -> u64 {
        if self.has_ended {
            return 0;
        }
        if self.held.is_full() {
            let which = self.random.below(MOST as u64) as usize;
            self.held.swap_remove(which).free();
        }
        super::lists::in_handler(&mut self.random);
        let block = Held::alloc(self.context, self.random.order(4));
        let allocated = u64::from(block.is_some());
        self.held.extend(block);
        allocated
    }
}

impl Interrupts {
    /// In the handler: counts the interrupt, allocates and frees.
    pub fn handle(&self) {
        self.count.add(1);
        self.inside.add(u64::from(cpus::this().depth() > 0));
        // Held only while the CPU ends the load.
        if let Some(mut handler) = self.handler.try_lock() {
            self.allocations.add(handler.work());
        }
    }

    /// Frees what the CPU's handlers hold, on the CPU itself. From now on they do nothing.
    pub fn end(&self) {
        let mut handler = self.handler.lock();
        handler.has_ended = true;
        handler.held.drain(..).for_each(Held::free);
    }
}

/// The handler of the timer's interrupt.
pub fn timer() {
    cpus::this().timer.handle();
}

/// The handler of an interrupt that cannot be masked. With the baseline it only watches: its own allocation would wait
/// for the CPU that it runs on.
pub fn nmi() {
    let cpu = cpus::this();
    cpu.watchdog.look(cpu);
    if !cfg!(feature = "locked") {
        cpu.nmi.handle();
    }
}
