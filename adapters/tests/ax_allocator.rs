//! Pages for kernels made of ArceOS' parts.

mod support;

use ax_allocator::{AllocError, BaseAllocator, PageAllocator};
use nbbs_adapters::Region;
use support::reserved;

const BASE: usize = 0x8000_0000;

fn pages() -> Region<'static> {
    let mut pages = reserved(256, BASE as u64);
    pages.init(BASE + 0x800, 0x8_0000);
    assert_eq!((pages.total_pages(), pages.available_pages(), pages.used_pages()), (127, 127, 0));
    pages
}

#[test]
fn memory_is_added_once_and_only_within_the_region() {
    let mut pages = pages();
    pages.add_memory(BASE + 0x9_0000, 0x1_0000).unwrap();
    assert_eq!(pages.total_pages(), 127 + 16);
    let twice = pages.add_memory(BASE + 0x9_8000, 0x1_0000);
    assert!(matches!(twice, Err(AllocError::MemoryOverlap)), "{twice:?}");
    for (start, size) in [(BASE - 0x1000, 0x2000), (BASE + 0xf_f000, 0x2000), (0, usize::MAX)] {
        assert!(matches!(pages.add_memory(start, size), Err(AllocError::InvalidParam)));
    }
    assert_eq!(pages.total_pages(), 127 + 16);
}

#[test]
fn any_number_of_pages_at_any_alignment() {
    let mut pages = pages();
    let mut held = Vec::new();
    for (count, align) in [(1, 4096), (3, 4096), (7, 0x4000), (16, 0x1_0000), (40, 0x8000)] {
        let start = pages.alloc_pages(count, align).unwrap();
        assert!(start.is_multiple_of(align) && start >= BASE);
        held.push((start, count));
    }
    assert_eq!(pages.used_pages(), 67);
    assert_eq!(pages.available_pages(), 60);
    assert!(matches!(pages.alloc_pages(61, 4096), Err(AllocError::NoMemory)));
    for (count, align) in [(0, 4096), (1, 0), (1, 3 * 4096), (1, 512), (0, 1 << 40)] {
        let refused = pages.alloc_pages(count, align);
        assert!(matches!(refused, Err(AllocError::InvalidParam)), "{count} at {align:#x}");
    }
    // No less valid than others: there are just not as many.
    let none = [(257, 4096), (usize::MAX, 4096), (257, 0x1_0000), (257, 1 << 40), (1, 1 << 63)];
    for (count, align) in none {
        let refused = pages.alloc_pages(count, align);
        assert!(matches!(refused, Err(AllocError::NoMemory)), "{count} at {align:#x}");
    }
    for (start, count) in held {
        pages.dealloc_pages(start, count);
        pages.dealloc_pages(start, count);
    }
    assert_eq!(pages.used_pages(), 0);
}

#[test]
fn pages_at_a_place() {
    let mut pages = pages();
    assert_eq!(pages.alloc_pages_at(BASE + 0x4000, 5, 0x4000).unwrap(), BASE + 0x4000);
    let taken = pages.alloc_pages_at(BASE + 0x8000, 1, 0x1000);
    assert!(matches!(taken, Err(AllocError::NoMemory)), "{taken:?}");
    for (start, align) in [(BASE + 0x5000, 0x4000), (BASE + 0x800, 0x800), (BASE + 0x9000, 512)] {
        assert!(matches!(pages.alloc_pages_at(start, 1, align), Err(AllocError::InvalidParam)));
    }
    for start in [BASE + 0x9000, 0x1000] {
        assert!(matches!(pages.alloc_pages_at(start, 0, 4096), Err(AllocError::InvalidParam)));
    }
    for (start, count) in [(0x1000, 1), (BASE + 0x9000, 257), (BASE + 0xf_f000, 2)] {
        assert!(matches!(pages.alloc_pages_at(start, count, 0x1000), Err(AllocError::NoMemory)));
    }
    pages.dealloc_pages(BASE + 0x4000, 4);
    assert_eq!(pages.used_pages(), 5, "not so many were allocated there");
    pages.dealloc_pages(BASE + 0x4000, 5);
    assert_eq!(pages.used_pages(), 0);
}

#[test]
fn an_alignment_above_that_of_the_base() {
    // 4 KiB above 1 GiB, where there is memory for 4 MiB behind.
    let start = (1 << 30) + 0x1000;
    let mut pages = reserved(1024, start as u64);
    pages.init(start, 1024 * 4096);
    for (count, align) in [(1, 0x2000), (512, 2 << 20), (3, 2 << 20), (10, 0x10_0000)] {
        let at = pages.alloc_pages(count, align).unwrap();
        assert_eq!(at, start.next_multiple_of(align), "the first place");
        pages.dealloc_pages(at, count);
    }
    assert!(matches!(pages.alloc_pages(1, 1 << 30), Err(AllocError::NoMemory)));
    assert_eq!(pages.used_pages(), 0);

    let below = (1 << 30) - 0x1000;
    let mut pages = reserved(64, below as u64);
    pages.init(below, 64 * 4096);
    assert_eq!(pages.alloc_pages(63, 1 << 30).unwrap(), 1 << 30);
    assert!(matches!(pages.alloc_pages(1, 1 << 30), Err(AllocError::NoMemory)));
}
