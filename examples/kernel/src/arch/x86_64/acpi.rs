//! ACPI's table of processors and interrupt controllers.

use core::ptr;

use super::direct;
use crate::collections::List;

/// The contents of the table.
pub struct Processors {
    /// The ids of the local APICs of all CPUs that may be started.
    pub local_apics: List<u8>,
    /// Physical address of the first IO-APIC.
    pub io_apic: u64,
    /// Its pin for the interval timer.
    pub timer_pin: u32,
}

const HEADER: u64 = 36;
/// The header, the local APICs' address and flags.
const FIRST_ENTRY: u64 = HEADER + 8;

/// Reads the table of processors.
///
/// # Safety
/// `root_pointer` is the physical address of ACPI's root pointer; the tables are untouched and in the direct map.
pub unsafe fn processors(root_pointer: u64) -> Processors {
    // SAFETY: the root pointer and the tables are there, by the contract; ACPI says where the fields are.
    unsafe {
        let root = u64::from(read::<u32>(root_pointer + 16));
        let tables = (root + HEADER..root + length(root)).step_by(4);
        let table = tables
            .map(|pointer| u64::from(read::<u32>(pointer)))
            .find(|&table| read::<[u8; 4]>(table) == *b"APIC")
            .expect("ACPI has a table of processors");
        entries(table)
    }
}

/// # Safety
/// Those of [`processors`]; `table` is the address of its table.
unsafe fn entries(table: u64) -> Processors {
    let mut found = Processors { local_apics: List::new(), io_apic: 0, timer_pin: 0 };
    // SAFETY: each entry says its kind and its length, and ends before the table does.
    unsafe {
        let (mut at, end) = (table + FIRST_ENTRY, table + length(table));
        while at < end {
            let [kind, length] = read::<[u8; 2]>(at);
            match kind {
                // A local APIC that is enabled.
                0 if read::<u32>(at + 4) & 1 != 0 => found.local_apics.push(read(at + 3)),
                1 if found.io_apic == 0 => found.io_apic = read::<u32>(at + 4).into(),
                // The interrupt of the interval timer, 0 on the ISA bus, is at another pin.
                2 if read::<u8>(at + 3) == 0 => found.timer_pin = read(at + 4),
                _ => {}
            }
            at += u64::from(length);
        }
    }
    found
}

/// # Safety
/// `table` is the address of one of ACPI's tables.
unsafe fn length(table: u64) -> u64 {
    // SAFETY: the second field of each table's header.
    unsafe { read::<u32>(table + 4) }.into()
}

/// # Safety
/// There is a `T` at the physical address, at whatever alignment, in the direct map.
unsafe fn read<T>(address: u64) -> T {
    // SAFETY: the contract.
    unsafe { ptr::read_unaligned(direct(address).cast()) }
}
