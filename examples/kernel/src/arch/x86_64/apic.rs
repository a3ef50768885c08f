//! The local APICs: a timer, and interrupts between CPUs.

use core::ptr::NonNull;

use super::direct;

/// The address at which each CPU sees its own, in a page that is mapped as a device.
pub const LOCAL_APICS: u64 = 0xfee0_0000;

/// Registers, by their offset.
const ID: usize = 0x20;
const END_OF_INTERRUPT: usize = 0xb0;
const SPURIOUS: usize = 0xf0;
const COMMAND: usize = 0x300;
const COMMAND_TARGET: usize = 0x310;
const TIMER: usize = 0x320;
const TIMER_START: usize = 0x380;
const TIMER_DIVIDER: usize = 0x3e0;

const ENABLE: u32 = 1 << 8;
const MASKED: u32 = 1 << 16;
const PERIODIC: u32 = 1 << 17;
const DIVIDE_BY_16: u32 = 3;
const INIT: u32 = 0b101 << 8 | 1 << 14;
const START_UP: u32 = 0b110 << 8 | 1 << 14;
const IN_DELIVERY: u32 = 1 << 12;

fn register(offset: usize) -> NonNull<u32> {
    NonNull::new(direct(LOCAL_APICS + offset as u64).cast()).expect("the direct map is not at 0")
}

fn read(offset: usize) -> u32 {
    // SAFETY: a register of this CPU's local APIC, mapped since boot; reading these changes nothing.
    unsafe { register(offset).read_volatile() }
}

fn write(offset: usize, value: u32) {
    // SAFETY: a register of this CPU's local APIC. No value written here makes it touch memory, and the code that
    // interrupts and started CPUs reach is there.
    unsafe { register(offset).write_volatile(value) };
}

/// Returns the id of this CPU's local APIC.
pub fn id() -> u8 {
    (read(ID) >> 24) as u8
}

/// Turns this CPU's local APIC on. Interrupts that have gone when the CPU asks come at `spurious`.
pub fn enable(spurious: u8) {
    write(SPURIOUS, ENABLE | u32::from(spurious));
}

/// Makes this CPU's timer interrupt at `vector`, each time after `count` times 16 cycles of the bus.
pub fn start_timer(vector: u8, count: u32) {
    write(TIMER_DIVIDER, DIVIDE_BY_16);
    write(TIMER, PERIODIC | u32::from(vector));
    write(TIMER_START, count);
}

/// Stops this CPU's timer.
pub fn stop_timer() {
    write(TIMER, MASKED);
}

/// Signals that an interrupt's handler has ended.
pub fn end_of_interrupt() {
    write(END_OF_INTERRUPT, 0);
}

/// Resets a CPU.
pub fn send_init(target: u8) {
    send(target, INIT);
}

/// Makes a CPU that was reset begin at the frame of this address, below 1 MiB.
pub fn send_start_up(target: u8, address: u64) {
    send(target, START_UP | (address >> 12) as u32);
}

fn send(target: u8, command: u32) {
    write(COMMAND_TARGET, u32::from(target) << 24);
    write(COMMAND, command);
    while read(COMMAND) & IN_DELIVERY != 0 {
        core::hint::spin_loop();
    }
}
