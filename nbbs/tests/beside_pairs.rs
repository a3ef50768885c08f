//! Tests that large blocks are found, and looks for them end, beside lanes that allocate a unit and free it again and again. Each such lane
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

/// Returns what is to be called before each access, and the number of accesses, which must not exceed `most`. Before one
/// in `every`, each of the lanes from 1 on and below `lanes` in turn allocates or frees a unit. At first they hold none.
fn pairs_of_others(
    arena: &Rc<Arena<Steered>>,
    lanes: usize,
    every: u32,
    most: u32,
) -> (impl FnMut() + 'static, Rc<Cell<u32>>) {
    let (others, accesses) = (Rc::clone(arena), Rc::new(Cell::new(0)));
    let taken = Rc::clone(&accesses);
    let (mut units, mut turn) = (vec![None; lanes], 0);
    let hook = move || {
        taken.set(taken.get() + 1);
        let case = format!("{lanes} lanes, a step of another before one access in {every}");
        assert!(taken.get() <= most, "{} accesses: {case}", taken.get());
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
    (hook, accesses)
}

/// Fills and drains on lane 0, beside pairs on the other lanes.
fn fill_beside_pairs(large: Large, lanes: usize, every: u32) {
    let arena = Rc::new(Arena::<Steered>::new(large.units));
    let (hook, accesses) = pairs_of_others(&arena, lanes, every, large.most);
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

/// A look for a block of which there is none gives up, where the lanes promise one again and again.
#[test]
fn a_look_ends_beside_lanes_that_do_not_rest() {
    for (log2, lanes) in [(12, 2), (15, 2), (18, 2), (18, 17)] {
        for every in [1, 2, 3, 5, 8, 12, 20, 50] {
            let arena = Rc::new(Arena::<Steered>::new(1 << log2));
            let (buddy, order) = (arena.buddy(), log2 - 1);
            for block in 0..2 {
                buddy.on(0).alloc_at((block << order) + (1 << (order - 1)), 1).unwrap();
            }
            let (hook, _) = pairs_of_others(&arena, lanes, every, 4_999);
            steer(hook, || (0..10).for_each(|_| _ = buddy.on(0).has_free(order)));
            buddy.audit().unwrap();
        }
    }
}
