//! How often whole slabs are looked for.

use core::alloc::Layout;

use super::placed;
use crate::class::{Class, LARGEST};
use crate::operations::Operations;

/// A look asks caches for slots, and what they give back becomes whole slabs. They take these again, so that the next look
/// finds none, and asks nobody.
#[test]
fn caches_that_give_back_do_not_make_looks_go_on() {
    const ROUNDS: usize = 100;
    let on = placed(512 << 20).on(0);
    let held = |bytes, count| {
        let layout = Layout::from_size_align(bytes, 1).expect("a layout");
        let blocks: std::vec::Vec<_> =
            (0..count).map(|_| on.alloc(layout).expect("room for it")).collect();
        // Far from one another, so that slabs become whole bit by bit.
        for number in 0..count {
            // SAFETY: it is ours.
            unsafe { on.free(blocks[number * 7919 % count], layout) };
        }
    };
    let round = || {
        Class::all().for_each(|class| held(class.size(), 1));
        held(100 * LARGEST, 1);
    };
    round();
    // Slabs that become whole, and make the first look due.
    held(1000, 20_000);
    let before = on.memory().asked();
    (0..ROUNDS).for_each(|_| round());
    let asked = on.memory().asked() - before;
    assert!((1..ROUNDS / 10).contains(&asked), "asked {asked} times in {ROUNDS} rounds");
}
