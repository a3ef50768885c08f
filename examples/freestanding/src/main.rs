//! A Linux program without `std` and without a C library, whose collections live in a static heap.
//!
//! `cargo run` in this folder builds it for `x86_64-unknown-none`, which `rustup target add` brings.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::arch::{asm, naked_asm};
use core::panic::PanicInfo;

use nbbs_heap::Heap;

#[global_allocator]
static HEAP: Heap<{ 4 << 20 }> = Heap::new();

/// The entry point of Linux: aligns the stack as calls need it.
///
/// # Safety
/// Only Linux may call it, once.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn _start() -> ! {
    naked_asm!("xor ebp, ebp", "and rsp, -16", "call {main}", "ud2", main = sym main)
}

extern "C" fn main() -> ! {
    let mut squares: BTreeMap<u32, String> = BTreeMap::new();
    for number in 0..1000 {
        squares.insert(number, format!("{number} squared is {}", number * number));
    }
    let largest: Vec<&String> = squares.values().rev().take(3).collect();
    for text in largest {
        print(&format!("{text}\n"));
    }
    let stats = HEAP.stats();
    print(&format!(
        "{} KiB in slots, {} KiB in runs, {} of {} KiB free; no init, no libc\n",
        stats.slots >> 10,
        stats.runs >> 10,
        (stats.free + stats.free_slots) >> 10,
        stats.bytes >> 10
    ));
    exit(0)
}

fn print(text: &str) {
    // SAFETY: `write` reads this many bytes of the text, and changes no memory.
    unsafe { system_call(1, 1, text.as_ptr() as usize, text.len()) };
}

fn exit(status: usize) -> ! {
    loop {
        // SAFETY: `exit_group` does not return.
        unsafe { system_call(231, status, 0, 0) };
    }
}

/// # Safety
/// Those of the Linux call.
unsafe fn system_call(number: usize, first: usize, second: usize, third: usize) -> usize {
    let result;
    // SAFETY: as the caller promises. Linux keeps all registers but these.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") first, in("rsi") second, in("rdx") third,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    print("panic\n");
    exit(101)
}
