//! The memory maps of boot loaders and firmware.

mod support;

use bootloader_api::info::{MemoryRegion, MemoryRegionKind};
use nbbs_adapters::RegionError;
use support::reserved;
use uefi_raw::table::boot::{MemoryAttribute, MemoryDescriptor, MemoryType};

#[test]
fn what_the_boot_loader_calls_usable() {
    let memory = reserved(1024, 0);
    let region = |start, end, kind| MemoryRegion { start, end, kind };
    let map = [
        region(0, 0x1000, MemoryRegionKind::UnknownBios(2)),
        region(0x1000, 0x9_fc00, MemoryRegionKind::Usable),
        region(0x10_0000, 0x18_0000, MemoryRegionKind::Bootloader),
        region(0x18_0000, 0x7fff_0000, MemoryRegionKind::Usable),
    ];
    assert_eq!(memory.add_map(map), Ok(0x9e + 0x280));
    let stats = memory.buddy().stats();
    assert_eq!((stats.free_units, stats.reserved_units), (0x9e + 0x280, 1024 - 0x9e - 0x280));
    assert!(memory.alloc_at(0x10_0000, 1).is_err() && memory.alloc_at(0x9_f000, 1).is_err());
}

#[test]
fn what_uefi_calls_conventional() {
    let memory = reserved(1024, 0x8000_0000);
    let piece = |ty, phys_start, page_count| MemoryDescriptor {
        ty,
        phys_start,
        page_count,
        ..MemoryDescriptor::default()
    };
    let map = [
        piece(MemoryType::CONVENTIONAL, 0x8000_0000, 10),
        piece(MemoryType::BOOT_SERVICES_DATA, 0x8000_a000, 6),
        piece(MemoryType::LOADER_CODE, 0x8001_0000, 16),
        MemoryDescriptor {
            att: MemoryAttribute::SPECIAL_PURPOSE | MemoryAttribute::WRITE_BACK,
            ..piece(MemoryType::CONVENTIONAL, 0x8002_0000, 32)
        },
        piece(MemoryType::CONVENTIONAL, 0x8004_0000, u64::MAX),
    ];
    assert_eq!(memory.add_map(map), Ok(10 + 1024 - 64));
    assert!(memory.alloc_at(0x8000_a000, 1).is_err());
    assert!(memory.alloc_at(0x8002_0000, 1).is_err(), "a driver's");
    let again = memory.add_map(map);
    assert_eq!(again, Err(RegionError::Map { entry: 0, address: 0x8000_0000 }));
    let again = memory.add_map(map[1..].iter().copied());
    assert_eq!(again, Err(RegionError::Map { entry: 3, address: 0x8004_0000 }), "all count");
    // Later, when nothing lies there any more:
    assert_eq!(memory.add_map(Some(0x8000_a000..0x8001_0000_u64)), Ok(6));
    assert_eq!(memory.alloc_at(0x8000_a000, 6), Ok(()));
}
