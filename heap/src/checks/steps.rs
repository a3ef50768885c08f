//! A block that grows by small steps, as by `realloc` for each line of a file.

use super::placed;
use crate::class::UNIT;
use crate::words::counted;

const STEP: usize = 100;
const END: usize = 8 << 20;

/// The most loads and read-modify-writes of a step on average. Almost all of these ask a cache whether it keeps the run.
const BOUND: (u64, u64) = (60, 2);

/// Memory beyond what was asked for: a sixteenth, and the rest of a unit.
fn most(size: usize) -> usize {
    size + size / 16 + UNIT
}

#[test]
fn a_block_that_grows_by_steps() {
    let heap = placed(4 * END);
    let on = heap.on(0);
    let resize = |at, size| {
        // SAFETY: the block is ours, and so is what replaces it.
        let found = unsafe { on.resize_at(at, size) }.expect("a block").expect("room for it");
        let usable = on.usable(found).expect("a block");
        assert!((size..most(size)).contains(&usable), "{size} bytes, {usable} usable");
        found
    };
    let first = on.alloc(std::alloc::Layout::new::<[u8; 40_000]>()).expect("room for it");
    let sizes = (40_000..END).step_by(STEP);
    let grow = || sizes.clone().fold(first, resize);
    let (block, (loads, swaps)) = counted(grow);
    assert_eq!(block, first, "moved, with nothing behind it");
    // Half of the loads are the test's own, for the usable bytes.
    let (loads, swaps) = (loads / 2 / sizes.len() as u64, swaps / sizes.len() as u64);
    println!("a step: {loads} loads, {swaps} read-modify-writes (may be {BOUND:?})");
    assert!(loads <= BOUND.0 && swaps < BOUND.1, "{loads} and {swaps}, not {BOUND:?}");
    let block = sizes.rev().step_by(7).fold(block, resize);
    // SAFETY: the block is ours.
    assert!(unsafe { on.free_at(block) }.is_ok());
    on.trim();
    heap.audit().expect("nothing is lost");
}
