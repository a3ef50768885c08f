//! QEMU's `virt` machine: RISC-V CPUs of 64 bits, started by the firmware (SBI), a device tree.
//!
//! ```text
//! boot.s       stacks, the first tables, the entry of interrupts     link.ld   where the kernel lies
//! tree         the device tree: memory, CPUs       sbi     calls of the firmware: text, timers, starting CPUs
//! interrupts   handlers of two priorities          paging  page tables built of frames
//! ```

mod interrupts;
mod paging;
mod sbi;
mod tree;

use core::arch::{asm, global_asm};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use spin::Once;

use crate::Boot;
use crate::memory::{Context, Held};
pub use interrupts::{NMI_HERTZ, ticks};
pub use paging::{AddressSpace, MAP_STEP, MAPPED_AT_BOOT, map_memory};
pub use sbi::Serial;
use tree::Machine;

global_asm!(include_str!("boot.s"));

/// Where physical address 0 is in the direct map.
const DIRECT_MAP: usize = 0xffff_ffc0_0000_0000;
/// Where QEMU's test device listens, by which a run ends.
const EXIT: u64 = 0x10_0000;
const FAILED: u32 = 0x3333;
/// Frames of a stack: 2 to this power.
const STACK_ORDER: u32 = 4;

/// So often the firmware is asked to start a CPU.
const TRIES: u32 = 1_000_000;

static MACHINE: Once<Machine> = Once::new();
/// The id of the boot CPU.
static BOOT_ID: AtomicUsize = AtomicUsize::new(0);
/// How many CPUs have started: the next one's number.
static STARTED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    static image_start: u8;
    static image_end: u8;
    fn started();
}

/// The CPU that the firmware starts comes here, with the tables of `boot.s`.
#[unsafe(no_mangle)]
extern "C" fn boot_cpu(id: usize, tree: usize) -> ! {
    set_up_cpu();
    // Relaxed: the boot CPU reads it itself.
    BOOT_ID.store(id, Ordering::Relaxed);
    // SAFETY: it is what the firmware passed, and nothing has been written anywhere but into the image.
    let machine = MACHINE.call_once(|| unsafe { tree::read(tree) });
    let image = (&raw const image_start).addr() as u64..(&raw const image_end).addr() as u64;
    crate::kernel(Boot { map: machine.map.clone(), image, cpus: machine.cpus.len() })
}

/// A CPU that was started comes here.
#[unsafe(no_mangle)]
extern "C" fn started_cpu() -> ! {
    set_up_cpu();
    crate::started()
}

/// Gives this CPU its number, which stays in `tp`, and its handlers.
fn set_up_cpu() {
    // The order of the CPUs is that in which they start. AcqRel: pairs with itself and the Acquire in `set_up`.
    let number = STARTED.fetch_add(1, Ordering::AcqRel);
    // SAFETY: nothing else uses `tp` in a kernel without thread-local variables.
    unsafe { asm!("mv tp, {}", in(reg) number) };
    interrupts::set_up();
}

/// This CPU's number.
pub fn cpu_number() -> usize {
    let number;
    // SAFETY: reads a register.
    unsafe { asm!("mv {}, tp", out(reg) number, options(pure, nomem, nostack, preserves_flags)) };
    number
}

fn machine() -> &'static Machine {
    MACHINE.get().expect("read at boot")
}

/// After memory was set up: starts all other CPUs, one after the other.
pub fn set_up(_boot: &Boot) {
    let own = BOOT_ID.load(Ordering::Relaxed);
    for (number, &id) in (1..).zip(machine().cpus.iter().filter(|&&id| id != own)) {
        let stack = Held::alloc(Context::Kernel, STACK_ORDER).expect("memory for a stack");
        let entry = started as *const () as usize;
        // The firmware may itself be starting the CPU still, and refuses meanwhile.
        let is_asked =
            (0..TRIES).any(|_| sbi::start_cpu(id, entry, stack.addresses().end as usize));
        assert!(is_asked, "the firmware cannot start CPU {id}");
        // Acquire: pairs with the AcqRel in `set_up_cpu`.
        while STARTED.load(Ordering::Acquire) <= number {
            core::hint::spin_loop();
        }
    }
}

/// The timers of all CPUs tick from now on.
pub fn start_clock() {
    interrupts::start_clock(machine().clock_hertz);
}

/// And from now on this CPU's does not; the others' handlers have ended.
pub fn stop_clock() {
    interrupts::disable_all();
}

/// Interrupts come to this CPU from now on.
pub fn enable_interrupts() {
    interrupts::enable();
}

/// And from now on those of the higher priority only.
pub fn disable_interrupts() {
    interrupts::disable();
}

/// Waits for ever.
pub fn halt() -> ! {
    interrupts::disable_all();
    loop {
        // SAFETY: waits.
        unsafe { asm!("wfi") };
    }
}

/// Where a physical address is in the direct map.
pub fn direct(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(DIRECT_MAP + address as usize)
}

/// Stops the machine with a status: QEMU ends with `status * 2 + 1`.
pub fn exit(status: u32) -> ! {
    // SAFETY: nothing but QEMU's device is at this address.
    unsafe { direct(EXIT).cast::<u32>().write_volatile((status * 2 + 1) << 16 | FAILED) };
    halt()
}
