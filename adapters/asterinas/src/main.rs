//! OSTD's tests, run by its test kernel, with one frame allocator or the other: what `cargo osdk test` makes.
#![no_std]
#![no_main]

extern crate osdk_test_kernel;

#[cfg(not(feature = "own"))]
mod frames;

#[cfg(feature = "own")]
use osdk_frame_allocator::FrameAllocator;
use osdk_heap_allocator::{HeapAllocator, type_from_layout};

#[cfg(feature = "own")]
#[ostd::global_frame_allocator]
static FRAMES: FrameAllocator = FrameAllocator;

#[cfg(not(feature = "own"))]
#[ostd::global_frame_allocator]
static FRAMES: frames::Frames = frames::Frames::new();

#[ostd::global_heap_allocator]
static HEAP: HeapAllocator = HeapAllocator;

#[ostd::global_heap_allocator_slot_map]
const fn slots(layout: core::alloc::Layout) -> Option<ostd::mm::heap::SlotInfo> {
    type_from_layout(layout)
}

// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub static KTEST_TEST_WHITELIST: Option<&[&str]> = None;

// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub static KTEST_CRATE_WHITELIST: Option<&[&str]> = Some(&["ostd"]);

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    unsafe extern "Rust" {
        fn __ostd_panic_handler(info: &core::panic::PanicInfo) -> !;
    }
    // SAFETY: OSTD's test kernel has it.
    unsafe { __ostd_panic_handler(info) }
}
