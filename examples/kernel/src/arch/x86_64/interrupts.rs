//! Interrupts and exceptions.
//!
//! A handler runs on the stack of what it has interrupted, and may itself be interrupted by one that cannot be masked.

use core::arch::naked_asm;

use spin::Once;
use x86_64::VirtAddr;
use x86_64::registers::control::Cr2;
use x86_64::structures::idt::InterruptDescriptorTable;

use super::{apic, clock};
use crate::load;

const TIMER: u8 = 0x40;
pub const SPURIOUS: u8 = 0xff;
/// Ticks of the local APIC's timer, about a millisecond on QEMU, whose bus has 1 GHz: a kernel for real machines would
/// measure it against the interval timer.
const TIMER_COUNT: u32 = 62_500;

static TABLE: Once<InterruptDescriptorTable> = Once::new();

/// Makes this CPU use the table.
pub fn set_up() {
    TABLE.call_once(table).load();
    apic::enable(SPURIOUS);
}

/// Makes this CPU's timer interrupt it from now on.
pub fn start_timer() {
    apic::start_timer(TIMER, TIMER_COUNT);
}

fn table() -> InterruptDescriptorTable {
    let mut table = InterruptDescriptorTable::new();
    // SAFETY: each entry saves what its handler changes, and returns as interrupts do, or never.
    unsafe {
        table.divide_error.set_handler_addr(address(fault::<0>));
        table.invalid_opcode.set_handler_addr(address(fault::<6>));
        table.double_fault.set_handler_addr(address(fault::<8>));
        table.general_protection_fault.set_handler_addr(address(fault::<13>));
        table.page_fault.set_handler_addr(address(fault::<14>));
        table.non_maskable_interrupt.set_handler_addr(address(nmi_entry));
        table[TIMER].set_handler_addr(address(timer_entry));
        table[SPURIOUS].set_handler_addr(address(spurious_entry));
    }
    table
}

fn address(entry: extern "C" fn()) -> VirtAddr {
    VirtAddr::new(entry as usize as u64)
}

/// An entry that saves what a function may change, calls the handler, and returns. The kernel is built without vector
/// registers and red zone, and the CPU has aligned the stack: with nine registers and its five words it is so again.
macro_rules! entry {
    ($name:ident, $handler:path) => {
        #[unsafe(naked)]
        extern "C" fn $name() {
            naked_asm!(
                "push rax", "push rcx", "push rdx", "push rsi", "push rdi",
                "push r8", "push r9", "push r10", "push r11",
                "cld",
                "call {handler}",
                "pop r11", "pop r10", "pop r9", "pop r8",
                "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rax",
                "iretq",
                handler = sym $handler,
            )
        }
    };
}

entry!(timer_entry, timer);
entry!(nmi_entry, nmi);
entry!(spurious_entry, spurious);

extern "C" fn timer() {
    load::timer();
    apic::end_of_interrupt();
}

extern "C" fn nmi() {
    clock::tick();
    load::nmi();
}

extern "C" fn spurious() {}

/// The entry of an exception that must not happen.
#[unsafe(naked)]
extern "C" fn fault<const VECTOR: u8>() {
    naked_asm!(
        "mov edi, {vector}",
        "mov rsi, rsp",
        "and rsp, -16",
        "call {handler}",
        vector = const VECTOR,
        handler = sym report_fault,
    )
}

/// `frame`: the error code, if the exception has one, and the address where it happened.
extern "C" fn report_fault(vector: u32, frame: &[u64; 2]) -> ! {
    let at = Cr2::read_raw();
    panic!("exception {vector}, {:#x} {:#x}, last page fault at {at:#x}", frame[0], frame[1])
}
