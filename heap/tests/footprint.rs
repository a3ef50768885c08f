//! How much memory a heap reaches when the sizes of its blocks change: what was slabs of one size serves others.

mod support;

use std::ptr::NonNull;

use nbbs_heap::Placed;
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
