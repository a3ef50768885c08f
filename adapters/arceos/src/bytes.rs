//! Memory of any size: in place of `BuddyByteAllocator`, `SlabByteAllocator` and `TlsfByteAllocator`.

use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;

use ax_allocator::{AllocError, AllocResult, BaseAllocator, ByteAllocator};
use nbbs_heap::{Cpu, Heap};

/// A heap without memory of its own. A kernel has it in a static, and calls it without a `&mut`.
#[derive(Clone, Copy)]
pub struct Bytes(&'static Heap<0, 1, One>);

/// One CPU, as theirs are for one caller at a time.
struct One;

impl Cpu for One {
    fn number() -> Option<usize> {
        Some(0)
    }
}

impl Bytes {
    /// No memory yet.
    #[expect(clippy::new_without_default, reason = "theirs are called like this")]
    pub fn new() -> Self {
        Self(Box::leak(Box::new(Heap::new())))
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({:?})", self.0.stats())
    }
}

impl BaseAllocator for Bytes {
    fn init(&mut self, start: usize, size: usize) {
        self.add_memory(start, size).expect("memory that is large enough");
    }

    fn add_memory(&mut self, start: usize, size: usize) -> AllocResult {
        let start = NonNull::new(start as *mut u8).ok_or(AllocError::InvalidParam)?;
        // SAFETY: the memory is given to the allocator, as the trait means it.
        unsafe { self.0.add(start, size) }.map_err(|_| AllocError::InvalidParam)
    }
}

impl ByteAllocator for Bytes {
    fn alloc(&mut self, layout: Layout) -> AllocResult<NonNull<u8>> {
        self.0.alloc(layout).ok_or(AllocError::NoMemory)
    }

    fn dealloc(&mut self, pos: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller gives up what it was given with this layout, as the trait means it.
        unsafe { self.0.free(pos, layout) }
    }

    fn total_bytes(&self) -> usize {
        self.0.stats().bytes
    }

    fn used_bytes(&self) -> usize {
        self.total_bytes() - self.available_bytes()
    }

    fn available_bytes(&self) -> usize {
        let stats = self.0.stats();
        stats.free + stats.free_slots
    }
}
