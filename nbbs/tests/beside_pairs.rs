//! Tests that large blocks are found beside lanes that allocate a unit and free it again and again. Each such lane keeps
//! an area split that is empty half of the time: the area promises a large block, and a search that enters it comes too
//! late, as often as it tries.

use std::cell::Cell;
use std::rc::Rc;

use testkit::program::Arena;
use testkit::steered::{Steered, steer};

const UNITS: u64 = 1 << 18;

/// The blocks of one order that are held at a time, and the orders.
const HELD: usize = 16;
const ORDERS: [u32; 3] = [5, 10, 12];

/// The most accesses of an allocation.
const MOST: u32 = 300;

/// Fills and drains on lane 0. Before one access in `every`, each of the lanes up to `lanes` in turn allocates or frees a
/// unit.
fn fill_beside_pairs(lanes: usize, every: u32) {
    let arena = Rc::new(Arena::<Steered>::new(UNITS));
    let (others, accesses) = (Rc::clone(&arena), Rc::new(Cell::new(0)));
    let taken = Rc::clone(&accesses);
    let (mut units, mut turn) = (vec![None; lanes], 0);
    let hook = move || {
        taken.set(taken.get() + 1);
        let case = format!("{lanes} lanes, a step of another before one access in {every}");
        assert!(taken.get() <= MOST, "{} accesses: {case}", taken.get());
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
        for order in ORDERS.into_iter().cycle().take(4 * ORDERS.len()) {
            let mut held = [0; HELD];
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
    for lanes in [2, 4, 8, 16] {
        (1..100).for_each(|every| fill_beside_pairs(lanes, every));
    }
}
