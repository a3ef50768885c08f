//! The machine: console, cycles, wake-ups, and the simulator's controls.

use core::arch::asm;
use core::fmt::{self, Write};
use core::ptr::{read_volatile, write_volatile};

/// The registers of a serial port: its data, and its state.
const DATA: *mut u8 = 0x1000_0000 as *mut u8;
const STATE: *const u8 = 0x1000_0005 as *const u8;
/// A byte has arrived.
const READY: u8 = 1;

/// A word for each hart: interrupts it.
const INTERRUPTS: *mut u32 = 0x0200_0000 as *mut u32;

/// The simulator's control registers: a command, and its argument.
const COMMAND: *mut u64 = 0x0010_2000 as *mut u64;
const ARGUMENT: *mut u64 = 0x0010_2008 as *mut u64;

/// The serial port.
pub struct Console;

impl Console {
    /// Waits for the next byte that is sent.
    pub fn get(&mut self) -> u8 {
        // SAFETY: the addresses are the port's, which only hart 0 uses.
        unsafe {
            while read_volatile(STATE) & READY == 0 {}
            read_volatile(DATA)
        }
    }
}

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: the address is the port's.
        text.bytes().for_each(|byte| unsafe { write_volatile(DATA, byte) });
        Ok(())
    }
}

/// Writes a line to the console.
macro_rules! say {
    ($($text:tt)*) => {{
        // The console takes everything.
        let _ = core::fmt::Write::write_fmt(&mut $crate::machine::Console, format_args!("{}\n", format_args!($($text)*)));
    }};
}
pub(crate) use say;

/// Returns the cycles since the machine was started.
#[inline]
pub fn cycles() -> u64 {
    let cycles;
    // SAFETY: it reads a counter.
    unsafe { asm!("csrr {}, mcycle", out(reg) cycles, options(nomem, nostack)) };
    cycles
}

/// Returns the number of this hart.
#[inline]
pub fn hart() -> usize {
    let hart;
    // SAFETY: it reads a constant.
    unsafe { asm!("csrr {}, mhartid", out(reg) hart, options(nomem, nostack, pure)) };
    hart
}

/// Sleeps until another hart wakes this one: a sleeping hart is not simulated.
pub fn sleep() {
    // SAFETY: the interrupt ends `wfi` and is not taken, as interrupts are off. The word is this hart's.
    unsafe {
        asm!("csrwi mie, 8", "wfi");
        write_volatile(INTERRUPTS.add(hart()), 0);
    }
}

/// Wakes another hart, which then sees what happened before on this one.
pub fn wake(hart: usize) {
    // SAFETY: the fence orders memory before the device; the word is that hart's.
    unsafe {
        asm!("fence iorw, iorw");
        write_volatile(INTERRUPTS.add(hart), 1);
    }
}

/// Stops this hart for good.
pub fn halt() -> ! {
    loop {
        // SAFETY: it only waits.
        unsafe { asm!("csrwi mie, 0", "wfi") };
    }
}

/// Makes the simulator count from here on.
pub fn reset_statistics() {
    control(1, 0);
}

/// Makes the simulator note what it has counted.
pub fn note_statistics() {
    control(2, 0);
}

/// Ends the simulation.
pub fn exit(status: u64) {
    control(3, status);
}

fn control(command: u64, argument: u64) {
    // SAFETY: the addresses are the simulator's; the fences keep everything else on its side of the command.
    unsafe {
        asm!("fence iorw, iorw");
        write_volatile(ARGUMENT, argument);
        write_volatile(COMMAND, command);
        asm!("fence iorw, iorw");
    }
}
