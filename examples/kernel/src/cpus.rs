//! The CPUs: their counters, and whether each is in the middle of an operation.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU64, compiler_fence};

use spin::Mutex;

use crate::arch;
use crate::load::Handler;
use crate::memory::Context;
use crate::watchdog::Watchdog;

/// The most CPUs that are started.
pub const MAX: usize = 64;

/// A number to which a CPU and its handlers add, and which others read. Relaxed: nothing is published with it.
pub struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    /// The sum.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The interrupts of one kind on one CPU.
pub struct Interrupts {
    /// How many there were.
    pub count: Counter,
    /// How many came in the middle of an operation.
    pub inside: Counter,
    /// How many blocks the handler allocated.
    pub allocations: Counter,
    /// What the handler holds. The handler only tries to lock it, and the CPU that it interrupts locks it once, at the
    /// end: nobody waits.
    pub handler: Mutex<Handler>,
}

impl Interrupts {
    const fn new(context: Context) -> Self {
        Self {
            count: Counter::new(),
            inside: Counter::new(),
            allocations: Counter::new(),
            handler: Mutex::new(Handler::new(context)),
        }
    }
}

/// What belongs to a CPU, on cache lines of its own.
#[repr(align(128))]
pub struct Cpu {
    /// How many operations are under way: more than one if a handler's has interrupted the program's.
    depth: AtomicU64,
    /// How many operations have ended, including those of handlers.
    pub operations: Counter,
    /// How many found no block.
    pub refusals: Counter,
    /// Interrupts of the timer.
    pub timer: Interrupts,
    /// Interrupts that cannot be masked.
    pub nmi: Interrupts,
    /// Checks whether operations end.
    pub watchdog: Watchdog,
}

static CPUS: [Cpu; MAX] = [const { Cpu::new() }; MAX];

/// Returns the CPU that this runs on.
pub fn this() -> &'static Cpu {
    &CPUS[arch::cpu_number()]
}

/// Returns the first `number` CPUs.
pub fn first(number: usize) -> &'static [Cpu] {
    &CPUS[..number]
}

impl Cpu {
    const fn new() -> Self {
        Self {
            depth: AtomicU64::new(0),
            operations: Counter::new(),
            refusals: Counter::new(),
            timer: Interrupts::new(Context::Timer),
            nmi: Interrupts::new(Context::Nmi),
            watchdog: Watchdog::new(),
        }
    }

    /// Marks the CPU while it is in an operation of the allocator.
    pub fn operation<R>(&self, run: impl FnOnce() -> R) -> R {
        // Relaxed: for handlers on the same CPU; the fences keep the compiler from moving the operation out of the
        // marks. A handler in between leaves the depth as it was.
        let depth = self.depth.load(Relaxed);
        self.depth.store(depth + 1, Relaxed);
        compiler_fence(SeqCst);
        let result = run();
        compiler_fence(SeqCst);
        self.depth.store(depth, Relaxed);
        self.operations.add(1);
        result
    }

    /// How many interrupts came in the middle of an operation.
    pub fn inside(&self) -> u64 {
        self.timer.inside.get() + self.nmi.inside.get()
    }

    /// How many operations are under way.
    pub fn depth(&self) -> u64 {
        self.depth.load(Relaxed)
    }
}
