//! A PC: x86-64 CPUs, local APICs, an IO-APIC, started by the PVH protocol.
//!
//! ```text
//! boot.s       from the boot loader's 32 bits, and a started CPU's 16, to 64     link.ld   where the kernel lies
//! pvh          the boot loader's memory map        acpi    which CPUs there are
//! paging       page tables built of frames         start   starting the other CPUs
//! interrupts   handlers and their entries          cpu     a CPU's number
//! apic         local APICs: timer, interrupts between CPUs
//! clock        a timer that cannot be masked       serial  text
//! ```

mod acpi;
mod apic;
mod clock;
mod cpu;
mod interrupts;
mod paging;
mod pvh;
mod serial;
mod start;

use core::arch::global_asm;
use core::ops::Range;
use core::ptr;

use nbbs::Request;
use nbbs_adapters::FRAME_SIZE;
use spin::Once;
use x86_64::instructions::port::PortWriteOnly;
use x86_64::instructions::{hlt, interrupts as flag};

use crate::Boot;
use crate::memory::{Context, Held, Holder, memory};
use acpi::Processors;
use clock::Clock;
pub use clock::{NMI_HERTZ, ticks};
pub use cpu::cpu_number;
pub use paging::{AddressSpace, MAP_STEP, MAPPED_AT_BOOT, map_memory};
pub use serial::Serial;

global_asm!(include_str!("boot.s"), options(att_syntax));

/// Where physical address 0 is in the direct map.
const DIRECT_MAP: usize = 0xffff_8000_0000_0000;

/// Where QEMU's `isa-debug-exit` listens.
const EXIT_PORT: u16 = 0xf4;

static PROCESSORS: Once<Processors> = Once::new();

unsafe extern "C" {
    static image_start: u8;
    static image_end: u8;
}

/// The entry of the CPU that the boot loader starts, with the tables of `boot.s`.
#[unsafe(no_mangle)]
extern "C" fn boot_cpu(start_info: u32) -> ! {
    cpu::set_number(0);
    // SAFETY: it is what the loader passed, and nothing has been written anywhere but into the image.
    let (map, root_pointer) = unsafe { pvh::read(start_info.into()) };
    // SAFETY: as above; ACPI's tables lie below 4 GiB, which `boot.s` has mapped.
    let processors = PROCESSORS.call_once(|| unsafe { acpi::processors(root_pointer) });
    crate::kernel(Boot { map, image: image(), cpus: processors.local_apics.len() })
}

fn processors() -> &'static Processors {
    PROCESSORS.get().expect("read at boot")
}

fn clock() -> Clock {
    Clock { io_apic: processors().io_apic, pin: processors().timer_pin }
}

/// After memory was set up, builds the kernel's tables, and starts all other CPUs, which enter `started`.
pub fn set_up(boot: &Boot) {
    let usable = boot.map.iter().filter(|stretch| stretch.is_usable);
    let kept_back = memory().kept_back();
    let kept_back = kept_back.start * FRAME_SIZE..kept_back.end * FRAME_SIZE;
    let at_boot = usable.flat_map(|stretch| {
        let Range { start, end } = stretch.addresses;
        [start..end.min(kept_back.start), start.max(kept_back.end)..end]
    });
    paging::set_up(&boot.image, at_boot);
    interrupts::set_up();
    start::start_others(&processors().local_apics);
}

/// Starts the interrupts that cannot be masked, on all CPUs.
pub fn start_clock() {
    clock().start();
}

/// Stops the interrupts that cannot be masked.
pub fn stop_clock() {
    clock().stop();
}

/// Makes the timer interrupt this CPU from now on.
pub fn enable_interrupts() {
    interrupts::start_timer();
    flag::enable();
}

/// Stops the timer's interrupts on this CPU.
pub fn disable_interrupts() {
    flag::disable();
    apic::stop_timer();
}

/// Waits for ever.
pub fn halt() -> ! {
    loop {
        hlt();
    }
}

/// Returns the kernel's own physical addresses.
fn image() -> Range<u64> {
    (&raw const image_start).addr() as u64..(&raw const image_end).addr() as u64
}

/// Allocates a frame below `limit` for the kernel, for ever. Returns its address.
fn low_frame(limit: u64) -> Option<u64> {
    let buddy = memory().buddy();
    let limit = (limit / FRAME_SIZE).min(buddy.units());
    let request = Request::units(1).within(0..limit).top_down();
    let frame = buddy.on(cpu_number()).request(request).ok()?;
    Held::of(frame, 0, Holder::here(Context::Kernel)).note_taken();
    Some(frame * FRAME_SIZE)
}

/// Returns where a physical address is in the direct map.
pub fn direct(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(DIRECT_MAP + address as usize)
}

/// Stops the machine with a status: QEMU ends with `status * 2 + 1`.
pub fn exit(status: u32) -> ! {
    // SAFETY: nothing but QEMU's device is at this port.
    unsafe { PortWriteOnly::new(EXIT_PORT).write(status) };
    halt()
}
