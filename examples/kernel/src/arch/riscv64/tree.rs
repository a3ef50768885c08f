//! The device tree, as the firmware hands it over.

use core::ops::Range;

use fdt::Fdt;
use fdt::node::FdtNode;

use crate::Stretch;
use crate::collections::List;

/// The contents of the tree.
pub struct Machine {
    /// The memory map, with the memory that belongs to the firmware.
    pub map: List<Stretch>,
    /// The ids of all CPUs.
    pub cpus: List<usize>,
    /// The ticks of the clock per second.
    pub clock_hertz: u64,
}

/// Reads the tree.
///
/// # Safety
/// `address` is that of a device tree, which is untouched.
pub unsafe fn read(address: usize) -> Machine {
    // SAFETY: the contract.
    let tree = unsafe { Fdt::from_ptr(core::ptr::with_exposed_provenance(address)) };
    let tree = tree.expect("the firmware hands over a device tree");
    let own = address as u64..(address + tree.total_size()) as u64;
    let reserved = tree.find_node("/reserved-memory").into_iter().flat_map(FdtNode::children);
    let reserved = reserved.flat_map(ranges).chain([own]);
    let map = ranges_of_memory(&tree)
        .map(|addresses| Stretch { addresses, is_usable: true })
        .chain(reserved.map(|addresses| Stretch { addresses, is_usable: false }));
    Machine {
        map: map.collect(),
        cpus: tree.cpus().map(|cpu| cpu.ids().first()).collect(),
        clock_hertz: tree.cpus().next().expect("there is a CPU").timebase_frequency() as u64,
    }
}

fn ranges_of_memory(tree: &Fdt<'static>) -> impl Iterator<Item = Range<u64>> + use<> {
    let memory = tree.find_all_nodes("/memory");
    memory.flat_map(ranges).collect::<List<_>>().into_iter()
}

fn ranges(node: FdtNode<'_, 'static>) -> impl Iterator<Item = Range<u64>> + use<> {
    let ranges = node.reg().into_iter().flatten().map(|range| {
        let start = range.starting_address.addr() as u64;
        start..start + range.size.unwrap_or(0) as u64
    });
    ranges.collect::<List<_>>().into_iter()
}
