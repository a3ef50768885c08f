//! Tests that large blocks are found beside lanes that allocate a unit and free it again and again. Each such lane
//! keeps an area split that is empty half of the time: the area promises a large block, and a search that enters it
//! comes too late, as often as it tries.

use std::cell::Cell;
use std::rc::Rc;

use testkit::program::Arena;
use testkit::steered::{Steered, steer};

/// An arena, the orders of large blocks, how many of one order are held at a time, and the most accesses of an
/// allocation.
#[derive(Clone, Copy)]
struct Large {
    units: u64,
    orders: &'static [u32],
    held: usize,
    most: u32,
}

/// Fills and drains on lane 0. Before one access in `every`, each of the lanes up to `lanes` in turn allocates or frees
/// a unit.
fn fill_beside_pairs(large: Large, lanes: usize, every: u32) {
    let arena = Rc::new(Arena::<Steered>::new(large.units));
    let (others, accesses) = (Rc::clone(&arena), Rc::new(Cell::new(0)));
    let taken = Rc::clone(&accesses);
    let (mut units, mut turn) = (vec![None; lanes], 0);
    let hook = move || {
        taken.set(taken.get() + 1);
        let case = format!("{lanes} lanes, a step of another before one access in {every}");
        assert!(taken.get() <= large.most, "{} accesses: {case}", taken.get());
        if taken.get() % every == 0 {
            turn = turn % (lanes - 1) + 1;
            let (buddy, unit) = (others.buddy(), &mut units[turn]);
            let step = || match unit.take() {
                Some(at) => buddy.on(turn).free_sized(at, 0).unwrap(),
                None => *unit = Some(buddy.on(turn).alloc(0).unwrap()),
            };
            // Steps of others are not counted.
            steer(|| {}, step);
        }
    };
    let buddy = arena.buddy();
    let fill_and_drain = || {
        for &order in large.orders.iter().cycle().take(4 * large.orders.len()) {
            let mut held = vec![0; large.held];
            for block in &mut held {
                accesses.set(0);
                *block = buddy.on(0).alloc(order).unwrap();
            }
            for &block in &held {
                accesses.set(0);
                buddy.on(0).free_sized(block, order).unwrap();
            }
        }
    };
    steer(hook, fill_and_drain);
    buddy.audit().unwrap();
}

#[test]
fn a_large_block_is_found_beside_lanes_that_do_not_rest() {
    let beside = |large: Large, lanes: &[usize]| {
        for &lanes in lanes {
            (1..100).for_each(|every| fill_beside_pairs(large, lanes, every));
        }
    };
    let half = Large { units: 1 << 18, orders: &[5, 10, 12], held: 16, most: 100 };
    beside(half, &[2, 4, 8, 16]);
    // A search comes to areas of other lanes before it comes to one that is free.
    beside(Large { held: 32, most: 500, ..half }, &[2, 4, 8, 16]);
    // Few areas are not held, and some of them are other lanes'.
    beside(Large { units: 1 << 15, orders: &[11], held: 8, most: 300 }, &[3]);
    // What is free lies in a slot that is only partly inside the arena.
    beside(Large { units: (1 << 15) + (1 << 12), orders: &[12], held: 8, most: 300 }, &[2]);
}
