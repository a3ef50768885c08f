//! A test of where the first thread of a process allocates. It is the only one of its process.

use std::alloc::Layout;

use nbbs_heap::Heap;

static HEAP: Heap<{ 64 << 20 }> = Heap::new();

#[test]
fn the_first_thread_leaves_the_memory_in_one_piece() {
    for size in [1, 100, 5000, 40_000] {
        let layout = Layout::from_size_align(size, 8).unwrap();
        assert!(HEAP.alloc(layout).is_some());
    }
    let most = Layout::from_size_align(60 << 20, 8).unwrap();
    assert!(HEAP.alloc(most).is_some());
}
