//! Interrupts of two priorities, and exceptions.
//!
//! There is no interrupt that cannot be masked. The timer's interrupt takes its place: it is masked neither in the
//! handler of the software interrupt, which acts as the common interrupt, nor where software interrupts are off. The
//! timer's handler leaves a software interrupt behind, which comes when the handler has returned.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::sbi;
use crate::load;

/// How often the timer interrupts each CPU.
pub const NMI_HERTZ: u32 = 500;

const INTERRUPT: usize = 1 << 63;
const SOFTWARE: usize = INTERRUPT | 1;
const TIMER: usize = INTERRUPT | 5;
/// Their bits in `sie` and `sip`, and the one of all interrupts in `sstatus`.
const SOFTWARE_BIT: usize = 1 << 1;
const TIMER_BIT: usize = 1 << 5;
const ALL: usize = 1 << 1;

/// Ticks of the clock from one interrupt of the timer to the next; 0: there are none yet. Relaxed: a number.
static PERIOD: AtomicU64 = AtomicU64::new(0);
/// When the clock was started. Relaxed: as above.
static BEGIN: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn trap_entry();
}

/// Has this CPU's traps come to the entry.
pub fn set_up() {
    // SAFETY: the entry saves what the handler changes.
    unsafe { asm!("csrw stvec, {}", in(reg) trap_entry as *const () as usize) };
}

/// From now on, the timers of CPUs that take interrupts tick.
pub fn start_clock(clock_hertz: u64) {
    BEGIN.store(now(), Relaxed);
    PERIOD.store(clock_hertz / u64::from(NMI_HERTZ), Relaxed);
}

/// Takes both interrupts from now on.
pub fn enable() {
    next_tick();
    // SAFETY: their handlers are set up.
    unsafe {
        asm!("csrs sie, {}", in(reg) SOFTWARE_BIT | TIMER_BIT);
        asm!("csrs sstatus, {}", in(reg) ALL);
    }
}

/// Takes no software interrupts from now on.
pub fn disable() {
    // SAFETY: less comes than before.
    unsafe { asm!("csrc sie, {}", in(reg) SOFTWARE_BIT) };
}

/// Takes no interrupts at all on this CPU from now on.
pub fn disable_all() {
    // SAFETY: less comes than before.
    unsafe { asm!("csrc sie, {}", in(reg) SOFTWARE_BIT | TIMER_BIT) };
}

/// Periods since the clock was started.
pub fn ticks() -> u64 {
    (now() - BEGIN.load(Relaxed)) / PERIOD.load(Relaxed)
}

fn now() -> u64 {
    let now;
    // SAFETY: reads the clock.
    unsafe { asm!("rdtime {}", out(reg) now, options(nomem, nostack)) };
    now
}

fn next_tick() {
    sbi::set_timer(now() + PERIOD.load(Relaxed));
}

/// `trap_entry` comes here, with all interrupts off.
#[unsafe(no_mangle)]
extern "C" fn trap(cause: usize, at: usize, value: usize) {
    match cause {
        TIMER => timer(),
        SOFTWARE => software(),
        _ => panic!("exception {cause} at {at:#x}, {value:#x}"),
    }
}

fn timer() {
    next_tick();
    // SAFETY: the interrupt comes when this handler has returned, if it is not off.
    unsafe { asm!("csrs sip, {}", in(reg) SOFTWARE_BIT) };
    load::nmi();
}

fn software() {
    // SAFETY: the timer's handler may come in between: the entry has saved what it changes.
    unsafe {
        asm!("csrc sip, {}", in(reg) SOFTWARE_BIT);
        asm!("csrc sie, {}", in(reg) SOFTWARE_BIT);
        asm!("csrs sstatus, {}", in(reg) ALL);
    }
    load::timer();
    // SAFETY: as it was when the interrupt came.
    unsafe {
        asm!("csrc sstatus, {}", in(reg) ALL);
        asm!("csrs sie, {}", in(reg) SOFTWARE_BIT);
    }
}
