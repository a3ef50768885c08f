//! A library that a program loads, with a heap of its own as its global allocator: `heap/tests/unload.rs` loads it, and
//! unloads it before a thread that has used it ends.

use nbbs_heap::Heap;

#[global_allocator]
static HEAP: Heap<{ 4 << 20 }> = Heap::new();

/// Returns the sum of the numbers below `count`, which it keeps in the heap.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
pub extern "C" fn sum_below(count: u64) -> u64 {
    let numbers: Vec<u64> = (0..count).collect();
    numbers.iter().sum()
}
