//! Reads memory that was freed, of 100 bytes or of 100,000, whichever it is told to: AddressSanitizer sees it, with the heap's
//! feature `asan`, and Valgrind, with `valgrind`.
//!
//! ```sh
//! RUSTFLAGS=-Zsanitizer=address cargo +nightly run -p nbbs-heap --features asan --target TRIPLE --example after_free 100
//! cargo build -p nbbs-heap --features valgrind --example after_free && valgrind target/debug/examples/after_free 100
//! ```

use std::alloc::Layout;

use nbbs_heap::Heap;

static HEAP: Heap<{ 1 << 20 }> = Heap::new();

fn main() {
    for size in [100, 100_000] {
        let layout = Layout::from_size_align(size, 8).expect("a layout");
        let block = HEAP.alloc(layout).expect("memory");
        // SAFETY: the block is ours.
        unsafe {
            block.write_bytes(7, size);
            assert_eq!(block.add(50).read(), 7);
            HEAP.free(block, layout);
        }
        println!("freed {size} bytes");
        if std::env::args().nth(1).is_some_and(|wrong| wrong == size.to_string()) {
            // SAFETY: there is none.
            let byte = unsafe { block.add(50).read_volatile() };
            println!("read {byte}");
        }
    }
}
