//! Finds a CPU's number without a lock, and without reading memory that others write.

use core::arch::asm;

use x86_64::VirtAddr;
use x86_64::registers::model_specific::GsBase;

use crate::cpus::MAX;

static NUMBERS: [usize; MAX] = {
    let mut numbers = [0; MAX];
    let mut number = 0;
    while number < MAX {
        numbers[number] = number;
        number += 1;
    }
    numbers
};

/// Gives this CPU its number: `gs` points to it from now on.
pub fn set_number(number: usize) {
    GsBase::write(VirtAddr::from_ptr(&NUMBERS[number]));
}

/// Returns this CPU's number.
pub fn cpu_number() -> usize {
    let number;
    // SAFETY: `gs` points to the number since `set_number`, the first thing that a CPU does; nobody writes there.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) number, options(pure, readonly, nostack, preserves_flags));
    }
    number
}
