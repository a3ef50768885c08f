//! Tests what one allocation costs at worst, in accesses to the metadata.
//!
//! Claims at given places leave the bounds of the words above them too high. The first search that they mislead lowers
//! them, in every word: its cost is linear in the arena, once, and less than that of the claims.

use std::cell::Cell;
use std::rc::Rc;

use nbbs::{AllocError, Buddy, Request, RequestError, lane_words};
use testkit::program::Arena;
use testkit::steered::{Steered, count_steps, steer};

/// The most accesses of a refused allocation to a word of the tree, and those that it makes besides.
const OF_A_WORD: u64 = 6;
const BESIDES: u64 = 64;

/// The levels of the largest arena of `for_each_order`.
const LEVELS: usize = 5;

/// The most accesses if the bounds are true: a few for each level.
const SETTLED: u64 = 32;

/// Returns the number of words in the tree over this many units, without padding.
fn tree_words(units: u64) -> u64 {
    let levels = std::iter::successors(Some(units.div_ceil(32)), |&words| {
        (words > 1).then(|| words.div_ceil(16))
    });
    levels.sum()
}

/// Makes an allocation that must be refused, on any lane, within `limit` accesses. Returns how many it took.
fn refuse(buddy: &Buddy<'_, Steered>, lane: usize, order: u32, limit: u64) -> u64 {
    let (answer, steps) = count_steps(limit, || buddy.on(lane).alloc(order)).unwrap();
    assert_eq!(answer, Err(AllocError::Exhausted { units: 1 << order }));
    steps
}

/// Holds everything except the first half of every block of the order, so that a block of exactly this order is nowhere
/// free.
fn hold_halves(buddy: &Buddy<'_, Steered>, order: u32) {
    // In leaf words, one run for each: the fewest claims for the most bounds.
    let size = 1_u64 << order.max(5);
    let free = 1_u64 << (order - 1);
    let blocks = buddy.units() / size;
    for block in 0..blocks {
        buddy.on(0).alloc_at(block * size + free, size - free).unwrap();
    }
    _ = buddy.on(0).alloc_at(blocks * size, buddy.units() % size);
}

/// Calls `visit` for each order of arenas of several sizes: with an empty arena, the order, and the most accesses of the
/// first refusal.
fn for_each_order(mut visit: impl FnMut(&Buddy<'_, Steered>, u32, u64)) {
    for units in [1 << 12, 1 << 14, 1 << 18, (1 << 12) + 1, 10_000, (1 << 18) - 1000] {
        let limit = OF_A_WORD * tree_words(units) + BESIDES;
        for order in 1..=units.ilog2() {
            visit(&Arena::<Steered>::new(units).buddy(), order, limit);
        }
    }
}

#[test]
fn a_refusal_looks_at_each_word_a_few_times_and_then_no_more() {
    for_each_order(|buddy, order, limit| {
        let (_, claims) = count_steps(u64::MAX, || hold_halves(buddy, order)).unwrap();
        let first = refuse(buddy, 0, order, limit);
        assert!(first <= claims + BESIDES, "{first} after claims that took {claims}");
        for lane in [0, 1, 63] {
            refuse(buddy, lane, order, SETTLED);
        }
        // A request for a block costs no more.
        let units = 1 << order;
        let request = || buddy.on(0).request(Request::units(units).aligned(order));
        let (answer, _) = count_steps(SETTLED, request).unwrap();
        assert_eq!(answer, Err(RequestError::Exhausted { units }));
        for larger in order + 1..=buddy.max_order() {
            refuse(buddy, 5, larger, SETTLED);
        }
        // What is free can still be allocated, and is found at once.
        let (half, steps) = count_steps(limit, || buddy.on(3).alloc(order - 1)).unwrap();
        assert!(half.is_ok() && steps <= 2 * SETTLED, "{steps} accesses for order {}", order - 1);
        buddy.audit().unwrap();
    });
}

/// A lane whose cursor, or home, lies below a block of another claims there, and undoes that, at most once. Lanes are of one
/// level each from order 9 on, where orders share a cursor.
#[test]
fn refusals_below_blocks_of_others_cost_no_more() {
    for units in [1 << 9, 1 << 14, 1 << 18, 1 << 22] {
        let first = OF_A_WORD * tree_words(units) + BESIDES;
        for held in [5, 7, 9, 11, 13, units.ilog2()] {
            let arena = Arena::<Steered>::new(units);
            let buddy = arena.buddy();
            let on = |lane| buddy.on(lane);
            for (lane, order) in [(1, 0), (2, 5), (4, 2)] {
                on(lane).free(on(lane).alloc(order).unwrap()).unwrap();
            }
            on(5).free(on(5).alloc_units(3).unwrap()).unwrap();
            while on(0).alloc(held.min(buddy.max_order())).is_ok() {}
            for limit in [first, SETTLED, SETTLED] {
                let small = [(1, 0), (1, 4), (2, 5), (3, 0), (3, 3), (3, 8)];
                let large = [(6, 9), (6, 12), (7, 13), (8, 17)];
                let fit = |&(_, order): &(usize, u32)| order < held.min(buddy.max_order());
                for (lane, order) in small.into_iter().chain(large.into_iter().filter(fit)) {
                    refuse(&buddy, lane, order, limit);
                }
                let batch = || on(4).alloc_batch(2, &mut [0; 8]).is_err();
                let run = || on(5).alloc_units(3).is_err();
                assert_eq!(count_steps(limit, batch).map(|(is_refused, _)| is_refused), Ok(true));
                assert_eq!(count_steps(limit, run).map(|(is_refused, _)| is_refused), Ok(true));
            }
            buddy.audit().unwrap();
        }
    }
}

/// A look for a block pays for the bounds that mislead it, as an allocation would, and claims nothing.
#[test]
fn a_look_for_a_block_makes_the_bounds_true() {
    let mut misled = 0;
    for_each_order(|buddy, order, limit| {
        hold_halves(buddy, order);
        let free = buddy.count_free();
        misled += usize::from(buddy.order_bound() >= Some(order));
        for limit in [limit, SETTLED] {
            let look = || buddy.on(order as usize).has_free(order);
            assert_eq!(count_steps(limit, look).map(|(is_free, _)| is_free), Ok(false));
            assert_eq!(buddy.order_bound(), Some(order - 1));
        }
        let look = || buddy.on(0).has_free(order - 1);
        assert_eq!(count_steps(2 * SETTLED, look).map(|(is_free, _)| is_free), Ok(true));
        assert!(!buddy.on(0).has_free(buddy.max_order() + 1));
        assert_eq!(buddy.count_free(), free);
        buddy.audit().unwrap();
    });
    assert!(misled > 20, "only {misled} bounds were too high");
}

/// Makes a request anywhere in the arena, which must be refused, within `limit` accesses.
fn refuse_run(buddy: &Buddy<'_, Steered>, request: Request, limit: u64) {
    let request = request.within(0..buddy.units());
    let (answer, _) = count_steps(limit, || buddy.on(0).request(request)).unwrap();
    assert!(matches!(answer, Err(RequestError::Exhausted { .. })), "{answer:?}");
}

/// So does a search for a run, in one level: the next one does not look where bounds promised what is not there.
#[test]
fn a_search_for_a_run_makes_the_bounds_true() {
    for_each_order(|buddy, order, limit| {
        if 2 << order <= buddy.units() {
            hold_halves(buddy, order);
            // Any such run contains a block of this order.
            let units = (2 << order) - 1;
            (0..LEVELS).for_each(|_| refuse_run(buddy, Request::units(units), limit));
            refuse_run(buddy, Request::units(units), SETTLED);
            buddy.audit().unwrap();
        }
    });
}

/// Free pieces that are too small for a run are passed over at the cost of a look at their words and at those beside,
/// also if they reach from one word into the next, or to one that somebody holds.
#[test]
fn pieces_that_are_too_small_are_judged_by_their_words() {
    let units = 1 << 14;
    let limit = OF_A_WORD * tree_words(units) + BESIDES;
    for (front, back) in [(4, 2), (2, 4), (1, 5), (6, 0), (0, 6)] {
        let arena = Arena::<Steered>::new(units);
        let buddy = arena.buddy();
        for word in 0..units / 32 {
            buddy.on(0).alloc_at(32 * word + front, 32 - front - back).unwrap();
        }
        refuse_run(&buddy, Request::units(7), limit);
        // At the next aligned place it would go on.
        refuse_run(&buddy, Request::units(7).aligned(12), 4 * BESIDES);
    }
    let arena = Arena::<Steered>::new(units);
    let buddy = arena.buddy();
    for word in (0..units / 32).step_by(2) {
        buddy.on(0).alloc_at(32 * word, 28).unwrap();
        buddy.on(0).alloc_at(32 * word + 32, 32).unwrap();
    }
    refuse_run(&buddy, Request::units(7), limit);
}

/// A search for aligned places that lie far apart does not look at the words between them, from whichever end it comes.
#[test]
fn places_far_apart_are_all_that_is_looked_at() {
    let arena = Arena::<Steered>::new(1 << 18);
    let buddy = arena.buddy();
    (0..1 << 13).for_each(|word| _ = buddy.on(0).alloc_at(32 * word, 1).unwrap());
    for (order, limit) in [(9, 2200), (12, 500), (14, 200)] {
        let request = Request::units(1).aligned(order);
        refuse_run(&buddy, request.clone(), limit);
        refuse_run(&buddy, request.top_down(), limit);
    }
}

/// Runs that leave one unit of each leaf word: the figures of this one are in the documentation.
#[test]
fn the_worst_that_is_known() {
    const UNITS: u64 = 1 << 18;
    let arena = Arena::<Steered>::new(UNITS);
    let buddy = arena.buddy();
    (0..UNITS / 32).for_each(|leaf| _ = buddy.on(0).alloc_at(32 * leaf, 31).unwrap());
    let steps = refuse(&buddy, 0, 1, OF_A_WORD * tree_words(UNITS) + BESIDES);
    assert!(steps > 3 * tree_words(UNITS), "{steps} accesses: the documentation says more");
    refuse(&buddy, 0, 1, SETTLED);
}

/// Holds everything but 31 units of a leaf word below each word of level 2, where a merge has been left to whoever
/// needs the block. Each of these words has a lane that is at home there.
fn leave_merges(buddy: &Buddy<'_, Steered>) {
    let areas = buddy.units() >> 13;
    while buddy.on(0).alloc_batch(5, &mut [0; 1024]).is_ok() {}
    for area in 0..areas as usize {
        // Lanes are spread in the order of reversed bits.
        let lane = buddy.on((area << 1).reverse_bits() >> (usize::BITS - 1 - areas.ilog2()));
        let first = (area as u64) << 13;
        lane.free(first).unwrap();
        assert_eq!(lane.alloc(0), Ok(first));
        lane.free(first).unwrap();
        assert_eq!(lane.alloc(0), Ok(first));
    }
}

#[test]
fn a_refusal_settles_each_word_once() {
    for log2 in [18, 22] {
        let units = 1 << log2;
        let words: Vec<_> =
            (0..lane_words(units as usize >> 13)).map(|_| Steered::default()).collect();
        let arena = Arena::<Steered>::new(units);
        let buddy = arena.buddy().with_lanes(&words).unwrap();
        leave_merges(&buddy);
        refuse(&buddy, 0, 5, OF_A_WORD * tree_words(units) + BESIDES);
        refuse(&buddy, 0, 5, SETTLED);
        buddy.audit().unwrap();
    }
}

/// A search enters a free area, and another lane takes the area before the search claims there.
#[test]
fn a_search_whose_claim_meets_a_block_does_not_go_on_below_it() {
    const UNITS: u64 = 1 << 18;
    let mut undone = 0;
    for step in 0.. {
        let arena = Rc::new(Arena::<Steered>::new(UNITS));
        let buddy = arena.buddy();
        buddy.on(0).alloc_batch(0, &mut [0; 512]).unwrap();
        buddy.on(1).alloc_at(512, UNITS / 2 - 512).unwrap();
        let (taken, other) = (Rc::new(Cell::new(0)), Rc::clone(&arena));
        let count = Rc::clone(&taken);
        let hook = move || {
            if count.replace(count.get() + 1) == step {
                steer(|| {}, || _ = other.buddy().on(1).alloc(17));
            }
            assert!(count.get() <= 10 * SETTLED, "more than {} accesses", 10 * SETTLED);
        };
        _ = steer(hook, || buddy.on(0).alloc(0));
        buddy.audit().unwrap();
        undone += buddy.undone();
        if taken.get() < step {
            break;
        }
    }
    assert!(undone > 0, "no claim met the block");
}

/// A request that only names a length is `alloc_units`: it gets the same place with as many accesses.
#[test]
fn a_request_for_units_alone_costs_what_alloc_units_does() {
    let [asked, plain] = [(); 2].map(|()| Arena::<Steered>::new(1 << 14));
    for units in [1, 3, 31, 40, 96, 500, 3, 40, 1000] {
        let request = || asked.buddy().on(0).request(Request::units(units));
        let alloc = || plain.buddy().on(0).alloc_units(units);
        assert_eq!(count_steps(u64::MAX, request).unwrap(), count_steps(u64::MAX, alloc).unwrap());
    }
}

/// A request that may be met anywhere, for an aligned run, does not look at each hole between such runs.
#[test]
fn holes_between_aligned_runs_are_passed_over() {
    let arena = Arena::<Steered>::new(1 << 16);
    let buddy = arena.buddy();
    let lane = buddy.on(0);
    let request = || Request::units(1).aligned(6).offset(4);
    for number in 0..500 {
        let (found, steps) = count_steps(1000, || lane.request(request())).unwrap();
        assert_eq!(found.map(|unit| (unit + 4) % 64), Ok(0));
        assert!(steps < 100, "{steps} accesses of run {number}");
    }
}

/// Holes that have a block of more than half a run, but no room for it, are looked at only some times, wherever the cursor
/// is.
#[test]
fn holes_that_are_too_small_cost_some_looks() {
    for (hole, run) in [(33, 62), (48, 62), (20, 30), (600, 1000)] {
        let arena = Arena::<Steered>::new(1 << 17);
        let buddy = arena.buddy();
        let lane = buddy.on(0);
        let step = (hole + 1_u64).next_power_of_two();
        for at in (0..1 << 16).step_by(step as usize) {
            lane.alloc_at(at + hole, step - hole).unwrap();
        }
        // The first search finds the bounds too high.
        lane.alloc_units(run).unwrap();
        for number in 0..(1 << 15) / run {
            let (found, steps) = count_steps(1000, || lane.alloc_units(run)).unwrap();
            assert!(found.is_ok_and(|at| at >= 1 << 16 || run < hole));
            assert!(steps < 700, "{steps} accesses of run {number} of {run} units");
        }
    }
}

/// Whole slots of one word are claimed as one run by one change of it, as units of a leaf word are.
#[test]
fn a_run_of_whole_slots_costs_what_a_run_in_a_leaf_does() {
    let cost = |start, units| {
        let arena = Arena::<Steered>::new(1 << 14);
        let (answer, steps) =
            count_steps(u64::MAX, || arena.buddy().on(0).alloc_at(start, units)).unwrap();
        answer.unwrap();
        arena.buddy().audit().unwrap();
        steps
    };
    let in_leaf = cost(64, 3);
    for (order, slots) in [(5, 3), (5, 13), (9, 3), (9, 7)] {
        let steps = cost(2 << order, slots << order);
        assert!(steps <= in_leaf + 4, "{steps} accesses for {slots} slots, {in_leaf} in a leaf");
    }
}

/// What the documentation says of a claim below a larger block, and of a look at a block that a claimer may have left.
#[test]
fn a_claim_below_a_block_costs_some_accesses_for_each_level() {
    // The arena has this many more levels than one of 2^24 units.
    for (log2, more) in [(9, 0), (18, 0), (24, 0), (25, 1)] {
        let arena = Arena::<Steered>::new(1 << log2);
        let buddy = arena.buddy();
        let block = buddy.on(1).alloc(2).unwrap();
        let levels = (log2 - 5_u64) / 4 + 2;
        let settled = || buddy.vouch_for(block);
        assert_eq!(settled(), Some(2));
        assert_eq!(count_steps(3 * levels, settled).map(|(order, _)| order), Ok(Some(2)));
        buddy.free(block).unwrap();
        buddy.on(1).alloc(buddy.max_order()).unwrap();
        for (lane, order) in [(0, 0), (2, 4), (3, 5), (5, 8)] {
            refuse(&buddy, lane, order, 70 + 12 * more);
            refuse(&buddy, lane, order, SETTLED);
        }
        for (start, len) in [(0, 1), (5, 100), (31, 450)] {
            let claim = || buddy.on(0).alloc_at(start, len).is_err();
            assert_eq!(count_steps(60 + 12 * more, claim).map(|(refused, _)| refused), Ok(true));
        }
    }
}
