//! Tests memory that is added while a heap runs.

mod support;

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nbbs_heap::{AddError, Heap};
use support::{Block, assert_whole, layout, memory};

/// Allocates everything that a heap has, in blocks of a layout.
fn fill<const B: usize>(heap: &'static Heap<B>, of: Layout) -> Vec<Block> {
    (0..).map_while(|seed| Block::alloc(heap, of, seed)).collect()
}

#[test]
fn a_heap_without_memory() {
    static HEAP: Heap<0> = Heap::new();
    for size in [0, 1, 100, 5000, 100_000] {
        assert_eq!(HEAP.alloc(layout(size, 1)), None);
    }
    assert_eq!(HEAP.trim(), 0);
    assert_eq!(HEAP.stats().bytes, 0);
    assert!(!HEAP.contains((&raw const HEAP).cast()));
    let start = memory(4096);
    let needed = |skipped: usize| 5120 + (start.addr().get() + skipped).wrapping_neg() % 4096;
    // SAFETY: the memory is leaked.
    unsafe {
        assert_eq!(HEAP.add(start, 0), Err(AddError::TooSmall { bytes: 0, needed: needed(0) }));
        assert_eq!(
            HEAP.add(start, 4096),
            Err(AddError::TooSmall { bytes: 4096, needed: needed(0) })
        );
        assert_eq!(
            HEAP.add(start.add(1), 4095),
            Err(AddError::TooSmall { bytes: 4095, needed: needed(1) })
        );
    }
    assert_eq!(HEAP.alloc(layout(1, 1)), None);
}

#[test]
fn too_small_for_a_unit() {
    static HEAP: Heap<100> = Heap::new();
    assert_eq!(HEAP.alloc(layout(1, 1)), None);
    // SAFETY: the memory is leaked.
    assert_eq!(unsafe { HEAP.add(memory(1 << 16), 1 << 16) }, Ok(()));
    Block::alloc(&HEAP, layout(100, 1), 1).unwrap().free(&HEAP);
    assert_whole(&HEAP);
}

#[test]
fn memory_that_is_zero() {
    static HEAP: Heap<0> = Heap::new();
    let bytes = 1 << 20;
    // Leaked, and of words, so that it may be read meanwhile.
    let memory: &'static [AtomicU64] =
        Vec::leak((0..bytes / 8).map(|_| AtomicU64::new(0)).collect());
    let start = NonNull::from(memory).cast();
    let is_zero = || memory.iter().all(|word| word.load(Ordering::Relaxed) == 0);
    // SAFETY: the memory is zero, and the heap's from now on.
    assert_eq!(unsafe { HEAP.add_zeroed(start, bytes) }, Ok(()));
    assert!(is_zero());
    // SAFETY: it is refused.
    let overlap = unsafe { HEAP.add_zeroed(start, bytes) };
    assert!(matches!(overlap, Err(AddError::Overlaps { .. })), "{overlap:?}");
    let blocks = fill(&HEAP, layout(1000, 1));
    assert!(blocks.len() > 900);
    blocks.into_iter().for_each(|block| block.free(&HEAP));
    assert_whole(&HEAP);
    assert!(!is_zero());
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn eight_regions() {
    static EMPTY: Heap<0> = Heap::new();
    static TOO_SMALL: Heap<100> = Heap::new();
    static WITH_OWN: Heap<{ 1 << 15 }> = Heap::new();
    fn add_all<const B: usize>(heap: &'static Heap<B>, most: usize) {
        let mut bytes = heap.stats().bytes;
        let mut odd = fastrand::Rng::with_seed(most as u64);
        for _ in 0..most {
            let (length, skip) = (odd.usize(30_000..60_000), odd.usize(0..5000));
            // SAFETY: the memory is leaked, and this much of it is left.
            unsafe { heap.add(memory(length).add(skip), length - skip) }.unwrap();
            let more = heap.stats().bytes;
            assert!(more > bytes && more - bytes < length - skip, "{more} of {length} more");
            bytes = more;
        }
        // SAFETY: as above.
        let refused = unsafe { heap.add(memory(1 << 16), 1 << 16) };
        assert_eq!(refused, Err(AddError::TooMany { most: 8 }));
        let layouts = [(1024, 1), (1, 1), (200, 8), (4096, 4096), (3072, 1024), (6144, 2048)];
        for of in layouts.map(|(size, align)| layout(size, align)) {
            let blocks = fill(heap, of);
            let regions: std::collections::HashSet<_> =
                blocks.iter().map(|block| block.at.addr().get() >> 16).collect();
            assert!(regions.len() >= 4, "{of:?} comes from several of them: {regions:?}");
            blocks.into_iter().for_each(|block| block.free(heap));
            assert_whole(heap);
        }
        assert_eq!(heap.refused(), 0);
    }
    add_all(&EMPTY, 8);
    add_all(&TOO_SMALL, 8);
    add_all(&WITH_OWN, 7);
}

/// Slots of several regions are freed in turn, so that a batch of the cache has some of each.
#[test]
fn batches_of_several_regions() {
    static HEAP: Heap<{ 1 << 16 }> = Heap::new();
    // SAFETY: the memory is leaked.
    unsafe { HEAP.add(memory(1 << 16), 1 << 16) }.unwrap();
    let sizes: &[usize] = if cfg!(miri) { &[5000] } else { &[16, 100, 1024, 1152, 5000] };
    for &size in sizes {
        let mut blocks = fill(&HEAP, layout(size, 1));
        fastrand::Rng::with_seed(size as u64).shuffle(&mut blocks);
        while let Some(block) = blocks.pop() {
            block.free(&HEAP);
        }
        assert_whole(&HEAP);
    }
    assert_eq!(HEAP.refused(), 0);
}

/// A block for which the first region has no room comes from a later one, and goes back there.
#[test]
fn memory_of_a_later_region() {
    static HEAP: Heap<{ 1 << 16 }> = Heap::new();
    let run = layout(100_000, 1 << 14);
    assert_eq!(HEAP.alloc(run), None);
    // SAFETY: the memory is leaked.
    unsafe { HEAP.add(memory(1 << 18).add(1), (1 << 18) - 1) }.unwrap();
    let mut held = Block::alloc(&HEAP, run, 1).unwrap();
    assert!(held.resize(&HEAP, 90_000));
    assert!(held.resize(&HEAP, 120_000));
    held.free(&HEAP);
    assert_whole(&HEAP);
}

/// A slot that is a run of its own has the same alignment as a slot of a slab.
#[test]
fn slots_that_are_runs_are_aligned() {
    // No slab of these slots fits into so little memory.
    static HEAP: Heap<{ 64 << 10 }> = Heap::new();
    let odd = Block::alloc(&HEAP, layout(33 << 10, 1), 1).unwrap();
    let blocks = fill(&HEAP, layout(6144, 2048));
    assert!(blocks.len() >= 3);
    blocks.into_iter().chain([odd]).for_each(|block| block.free(&HEAP));
    assert_whole(&HEAP);
}

/// Where all free memory is in pieces too small for most slabs, every size gets a run of its own.
#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn sizes_below_a_unit_where_no_slab_fits() {
    static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    let mut runs = fill(&HEAP, layout(40 << 10, 8));
    let units = fill(&HEAP, layout(1 << 10, 1));
    runs.iter_mut().for_each(|run| assert!(run.resize(&HEAP, 33 << 10)));
    let free = HEAP.stats().free;
    let sizes = [16, 100, 150, 200, 300, 400, 500, 600, 800, 1000, 1100, 2000, 5000, 7000];
    let blocks: Vec<_> = sizes
        .map(|size| Block::alloc(&HEAP, layout(size, 8), size as u64).ok_or(size))
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|size| panic!("{size} bytes cannot be had, of {free}"));
    runs.into_iter().chain(units).chain(blocks).for_each(|block| block.free(&HEAP));
    assert_whole(&HEAP);
    assert_eq!(HEAP.refused(), 0);
}

/// Memory of which a region already has some is refused, from either side, and when the heap's own memory has not been
/// used before.
#[test]
fn memory_is_added_once() {
    static HEAP: Heap<{ 1 << 16 }> = Heap::new();
    let own = NonNull::from(&HEAP).cast::<u8>();
    let more = memory(1 << 18);
    let refuse = |at: NonNull<u8>, bytes, begins: usize| {
        // SAFETY: it is not added.
        let refused = unsafe { HEAP.add(at, bytes) };
        let address = at.addr().get();
        let Err(AddError::Overlaps { address: at, begins: its, ends }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((at, its), (address, begins));
        assert!(its < ends && at < ends && its < at + bytes, "{refused:?}");
    };
    // SAFETY: the places lie in the heap and in the memory; the last unit of that begins before the last page.
    let (inside, middle, last) =
        unsafe { (own.add(20_000), more.add(1 << 17), more.add((1 << 18) - 8192)) };
    refuse(own, 1 << 16, own.addr().get());
    refuse(inside, 100, own.addr().get());
    // SAFETY: the memory is leaked, and the second half of it is not used in any other way.
    unsafe { HEAP.add(middle, 1 << 17) }.unwrap();
    // A region begins at a page.
    let begins = middle.addr().get().next_multiple_of(4096);
    refuse(middle, 1 << 17, begins);
    refuse(more, (1 << 17) + 4096, begins);
    refuse(last, 1, begins);
    // SAFETY: nor is the first half.
    unsafe { HEAP.add(more, 1 << 17) }.unwrap();
    assert_whole(&HEAP);
}

#[test]
fn errors_speak() {
    let overlaps = AddError::Overlaps { address: 0x3000, begins: 0x1000, ends: 0x4000 };
    let said = "memory at 0x3000 overlaps a region of the heap, from 0x1000 to 0x4000";
    assert_eq!(overlaps.to_string(), said);
    assert_eq!(AddError::TooMany { most: 8 }.to_string(), "a heap has at most 8 regions");
    let too_small = AddError::TooSmall { bytes: 5, needed: 5120 };
    assert_eq!(too_small.to_string(), "memory of 5 bytes: 5120 are needed");
}
