//! Requests for runs, where the first place that they try is taken from them: the others are tried as well.

use std::cell::Cell;
use std::rc::Rc;

use nbbs::{Buddy, Request};
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, Turn, count_steps, die_before, follow, steer};

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

/// A bounded search finds the place that an unbounded one finds, or nothing; and that if the holes before it are no more.
#[test]
fn bounded_searches_find_the_same_place_or_none() {
    for (hole, units, top_down) in
        [(5, 9, false), (5, 9, true), (40, 65, false), (40, 65, true), (20, 33, true)]
    {
        let arena = Arena::<Steered>::new(1 << 11);
        let buddy = arena.buddy();
        let lane = buddy.on(0);
        let step = (hole + 1_u64).next_power_of_two();
        // Ten holes on each side of what is free.
        let holes = (0..10 * step).step_by(step as usize);
        let end = 1 << 11;
        for at in holes.clone().chain(holes.map(|at| end - step - at)) {
            lane.alloc_at(at + hole, step - hole).unwrap();
        }
        let request = || within(units, end, top_down);
        let unbounded = lane.request(request()).unwrap();
        lane.free(unbounded).unwrap();
        let mut found = Vec::new();
        for looks in 0..30 {
            let bounded = lane.request(request().looks(looks)).ok();
            assert!(bounded.is_none_or(|at| at == unbounded), "{looks} looks: {bounded:?}");
            bounded.map(|at| lane.free(at).unwrap());
            found.push(bounded.is_some());
        }
        assert!(found.is_sorted() && !found[0] && !found[5] && found[29], "{found:?}");
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

/// An arena of 512 units in which units 0 to 127 are free, but two merges wait there; and units 300,
/// 310 and those of `others` are held.
fn with_waiting_merges(others: &[(u64, u64)]) -> Arena<Steered> {
    let arena = Arena::new(512);
    let buddy = arena.buddy();
    let lane = buddy.on(0);
    // Frees leave the words at the lane's cursors split, though they are empty.
    let first = lane.alloc(0).unwrap();
    lane.alloc_at(1, 63).unwrap();
    let second = lane.alloc(1).unwrap();
    lane.free(1).unwrap();
    for &(index, units) in [(300, 1), (310, 1)].iter().chain(others) {
        lane.alloc_at(index, units).unwrap();
    }
    lane.free(first).unwrap();
    lane.free(second).unwrap();
    assert_eq!((first, second, buddy.is_free(0..128)), (0, 64, Ok(true)));
    arena
}

type Act = fn(&Buddy<'_, Steered>);

/// A request, at each of whose steps others begin and end something elsewhere.
fn beside(others: &[(u64, u64)], request: &Request, steps: &[u64], acts: &[Act]) {
    let arena = with_waiting_merges(others);
    let (buddy, mut found) = (arena.buddy(), None);
    let answer = &mut found;
    let mut bodies: Vec<Body<'_>> = vec![Box::new(|| {
        *answer = Some(buddy.on(1).request(request.clone()));
        Ok(())
    })];
    let mut script = Vec::new();
    for (number, (&act, &step)) in acts.iter().zip(steps).enumerate() {
        bodies.push(Box::new(move || {
            act(&buddy);
            Ok(())
        }));
        script.extend([Turn::steps(0, step), Turn::rest(number + 1)]);
    }
    script.push(Turn::rest(0));
    follow(&script, bodies).unwrap_or_else(|wrong| panic!("{steps:?}: {wrong}"));
    assert!(matches!(found, Some(Ok(_))), "{request:?}, others at {steps:?}: {found:?}");
    buddy.audit().unwrap_or_else(|broken| panic!("{steps:?}: {broken}"));
}

/// Merges wait where the run is to be, and others change the word above them: what is free throughout is found.
#[test]
fn beside_changes_elsewhere_while_merges_wait() {
    let frees: Act = |buddy| _ = buddy.free(300).unwrap();
    let frees_another: Act = |buddy| _ = buddy.free(310).unwrap();
    let allocates: Act = |buddy| _ = buddy.on(2).alloc_at(352, 1).unwrap();
    for request in [
        Request::block(7).within(0..128),
        Request::units(100).within(0..128).top_down(),
        Request::units(127).within(0..128),
    ] {
        for step in 0..60 {
            beside(&[], &request, &[step], &[frees]);
            beside(&[], &request, &[step], &[allocates]);
            for again in 1..30 {
                beside(&[], &request, &[step, again], &[frees, allocates]);
            }
        }
    }
    // Nothing else is free, and no place is asked for.
    let all = [(128, 172), (301, 9), (311, 201)];
    for (step, again) in (0..40).flat_map(|step| (1..60).map(move |again| (step, again))) {
        beside(&all, &Request::units(127), &[step, again], &[frees, frees_another]);
    }
}

/// Merges wait where the run is to be, and wait again at each step of the search in turn: two lanes have allocated a unit
/// in one of its words each, and freed it. At every access of the search all of the units are free.
#[test]
fn beside_merges_that_begin_to_wait() {
    let acts = |buddy: &Buddy<'_, Steered>| {
        let Ok(one) = buddy.on(1).alloc(0) else { return };
        // So that the other's is in the other word.
        let rest = buddy.on(3).alloc_at((one & !31) + u64::from(one & 31 == 0), 31);
        let other = buddy.on(2).alloc(0);
        // Each lane leaves the word at its cursor split.
        for (lane, unit) in [(3, rest.ok()), (1, Some(one)), (2, other.ok())] {
            unit.into_iter().for_each(|unit| _ = buddy.on(lane).free(unit).unwrap());
        }
    };
    for (units, order, all) in [(63, 0, 4096), (64, 5, 4096), (63, 0, 8192), (64, 0, 16384)] {
        for (step, waits) in (0..60).flat_map(|step| [(step, false), (step, true)]) {
            let arena = Rc::new(Arena::<Steered>::new(all));
            let buddy = arena.buddy();
            buddy.on(0).alloc_at(64, all - 64).unwrap();
            if waits {
                acts(&buddy);
            }
            let (others, count) = (Rc::clone(&arena), Cell::new(0));
            let hook = move || {
                if count.replace(count.get() + 1) == step {
                    steer(|| {}, || acts(&others.buddy()));
                }
            };
            let request = within(units, all, false).aligned(order);
            let found = steer(hook, || buddy.on(0).request(request));
            assert!(found.is_ok(), "{units} units of {all}, step {step}: {found:?}");
            buddy.audit().unwrap();
        }
    }
}
