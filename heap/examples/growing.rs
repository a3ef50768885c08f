//! A heap that grows: a global allocator that adds memory to its heap when that has none left, each time as much as it
//! has already. Here it comes from the operating system; in a kernel it would be frames, on `wasm32` `memory.grow`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use nbbs_heap::Heap;

/// The bytes that the program begins with.
const FIRST: usize = 1 << 20;

static HEAP: Heap<FIRST> = Heap::new();
/// The bytes that the heap was given.
static GIVEN: AtomicUsize = AtomicUsize::new(FIRST);
/// Whether a thread is adding memory.
static IS_GROWING: AtomicBool = AtomicBool::new(false);

#[global_allocator]
static GROWING: Growing = Growing;

/// The heap, and what to do when it has no memory.
struct Growing;

// SAFETY: the blocks are the heap's, and `resize` and `free` get what the caller promises.
unsafe impl GlobalAlloc for Growing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        loop {
            let given = GIVEN.load(Ordering::Relaxed);
            if let Some(block) = HEAP.alloc(layout) {
                return block.as_ptr();
            }
            // One thread adds memory at a time, as a heap has eight regions at most; the others try again.
            if IS_GROWING.swap(true, Ordering::Acquire) {
                thread::yield_now();
                continue;
            }
            let is_more = given != GIVEN.load(Ordering::Relaxed) || grow(given, layout);
            IS_GROWING.store(false, Ordering::Release);
            if !is_more {
                return ptr::null_mut();
            }
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if let Some(at) = NonNull::new(at) {
            // SAFETY: as the caller promises.
            unsafe { HEAP.free(at, layout) };
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(block) = NonNull::new(at) else { return ptr::null_mut() };
        // SAFETY: as the caller promises.
        if let Some(resized) = unsafe { HEAP.resize(block, layout, size) } {
            return resized.as_ptr();
        }
        // SAFETY: the caller promises that there is such a layout; the blocks are two, and have so many bytes.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(at, layout.size().min(size));
                self.dealloc(at, layout);
            }
            moved
        }
    }
}

/// Adds as much memory as the heap was given, or twice what `layout` takes. Returns whether there was any.
fn grow(given: usize, layout: Layout) -> bool {
    let bytes = given.max(layout.size().saturating_add(layout.align()).saturating_mul(2));
    let Ok(region) = Layout::from_size_align(bytes, 4096) else { return false };
    // SAFETY: it is not empty.
    let Some(start) = NonNull::new(unsafe { System.alloc(region) }) else { return false };
    // SAFETY: the memory is the heap's from now on.
    if unsafe { HEAP.add(start, bytes) }.is_err() {
        // SAFETY: the heap has not taken it: it has as many regions as it can have.
        unsafe { System.dealloc(start.as_ptr(), region) };
        return false;
    }
    GIVEN.fetch_add(bytes, Ordering::Relaxed);
    true
}

fn main() {
    for mib in [1, 10, 40, 80] {
        let blocks: Vec<Vec<u8>> = thread::scope(|scope| {
            let fill = || (0..mib << 9).map(|n| vec![n as u8; 1024]).collect::<Vec<_>>();
            let threads = [scope.spawn(fill), scope.spawn(fill)];
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        let live: usize = blocks.iter().map(Vec::len).sum();
        let given = GIVEN.load(Ordering::Relaxed);
        println!("{:>3} MiB in use, {:>3} MiB given to the heap", live >> 20, given >> 20);
    }
    HEAP.trim();
    println!("{:>3} MiB free in the end", HEAP.stats().free >> 20);
}
