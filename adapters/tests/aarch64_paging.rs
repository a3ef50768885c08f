//! Page tables of `aarch64-paging` from the arena.

mod support;

use aarch64_paging::descriptor::{El1Attributes, PhysicalAddress};
use aarch64_paging::paging::{El1And0, MemoryRegion, RootTable, Translation, VaRange};
use nbbs_adapters::Mapped;
use support::{mapped, region};

const BASE: u64 = 0x4000_0000;
const PAGE: El1Attributes = El1Attributes::VALID.union(El1Attributes::ACCESSED);

fn root(memory: Mapped<'static>) -> RootTable<El1And0, Mapped<'static>> {
    RootTable::with_va_range(memory, 1, El1And0, VaRange::Lower)
}

#[test]
fn tables_come_from_the_arena_and_go_back() {
    let memory = mapped(region(64, BASE));
    let used = || memory.stats().used_units;
    let mut tables = root(memory);
    assert_eq!(used(), 1);
    let range = MemoryRegion::new(0x3000, 0x5000);
    let no_limits = aarch64_paging::paging::Constraints::empty();
    tables.map_range(&range, PhysicalAddress(0x9000), PAGE, no_limits).unwrap();
    assert_eq!(used(), 3);

    let mut seen = Vec::new();
    tables
        .walk_range(&range, &mut |part, descriptor, level| {
            seen.push((part.start().0, descriptor.output_address().0, level));
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, [(0x3000, 0x9000, 3), (0x4000, 0xa000, 3)]);
    drop(tables);
    assert_eq!(used(), 0);
}

#[test]
fn where_a_table_is_mapped() {
    let mut memory = mapped(region(8, BASE));
    let (table, address) = Translation::<El1Attributes>::allocate_table(&mut memory);
    assert!((BASE..BASE + 0x8000).contains(&(address.0 as u64)));
    assert_eq!(Translation::<El1Attributes>::physical_to_virtual(&memory, address), table);
    // SAFETY: just allocated; zeroed, says the trait, where the memory was not.
    assert_eq!(unsafe { table.cast::<[u64; 512]>().read() }, [0; 512]);
    // SAFETY: allocated above.
    unsafe { memory.deallocate_table(table) };
    assert_eq!(memory.stats().used_units, 0);
}

#[test]
#[should_panic(expected = "no page table: no unit that fits the request is free")]
fn no_frame_for_a_table() {
    let memory = mapped(region(2, BASE));
    memory.alloc_zeroed(2).unwrap();
    root(memory);
}

#[test]
#[should_panic(expected = "outside 0x40000000..0x40002000")]
fn a_table_that_is_not_here() {
    let memory = mapped(region(2, BASE));
    Translation::<El1Attributes>::physical_to_virtual(&memory, PhysicalAddress(0x1000));
}
