//! A kernel that boots, allocates page frames on all CPUs and in their interrupt handlers, and judges what it was
//! given.
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

/// The load runs for so many ticks, and until so many interrupts have come in the middle of an operation, and so many
/// ranges were taken offline.
const TICKS: u64 = 3 * arch::NMI_HERTZ as u64;
const INTERRUPTS: u64 = 2000;
const ROUNDS: u64 = 20;

/// An entry of the memory map.
#[derive(Clone)]
pub struct Stretch {
    /// Its physical addresses.
    addresses: Range<u64>,
    /// Whether it is memory that is free for use, save for what entries that are not say.
    is_usable: bool,
}

/// What the machine says at boot.
pub struct Boot {
    /// The memory map.
    map: List<Stretch>,
    /// Where the kernel lies.
    image: Range<u64>,
    /// How many CPUs there are.
    cpus: usize,
}

/// The boot CPU comes here.
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

/// Whether the load has run for long enough, and enough has happened in it.
fn is_enough(boot: &Boot, plug: &Plug) -> bool {
    let inside: u64 = cpus::first(boot.cpus).iter().map(Cpu::inside).sum();
    arch::ticks() >= TICKS && plug.rounds >= ROUNDS && inside >= INTERRUPTS
}

/// The other CPUs come here.
fn started() -> ! {
    LOAD.run(|| ());
    arch::halt()
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    report::end(Outcome::Panic, format_args!("{info}"))
}
