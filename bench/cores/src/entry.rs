//! Where harts begin: all of them at the same place, with their number, how many there are, and no stack.

use core::arch::naked_asm;
use core::cell::UnsafeCell;

use crate::main;

/// The most harts.
pub const HARTS: usize = 64;

/// Bytes of a stack, as a power of two.
const STACK: usize = 16;

#[repr(C, align(4096))]
struct Stacks(UnsafeCell<[u8; HARTS << STACK]>);

// SAFETY: each hart reaches its own part only, as its stack.
unsafe impl Sync for Stacks {}

static STACKS: Stacks = Stacks(UnsafeCell::new([0; HARTS << STACK]));

/// The first instruction: gives each hart its stack. `a0` and `a1` are the arguments of [`main`] already. All of memory is
/// zero.
///
/// # Safety
/// Only the machine may come here, once on each hart.
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
