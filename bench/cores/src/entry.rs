//! The entry of harts: all begin at the same place, with their number, the number of harts, and no stack.

use core::arch::naked_asm;
use core::cell::UnsafeCell;

use crate::main;

/// The largest number of harts.
pub const HARTS: usize = 64;

/// The size of a stack in bytes, as a power of two.
const STACK: usize = 16;

#[repr(C, align(4096))]
struct Stacks(UnsafeCell<[u8; HARTS << STACK]>);

// SAFETY: each hart only reaches its own part, as its stack.
unsafe impl Sync for Stacks {}

static STACKS: Stacks = Stacks(UnsafeCell::new([0; HARTS << STACK]));

/// The first instruction: gives each hart its stack. `a0` and `a1` are the arguments of [`main`] already. All of memory
/// is zero.
///
/// # Safety
/// Only the machine may call this, once on each hart.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.start")]
unsafe extern "C" fn start() -> ! {
    naked_asm!(
        "la sp, {stacks}",
        "addi t0, a0, 1",
        "slli t0, t0, {size}",
        "add sp, sp, t0",
        "j {main}",
        stacks = sym STACKS,
        size = const STACK,
        main = sym main,
    )
}
