//! Reads what the boot loader hands over by the PVH protocol.

use core::ptr;

use crate::Stretch;
use crate::collections::List;

const MAGIC: u32 = 0x336e_c578;
const USABLE: u32 = 1;

/// `hvm_start_info` of Xen's public headers, version 1.
#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
    acpi: u64,
    map: u64,
    map_entries: u32,
    reserved: u32,
}

/// `hvm_memmap_table_entry`.
#[repr(C)]
#[derive(Clone, Copy)]
struct MapEntry {
    start: u64,
    size: u64,
    kind: u32,
    reserved: u32,
}

/// Returns the start info's memory map, and where ACPI's tables begin.
///
/// # Safety
/// `start_info` is what the boot loader passed, all of which is still untouched, and mapped where it is.
pub unsafe fn read(start_info: u64) -> (List<Stretch>, u64) {
    // SAFETY: by the contract it is mapped there, and nobody writes to it.
    let info = unsafe { &*ptr::with_exposed_provenance::<StartInfo>(start_info as usize) };
    assert!(info.magic == MAGIC && info.version >= 1, "no memory map from the boot loader");
    let entries = ptr::with_exposed_provenance::<MapEntry>(info.map as usize);
    // SAFETY: as above; the start info says how many entries there are.
    let entries = unsafe { core::slice::from_raw_parts(entries, info.map_entries as usize) };
    let stretches = entries.iter().map(|entry| Stretch {
        addresses: entry.start..entry.start + entry.size,
        is_usable: entry.kind == USABLE,
    });
    (stretches.collect(), info.acpi)
}
