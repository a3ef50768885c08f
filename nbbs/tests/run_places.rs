//! Requests for runs, where the first place that they try is taken from them: the others are tried as well.

use std::cell::Cell;
use std::rc::Rc;

use nbbs::{Buddy, Request};
use testkit::program::Arena;
use testkit::steered::{Steered, count_steps, die_before, steer};

/// A request for `units` units in `0..all`, at the first place or the last.
fn within(units: u64, all: u64, top_down: bool) -> Request {
    let request = Request::units(units).within(0..all);
    if top_down { request.top_down() } else { request }
}

/// A claim whose thread died, before the slots above were split, is not to be seen from above. It costs its own unit
/// and no other: the rest is found by a request, at the first place or the last.
#[test]
fn beside_the_claim_of_a_dead_thread() {
    for (units, dead, all) in (1..20).flat_map(|units| {
        (0..32).flat_map(move |dead| (dead + 1..=32).step_by(3).map(move |all| (units, dead, all)))
    }) {
        let places = 0..(all + 1_u64).saturating_sub(units);
        let mut free = places.filter(|&unit| !(unit..unit + units).contains(&dead));
        let expected = [free.next(), free.next_back()];
        let expected = [expected[0], expected[1].or(expected[0])];
        for (top_down, expected) in [false, true].into_iter().zip(expected) {
            let arena = Arena::<Steered>::new(64);
            let buddy = arena.buddy();
            // It has claimed the unit, and looks up next.
            assert!(die_before(3, || buddy.on(1).alloc_at(dead, 1)).is_none());
            let found = buddy.on(0).request(within(units, all, top_down)).ok();
            assert_eq!(found, expected, "{units} units in 0..{all}, without {dead}: {top_down}");
        }
    }
}

/// Another lane takes the first unit, or the last, or one in the middle, at each step of the search in turn. As the
/// rest is free throughout, the request is met.
#[test]
fn beside_a_claim_during_the_search() {
    for (all, free, units) in [(32, 5..13, 7), (96, 20..60, 39), (600, 20..560, 510)] {
        for taken in [free.start, free.end - 1, free.start + (free.end - free.start - units) / 2] {
            for (top_down, step) in (0..400).map(|number| (number % 2 == 1, number / 2)) {
                let arena = Rc::new(Arena::<Steered>::new(all));
                let buddy = arena.buddy();
                buddy.on(2).alloc_at(0, free.start).unwrap();
                buddy.on(2).alloc_at(free.end, all - free.end).unwrap();
                let (other, count) = (Rc::clone(&arena), Cell::new(0));
                let hook = move || {
                    if count.replace(count.get() + 1) == step {
                        steer(|| {}, || _ = other.buddy().on(1).alloc_at(taken, 1));
                    }
                };
                let found = steer(hook, || buddy.on(0).request(within(units, all, top_down)));
                let there_is = |first: u64| {
                    first + units <= free.end && !(first..first + units).contains(&taken)
                };
                let possible = (free.start..free.end).any(there_is);
                assert!(found.is_ok() || !possible, "{units} of {free:?}, {taken} at step {step}");
                buddy.audit().unwrap();
            }
        }
    }
}

/// A search does not try place after place where one claim is in the way of all of them. Its thread has died, or has
/// been stopped, before the slots above were split: a look from the top does not see it.
#[test]
fn a_claim_in_the_way_is_passed_at_once() {
    const UNITS: u64 = 1 << 18;
    let cost = |units, claim: &dyn Fn(&Buddy<'_, Steered>)| {
        let arena = Arena::<Steered>::new(UNITS);
        let buddy = arena.buddy();
        assert!(die_before(3, || claim(&buddy)).is_none());
        let request = || buddy.on(0).request(within(units, UNITS, false));
        let (found, steps) = count_steps(3000, request).unwrap();
        assert!(found.is_ok());
        steps
    };
    for order in [5, 9, 13, 16] {
        for units in [1, 5, 100, 500] {
            let steps = cost(units, &|buddy| _ = buddy.on(1).alloc(order));
            assert!(steps < 200, "{units} units beside order {order}: {steps} accesses");
        }
    }
    for unit in [1, 31, 32, 33, 5000, UNITS / 2 - 1, UNITS / 2] {
        let steps = cost(UNITS / 2 - 1, &|buddy| _ = buddy.on(1).alloc_at(unit, 1));
        assert!(steps < 400, "beside unit {unit}: {steps} accesses");
    }
}
