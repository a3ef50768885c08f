//! A kernel that boots, allocates page frames on all CPUs and in their interrupt handlers, and judges what it gets.
//!
//! ```text
//! arch          what the machine is, and how it is started
//! memory        the arena of all frames, and the owner map
//! cpus          what each CPU counts        watchdog    looks whether operations end
//! load          what the CPUs do with the memory
//! report        what is said on the serial port
//! collections   the heap                    random      numbers
//! ```
#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod collections;
mod cpus;
mod load;
mod memory;
mod random;
mod report;
mod watchdog;

use core::ops::Range;
use core::panic::PanicInfo;

use collections::List;
use cpus::Cpu;
use load::{LOAD, Plug};
use report::Outcome;

/// The load runs for this many ticks, and until a number of interrupts have come in the middle of an operation, and a
/// number of ranges were taken offline.
const TICKS: u64 = 3 * arch::NMI_HERTZ as u64;
const INTERRUPTS: u64 = 2000;
const ROUNDS: u64 = 20;

/// An entry of the memory map.
#[derive(Clone)]
pub struct Stretch {
    /// Its physical addresses.
    addresses: Range<u64>,
    /// Whether it is memory that is free for use, except where entries that are not usable overlap it.
    is_usable: bool,
}

/// What the machine says at boot.
pub struct Boot {
    /// The memory map.
    map: List<Stretch>,
    /// The addresses of the kernel.
    image: Range<u64>,
    /// The number of CPUs.
    cpus: usize,
}

/// The main function of the boot CPU.
fn kernel(boot: Boot) -> ! {
    report::machine(&boot);
    memory::set_up(&boot);
    arch::set_up(&boot);
    report::arena();

    let mut plug = Plug::new();
    arch::start_clock();
    LOAD.begin();
    LOAD.run(|| {
        plug.step(arch::ticks());
        if is_enough(&boot, &plug) {
            report::during();
            LOAD.stop();
        }
    });
    plug.end();
    while !LOAD.have_ended(boot.cpus) {
        core::hint::spin_loop();
    }
    arch::stop_clock();
    report::after(&boot, &plug)
}

/// Returns whether the load has run for long enough, and enough has happened in it.
fn is_enough(boot: &Boot, plug: &Plug) -> bool {
    let inside: u64 = cpus::first(boot.cpus).iter().map(Cpu::inside).sum();
    arch::ticks() >= TICKS && plug.rounds >= ROUNDS && inside >= INTERRUPTS
}

/// The main function of the other CPUs.
fn started() -> ! {
    LOAD.run(|| ());
    arch::halt()
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    report::end(Outcome::Panic, format_args!("{info}"))
}
