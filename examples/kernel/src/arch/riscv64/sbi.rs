//! Calls of the firmware: the supervisor binary interface.

use core::arch::asm;
use core::fmt;

/// Extensions and their functions.
const CONSOLE: usize = 1;
const TIMER: usize = 0x5449_4d45;
const CPUS: usize = 0x48_534d;

/// The firmware's console.
pub struct Serial;

impl fmt::Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            call(CONSOLE, [byte.into(), 0, 0]);
        }
        Ok(())
    }
}

/// Sets the time of the next interrupt of this CPU's timer.
pub fn set_timer(time: u64) {
    call(TIMER, [time as usize, 0, 0]);
}

/// Starts a CPU at a physical address, with a value for it. Returns whether the firmware does so.
pub fn start_cpu(id: usize, entry: usize, value: usize) -> bool {
    call(CPUS, [id, entry, value]) == 0
}

/// Returns the firmware's error, 0 if there is none.
fn call(extension: usize, arguments: [usize; 3]) -> isize {
    let [first, second, third] = arguments;
    let error;
    // SAFETY: the calls above are those of the interface, whose addresses are the kernel's own; the firmware changes
    // these two registers, and none of the kernel's memory.
    unsafe {
        asm!(
            "ecall",
            inlateout("a0") first => error,
            inlateout("a1") second => _,
            in("a2") third,
            in("a6") 0,
            in("a7") extension,
            options(nostack),
        );
    }
    error
}
