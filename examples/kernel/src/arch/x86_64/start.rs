//! Starts the other CPUs.

use core::ptr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use x86_64::instructions::port::PortReadOnly;

use super::{apic, cpu, direct, interrupts, low_frame};
use crate::memory::{Context, Held};

unsafe extern "C" {
    static trampoline: u8;
    static trampoline_end: u8;
}

/// The frames of a stack, as a power of two.
const STACK_ORDER: u32 = 4;
/// CPUs start below 1 MiB.
const REAL_MODE: u64 = 1 << 20;

/// The stack of the CPU that is starting: `boot.s` reads it.
#[unsafe(no_mangle)]
static STARTING_STACK: AtomicU64 = AtomicU64::new(0);
static STARTING_NUMBER: AtomicUsize = AtomicUsize::new(0);
static STARTED: AtomicUsize = AtomicUsize::new(1);

/// Starts all CPUs but this one, by the ids of their local APICs, and gives them numbers from 1 on.
pub fn start_others(local_apics: &[u8]) {
    let code = copy_trampoline();
    let own = apic::id();
    for (number, &target) in (1..).zip(local_apics.iter().filter(|&&id| id != own)) {
        let stack = Held::alloc(Context::Kernel, STACK_ORDER).expect("memory for a stack");
        let top = direct(stack.addresses().end).addr() as u64;
        STARTING_NUMBER.store(number, Ordering::Relaxed);
        // Release: pairs with the Acquire in `started_cpu`, which sees what was set up here.
        STARTING_STACK.store(top, Ordering::Release);
        start(target, code, number);
    }
}

/// Starts a CPU as Intel's manual says: a reset, 10 ms, and the start twice, 200 us apart.
fn start(target: u8, code: u64, number: usize) {
    apic::send_init(target);
    wait_micros(10_000);
    // Acquire: pairs with the Release in `started_cpu`.
    let has_started = || STARTED.load(Ordering::Acquire) > number;
    for _ in 0..2 {
        if !has_started() {
            apic::send_start_up(target, code);
            wait_micros(200);
        }
    }
    while !has_started() {
        core::hint::spin_loop();
    }
}

/// Copies the code with which a CPU starts to where it can start: into a frame below 1 MiB, which the arena gives.
fn copy_trampoline() -> u64 {
    let frame = low_frame(REAL_MODE).expect("a frame below 1 MiB is free");
    let (from, to) = (&raw const trampoline, &raw const trampoline_end);
    // SAFETY: the frame was allocated for this, and is in the direct map; the code is shorter than a frame.
    unsafe { ptr::copy_nonoverlapping(from, direct(frame), to.addr() - from.addr()) };
    frame
}

/// Reads of this port take about a microsecond.
fn wait_micros(micros: u32) {
    for _ in 0..micros {
        // SAFETY: the port of the power-on self test, which means nothing any more.
        let _: u8 = unsafe { PortReadOnly::new(0x80).read() };
    }
}

/// The entry of a started CPU, from `boot.s`, on its stack and with the kernel's tables.
#[unsafe(no_mangle)]
extern "C" fn started_cpu() -> ! {
    // Acquire: pairs with the Release in `start_others`.
    STARTING_STACK.load(Ordering::Acquire);
    cpu::set_number(STARTING_NUMBER.load(Ordering::Relaxed));
    interrupts::set_up();
    // Release: pairs with the Acquire in `start`.
    STARTED.fetch_add(1, Ordering::Release);
    crate::started()
}
