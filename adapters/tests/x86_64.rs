//! Frames for page tables and mappings: a real mapper, and threads before the owner map.

mod support;

use std::thread;

use nbbs_adapters::{FRAME_SIZE, Frames};
use support::{mapped, region};
use testkit::Oracle;
use x86_64::structures::paging::mapper::Mapper;
use x86_64::structures::paging::{
    FrameAllocator, FrameDeallocator, OffsetPageTable, Page, PageSize, PageTable, PageTableFlags,
    PhysFrame, Size1GiB, Size2MiB, Size4KiB, Translate,
};
use x86_64::{PhysAddr, VirtAddr};

#[test]
fn a_mapper_takes_its_tables_from_the_arena() {
    // Tables and pages in dirty memory, so a table that the mapper did not clear would show.
    let region = region(2048, 0);
    let memory = mapped(region);
    // SAFETY: the test maps the memory, and uses none but what it has allocated.
    let mut frames = unsafe { Frames::new(region) };
    let (_, root) = memory.alloc_zeroed(1).unwrap();
    let offset = VirtAddr::from_ptr(memory.pointer_to(0).unwrap().as_ptr());
    // SAFETY: the table was just allocated, zeroed, and lies at the offset as all memory does.
    let mut mapper = unsafe { OffsetPageTable::new(root.cast::<PageTable>().as_mut(), offset) };

    let flags = PageTableFlags::PRESENT | PageTableFlags::WRITABLE;
    let small: PhysFrame<Size4KiB> = frames.allocate_frame().unwrap();
    let large: PhysFrame<Size2MiB> = frames.allocate_frame().unwrap();
    let at = [VirtAddr::new(0x4444_4444_4000), VirtAddr::new(0x5555_5560_0000)];
    // SAFETY: nobody looks through this mapping.
    unsafe {
        mapper
            .map_to(Page::from_start_address(at[0]).unwrap(), small, flags, &mut frames)
            .unwrap()
            .ignore();
        mapper
            .map_to(Page::from_start_address(at[1]).unwrap(), large, flags, &mut frames)
            .unwrap()
            .ignore();
    }
    assert_eq!(mapper.translate_addr(at[0] + 5), Some(small.start_address() + 5));
    assert_eq!(mapper.translate_addr(at[1] + 0x1_2345), Some(large.start_address() + 0x1_2345));
    // The root, three tables for the small page and two for the large one, and the pages.
    assert_eq!(memory.stats().used_units, 1 + 3 + 2 + 1 + 512);
    // SAFETY: nothing uses the pages.
    unsafe {
        frames.deallocate_frame(small);
        frames.deallocate_frame(large);
    }
    assert_eq!(memory.stats().used_units, 6);
}

fn orders<S: PageSize>(base: u64) -> bool {
    // SAFETY: nothing here uses the memory.
    let mut frames = unsafe { Frames::new(region(1 << 18, base)) };
    let Some(frame) = FrameAllocator::<S>::allocate_frame(&mut frames) else { return false };
    let used = frames.stats().used_units;
    assert_eq!(used, S::SIZE / FRAME_SIZE);
    // SAFETY: nothing here uses the memory.
    unsafe { frames.deallocate_frame(frame) };
    assert_eq!(frames.stats().used_units, 0);
    // SAFETY: as above; the frame is free already, or no frame of the region.
    unsafe {
        frames.deallocate_frame(frame);
        frames.deallocate_frame(PhysFrame::<S>::containing_address(PhysAddr::new(1 << 40)));
    }
    true
}

#[test]
fn each_page_size_wherever_there_is_room() {
    assert!(orders::<Size4KiB>(0x1000) && orders::<Size2MiB>(0) && orders::<Size1GiB>(1 << 30));
    assert!(orders::<Size2MiB>(1 << 20) && orders::<Size2MiB>(0x1000));
    assert!(!orders::<Size1GiB>(512 << 20), "the second half of one, and the first of the next");
    assert!(!orders::<Size4KiB>(1 << 52), "no physical address has so many bits");
}

#[test]
fn copies_on_lanes_of_their_own_do_not_meet() {
    let memory = mapped(region(2048, 0));
    // SAFETY: the test uses none but what it has allocated.
    let frames = unsafe { Frames::new(memory.region()) };
    let word_of = |address: u64| address / FRAME_SIZE / 32;
    let words = [0, 1].map(|cpu| {
        let frame: PhysFrame<Size4KiB> = frames.on(cpu).allocate_frame().unwrap();
        let (mapped, _) = memory.on(cpu).alloc_zeroed(1).unwrap();
        assert_eq!(word_of(mapped), word_of(frame.start_address().as_u64()));
        word_of(mapped)
    });
    assert_ne!(words[0], words[1]);
    assert_eq!(frames.stats(), memory.stats());
}

#[test]
fn threads_never_get_the_same_frame() {
    let memory = region(2048, 0);
    let oracle = Oracle::new(2048);
    let work = |lane: usize| {
        // SAFETY: nothing here uses the memory.
        let mut frames = unsafe { Frames::new(memory.on(lane)) };
        for round in 0..20_000 {
            let small: Option<PhysFrame<Size4KiB>> = frames.allocate_frame();
            let large: Option<PhysFrame<Size2MiB>> =
                if round % 3 == 0 { frames.allocate_frame() } else { None };
            let index = |address: PhysAddr| address.as_u64() / FRAME_SIZE;
            if let Some(frame) = small {
                let block = oracle.take(lane, index(frame.start_address()), 0).unwrap();
                oracle.give(block).unwrap();
                // SAFETY: nothing uses the frame.
                unsafe { frames.deallocate_frame(frame) };
            }
            if let Some(frame) = large {
                let block = oracle.take(lane, index(frame.start_address()), 9).unwrap();
                oracle.give(block).unwrap();
                // SAFETY: nothing uses the frame.
                unsafe { frames.deallocate_frame(frame) };
            }
        }
    };
    thread::scope(|scope| {
        for lane in 0..4 {
            scope.spawn(move || work(lane));
        }
    });
    oracle.check_empty().unwrap();
    assert_eq!(memory.buddy().stats().free_units, 2048);
    memory.buddy().audit().unwrap();
}
