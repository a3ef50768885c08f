//! How much memory a heap reaches when the sizes of its blocks change: what was slabs of one size serves others.

mod support;

use std::ptr::NonNull;

use nbbs_heap::{Heap, Placed};
use support::{layout, placed};

const HELD: usize = 16 << 20;

/// Holds `bytes` bytes in blocks of `size`, and frees them in an order that leaves no slab whole for long.
fn phase(heap: &Placed, random: &mut fastrand::Rng, bytes: usize, size: usize) -> usize {
    let on = heap.on(0);
    let mut blocks: Vec<NonNull<u8>> =
        (0..bytes / size).map(|_| on.alloc(layout(size, 1)).unwrap()).collect();
    let reached = blocks.iter().map(|block| block.addr().get() + size).max();
    random.shuffle(&mut blocks);
    // SAFETY: ours.
    blocks.into_iter().for_each(|block| unsafe { on.free(block, layout(size, 1)) });
    reached.unwrap_or(0)
}

/// Holds 16 MiB in blocks of one size after the other. Checks that no block lies further than `most` bytes behind the
/// first.
#[track_caller]
fn assert_small(sizes: impl Iterator<Item = usize>, most: usize) {
    let heap = placed(1, 1 << 30);
    let mut random = fastrand::Rng::with_seed(3);
    let start = heap.on(0).alloc(layout(16, 1)).unwrap().addr().get();
    let reached = sizes.map(|size| phase(heap, &mut random, HELD, size)).max().unwrap();
    assert!(reached < start + most, "{} MiB for {}", (reached - start) >> 20, HELD >> 20);
    assert_eq!(heap.audit(), Ok(()));
    assert_eq!(heap.refused(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn sizes_after_each_other() {
    let sizes = (0..50).map(|step| 16 * (step + 1) + 3 * step * step);
    assert_small(sizes.chain([3000, 9000, 30_000]), 3 * HELD);
}

/// Runs do, too.
#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn runs_after_slabs() {
    assert_small([100, 40_000].into_iter(), 2 * HELD);
}

/// What one lane has freed serves the next, if it is large: threads that idle then hold nothing for themselves.
#[test]
fn large_runs_of_one_lane_after_the_other() {
    let heap = placed(16, 1 << 30);
    let run = layout(2 << 20, 1);
    let starts = (0..16).flat_map(|lane| {
        let on = heap.on(lane);
        let blocks = [(); 5].map(|()| on.alloc(run).unwrap());
        // SAFETY: ours.
        blocks.map(|block| unsafe {
            on.free(block, run);
            block.addr().get()
        })
    });
    let starts: Vec<_> = starts.collect();
    let (first, last) = (starts.iter().min().unwrap(), starts.iter().max().unwrap());
    assert!(last - first < 16 << 20, "{} MiB", (last - first) >> 20);
}

/// Threads without numbers, one after the other, begin at few places.
#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn threads_after_each_other() {
    static HEAP: Heap<{ 1 << 30 }> = Heap::new();
    let processors = std::thread::available_parallelism().unwrap().get();
    let holds = || {
        let of = layout(100_000, 1);
        let blocks: Vec<_> = (0..10).map(|_| HEAP.alloc(of).unwrap()).collect();
        let first = blocks.iter().map(|at| at.addr().get()).min().unwrap();
        // SAFETY: ours.
        blocks.into_iter().for_each(|at| unsafe { HEAP.free(at, of) });
        first >> 20
    };
    let threads = (0..32 * processors).map(|_| std::thread::spawn(holds).join().unwrap());
    let places = threads.collect::<std::collections::BTreeSet<_>>().len();
    assert!(places < 16 * processors, "{places} places, {processors} processors");
}

/// A program reads into buffers that are large enough, and keeps of each what it needs.
#[test]
fn buffers_that_shrink_to_fit() {
    const BUFFER: usize = 1 << 20;
    for by_address in [false, true] {
        let (heap, of) = (placed(1, 1 << 30), layout(BUFFER, 1));
        let on = heap.on(0);
        let shrunk = |kept| {
            let buffer = on.alloc(of).unwrap();
            let first = buffer.addr().get();
            // SAFETY: ours.
            unsafe { buffer.write_bytes(1, kept) };
            let fits = if by_address {
                // SAFETY: ours.
                unsafe { on.resize_at(buffer, kept) }.unwrap()
            } else {
                // SAFETY: ours.
                unsafe { on.resize(buffer, of, kept) }
            };
            // SAFETY: ours, and written to.
            let bytes = unsafe { NonNull::slice_from_raw_parts(fits.unwrap(), kept).as_ref() };
            assert!(bytes.iter().all(|&byte| byte == 1));
            first.max(fits.unwrap().addr().get())
        };
        let start = shrunk(40_000);
        let reached = (0..300).map(|_| shrunk(40_000)).max().unwrap();
        let most = (300 * 40) << 10;
        assert!(reached < start + most + 2 * BUFFER, "{} KiB", (reached - start) >> 10);
        // More than half stays where it is.
        let buffer = on.alloc(of).unwrap();
        // SAFETY: ours.
        assert_eq!(unsafe { on.resize(buffer, of, BUFFER / 2) }, Some(buffer));
        assert_eq!(heap.audit(), Ok(()));
    }
}

/// What cannot move, as the heap is full, shrinks where it is.
#[test]
fn a_buffer_that_shrinks_in_a_full_heap() {
    let heap = placed(1, 2 << 20);
    let on = heap.on(0);
    let buffer = on.alloc(layout(1 << 20, 1)).unwrap();
    let rest = std::iter::from_fn(|| on.alloc(layout(33_000, 1))).count();
    assert!(rest > 10);
    // SAFETY: ours.
    assert_eq!(unsafe { on.resize(buffer, layout(1 << 20, 1), 40_000) }, Some(buffer));
    assert!(on.alloc(layout(900_000, 1)).is_some());
    assert_eq!(heap.audit(), Ok(()));
}

/// Memory of which only the address is known stays as it is, if it cannot become shorter or move.
#[test]
fn blocks_that_shrink_in_a_full_heap_by_their_addresses() {
    let heap = placed(1, 1 << 20);
    let on = heap.on(0);
    let blocks = [(1000, 100), (300, 20), (100 << 10, 20_000), (40_000, 100)]
        .map(|(size, less)| (on.alloc(layout(size, 1)).unwrap(), less));
    while on.alloc(layout(1000, 1)).is_some() || on.alloc(layout(100, 1)).is_some() {}
    while on.alloc(layout(20, 1)).is_some() {}
    for (block, less) in blocks {
        // SAFETY: ours.
        assert!(unsafe { on.resize_at(block, less) }.is_ok_and(|at| at.is_some()), "{less} bytes");
    }
}

/// A run of one unit cannot become less than half.
#[test]
fn aligned_units_stay() {
    let heap = placed(1, 16 << 20);
    let of = layout(1000, 1 << 20);
    let at = heap.on(0).alloc(of).unwrap();
    // SAFETY: ours.
    assert_eq!(unsafe { heap.on(0).resize(at, of, 100) }, Some(at));
}
