//! The kernel's collections, and the heap that they live in.
//!
//! The heap exists from the first instruction on, as it is all zero then: lists hold what the machine says at boot
//! before there is any other memory.

use nbbs_heap::{Cpu, Heap, Overlap};

use crate::arch;

/// Lists of things known at boot: stretches of memory, CPUs.
pub use alloc::vec::Vec as List;

/// The number of CPUs that have a cache of their own.
const CACHES: usize = 8;

/// 4 MiB with their bookkeeping. A kernel that needs more adds blocks of the arena: `Heap::add`.
#[global_allocator]
static HEAP: Heap<{ 4 << 20 }, CACHES, Current> = Heap::new();

/// Says which CPU's cache to use.
pub struct Current;

impl Cpu for Current {
    // SAFETY: the kernel has no threads, and each CPU has a number of its own from the start. Handlers end before what
    // they interrupt continues. A kernel with threads disables preemption around each operation.
    const OVERLAP: Overlap<Self> = unsafe { Overlap::nested() };

    fn number() -> Option<usize> {
        Some(arch::cpu_number())
    }
}

/// Returns the heap.
pub fn heap() -> &'static Heap<{ 4 << 20 }, CACHES, Current> {
    &HEAP
}
