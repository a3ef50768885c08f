//! Reads memory that was freed, of 100 bytes or of 100,000, whichever it is told to: AddressSanitizer sees it, with the
//! heap's feature `asan`, and Valgrind, with `valgrind`. Everything else that it does is right, and neither reports it.
//!
//! ```sh
//! RUSTFLAGS=-Zsanitizer=address cargo +nightly run -p nbbs-heap --features asan --target TRIPLE --example after_free 100
//! cargo build -p nbbs-heap --features valgrind --example after_free && valgrind target/debug/examples/after_free 100
//! ```

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::OnceLock;

use nbbs_heap::{Heap, Placed};

static HEAP: Heap<{ 1 << 20 }> = Heap::new();

fn main() {
    discard();
    walk();
    let heap = heap_without_room_for_slabs();
    // A slot that is a run of its own, and a run of no bytes.
    for (size, align) in [(7600, 8), (0, 8192)] {
        grow(heap, Layout::from_size_align(size, align).expect("a layout"));
    }
    read_after_free();
}

/// Writes to pages that the heap passes to its caller.
fn discard() {
    let layout = Layout::new::<[u8; 200 << 10]>();
    let block = HEAP.alloc(layout).expect("memory");
    // SAFETY: the block is ours.
    unsafe { HEAP.free(block, layout) };
    let clear = |pages: NonNull<u8>, bytes| {
        // SAFETY: nobody else has the pages.
        unsafe { pages.write_bytes(0, bytes) };
        true
    };
    // SAFETY: they are zero.
    println!("{} bytes discarded", unsafe { HEAP.discard(4096, clear) }.unwrap());
}

/// Reads what a walk shows: blocks that are in use.
fn walk() {
    let block = HEAP.alloc(Layout::new::<[u8; 100]>()).expect("memory");
    // SAFETY: the block is ours.
    unsafe { block.write_bytes(1, 100) };
    HEAP.trim();
    // SAFETY: the only block in use, and it is ours.
    HEAP.walk(|live| println!("a block of {}", unsafe { live.at.read() }));
    // SAFETY: the block is ours.
    unsafe { HEAP.free_at(block) }.expect("to be held");
}

fn heap_without_room_for_slabs() -> &'static Placed {
    // Memory to which nothing refers would be reported as leaked.
    static SMALL: OnceLock<&Placed> = OnceLock::new();
    SMALL.get_or_init(|| {
        let all = Placed::bytes_for(1, 100 << 10).expect("a size");
        let memory = NonNull::from(Box::leak(vec![0_u8; all].into_boxed_slice())).cast();
        // SAFETY: the memory is leaked.
        unsafe { Placed::new(memory, all, 1) }.expect("room for a heap")
    })
}

/// Uses all of a block that is a run, and of what it becomes when it grows in place.
fn grow(heap: &'static Placed, layout: Layout) {
    let block = heap.on(0).alloc(layout).expect("memory");
    let usable = heap.on(0).usable(block).expect("to be held");
    // SAFETY: the block is ours, and has as many bytes.
    let grown = unsafe {
        block.write_bytes(1, usable);
        heap.on(0).resize_at(block, 40_000)
    };
    assert_eq!(grown, Ok(Some(block)), "in place");
    // SAFETY: the block is ours, and has as many bytes.
    unsafe {
        block.write_bytes(2, 40_000);
        heap.on(0).free_at(block).expect("to be held");
    }
    println!("{usable} bytes grown");
}

fn read_after_free() {
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
        if std::env::args_os().nth(1).is_some_and(|wrong| wrong == *size.to_string()) {
            // SAFETY: there is none.
            let byte = unsafe { block.add(50).read_volatile() };
            println!("read {byte}");
        }
    }
}
