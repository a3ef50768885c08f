//! Firmware with collections: a heap of 16 KiB for a machine without an operating system and without 64-bit atomics.
//!
//! `cargo build --release` in this folder links it for `thumbv7em-none-eabihf`, which `rustup target add` brings.
//! It also links for `thumbv6m-none-eabi`, which has no atomics that swap.
#![no_std]
#![no_main]

extern crate alloc;

#[cfg(not(any(feature = "without", feature = "pairs")))]
use alloc::{collections::VecDeque, vec::Vec};
#[cfg(feature = "pairs")]
use core::alloc::Layout;
use core::hint::black_box;
use core::panic::PanicInfo;

use cortex_m_rt::{entry, exception};
use nbbs_heap::Small;

#[global_allocator]
static HEAP: Small<{ 16 << 10 }> = Small::new();

/// Receives samples, and keeps the last hundred packets of them.
#[cfg(not(any(feature = "without", feature = "pairs")))]
#[entry]
fn main() -> ! {
    let mut packets: VecDeque<Vec<u16>> = VecDeque::new();
    loop {
        packets.push_back((0..black_box(40)).collect());
        if packets.len() > 100 {
            packets.pop_front();
        }
    }
}

/// Allocates blocks of any size, and frees them, or first makes them larger or smaller.
#[cfg(feature = "pairs")]
#[entry]
fn main() -> ! {
    loop {
        let layout = Layout::from_size_align(black_box(40), 8).unwrap_or(Layout::new::<u64>());
        let Some(mut block) = HEAP.alloc(layout) else { continue };
        if cfg!(feature = "resize") {
            let size = black_box(80);
            // SAFETY: the block is ours, with this layout.
            if let Some(moved) = unsafe { HEAP.resize(block, layout, size) } {
                block = moved;
                let layout = Layout::from_size_align(size, 8).unwrap_or(layout);
                // SAFETY: as above.
                unsafe { HEAP.free(block, layout) };
                continue;
            }
        }
        // SAFETY: as above.
        unsafe { HEAP.free(block, layout) };
    }
}

/// The rest of the program, to find out how much code belongs to the heap and the collections.
#[cfg(feature = "without")]
#[entry]
fn main() -> ! {
    loop {
        black_box(0);
    }
}

/// The handler of the timer, which may allocate, too, whatever it has interrupted. Here it is linked only: `main` does
/// not start the timer, which takes a crate for the machine at hand.
#[exception]
fn SysTick() {
    #[cfg(not(any(feature = "without", feature = "pairs")))]
    black_box(Vec::<u8>::with_capacity(black_box(64)));
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}
