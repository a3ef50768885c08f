//! The interval timer. The IO-APIC turns its interrupts into ones that cannot be masked, for all CPUs: they also come
//! where interrupts are off, and where a CPU waits for ever.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use x86_64::instructions::port::PortWriteOnly;

use super::{cpu, direct};

/// The frequency of these interrupts, on every CPU.
pub const NMI_HERTZ: u32 = 200;

const INPUT_HERTZ: u32 = 1_193_182;
const COMMAND: u16 = 0x43;
const CHANNEL_0: u16 = 0x40;
/// Channel 0, both bytes, again and again.
const PERIODIC: u8 = 0x34;
/// The interrupt masks of the old controllers, which are not used.
const OLD_MASKS: [u16; 2] = [0x21, 0xa1];

/// Registers of the IO-APIC: one that selects another register, and one that accesses it.
const SELECT: u64 = 0;
const WINDOW: u64 = 0x10;
const FIRST_PIN: u32 = 0x10;
const AS_NMI: u32 = 0b100 << 8;
const MASKED: u32 = 1 << 16;
const ALL_CPUS: u32 = 0xff << 24;

/// The page in which the IO-APICs are.
pub const IO_APICS: u64 = 0xfec0_0000;

/// Interrupts so far. Relaxed: a clock.
static TICKS: AtomicU64 = AtomicU64::new(0);

/// An IO-APIC's pin for the interval timer.
#[derive(Clone, Copy)]
pub struct Clock {
    pub io_apic: u64,
    pub pin: u32,
}

impl Clock {
    /// Starts the interrupts on every CPU.
    pub fn start(self) {
        let divisor = INPUT_HERTZ / NMI_HERTZ;
        for mask in OLD_MASKS {
            out(mask, 0xff);
        }
        out(COMMAND, PERIODIC);
        out(CHANNEL_0, divisor as u8);
        out(CHANNEL_0, (divisor >> 8) as u8);
        self.write(FIRST_PIN + 2 * self.pin + 1, ALL_CPUS);
        self.write(FIRST_PIN + 2 * self.pin, AS_NMI);
    }

    /// Stops the interrupts on every CPU.
    pub fn stop(self) {
        self.write(FIRST_PIN + 2 * self.pin, AS_NMI | MASKED);
    }

    fn write(self, register: u32, value: u32) {
        for (offset, value) in [(SELECT, register), (WINDOW, value)] {
            let at = NonNull::new(direct(self.io_apic + offset).cast()).expect("not at 0");
            // SAFETY: the IO-APIC is there, as ACPI says, mapped as a device; one CPU writes to it.
            unsafe { at.write_volatile(value) };
        }
    }
}

fn out(port: u16, value: u8) {
    // SAFETY: the ports of the interval timer and the old interrupt controllers; no memory changes by them.
    unsafe { PortWriteOnly::new(port).write(value) };
}

/// Counts an interrupt in the handler, on the boot CPU.
pub fn tick() {
    if cpu::cpu_number() == 0 {
        TICKS.fetch_add(1, Relaxed);
    }
}

/// Returns the ticks since the clock was started.
pub fn ticks() -> u64 {
    TICKS.load(Relaxed)
}
