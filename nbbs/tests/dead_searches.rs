//! A thread that dies in a search or a repair has nothing in hand until it claims, so it must hide nothing from others.

use std::sync::atomic::AtomicBool;

use nbbs::sync::{Ordering, Word};
use nbbs::{Buddy, Request};
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, Turn, die_within, follow};

type Act<'a> = &'a (dyn Fn(&Buddy<'_, Steered>) + Sync);

const UNITS: u64 = 1024;

/// Units 0 to 31 and 256 to 511 are blocks, and everything behind; the bounds promise no more than there is.
fn scene() -> Arena<Steered> {
    let arena = Arena::<Steered>::new(UNITS);
    let buddy = arena.buddy();
    for (index, units) in [(0, 32), (256, 256), (512, 512)] {
        buddy.on(9).alloc_at(index, units).unwrap();
    }
    for order in [9, 8] {
        buddy.on(9).alloc(order).unwrap_err();
    }
    arena
}

fn copy<W: Word + Default>(arena: &Arena<W>) -> Arena {
    let copy: Arena = Arena::new(UNITS);
    for (from, to) in arena.words().iter().zip(copy.words()) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    copy
}

/// Lane 1 claims below the block at 0, which lane 2 then frees. Lane 0 finds that claim in a word above which nothing is
/// split any more. Lane 1 takes the claim back, and lane 0 dies. Returns what is left when the block at 256 is free too.
fn after(stray: Act<'_>, search: Act<'_>, [claimed, seen, last]: [u64; 3]) -> (Arena, bool) {
    let arena = scene();
    let lived = AtomicBool::new(false);
    let bodies: [Body<'_>; 3] = [
        Box::new(|| {
            let ended = die_within(0, seen + last, || search(&arena.buddy()));
            lived.store(ended.is_some(), Ordering::Relaxed);
            Ok(())
        }),
        Box::new(|| {
            stray(&arena.buddy());
            Ok(())
        }),
        Box::new(|| {
            arena.buddy().on(2).free(0).unwrap();
            Ok(())
        }),
    ];
    let script = [
        Turn::steps(1, claimed),
        Turn::rest(2),
        Turn::steps(0, seen),
        Turn::rest(1),
        Turn::rest(0),
    ];
    follow(&script, bodies.into()).unwrap();
    arena.buddy().on(3).free(256).unwrap();
    (copy(&arena), lived.into_inner())
}

/// Whatever the search has done, units 0 to 511 can be allocated as one block, unless it has claimed one of them.
#[test]
fn what_nobody_holds_is_found_whole() {
    let at = |buddy: &Buddy<'_, Steered>| {
        if buddy.on(1).alloc_at(0, 1).is_ok() {
            buddy.on(1).free(0).unwrap();
        }
    };
    let reservation = |buddy: &Buddy<'_, Steered>| {
        if buddy.reserve(0..32).is_ok() {
            buddy.release(0..32).unwrap();
        }
    };
    let searches: [(Act<'_>, Act<'_>); 5] = [
        (&at, &|buddy| buddy.mend()),
        (&at, &|buddy| _ = buddy.on(0).request(Request::units(1).within(0..32))),
        (&reservation, &|buddy| _ = buddy.on(0).alloc(0)),
        (&reservation, &|buddy| _ = buddy.on(0).alloc(4)),
        (&reservation, &|buddy| _ = buddy.on(0).alloc_batch(0, &mut [0; 40])),
    ];
    for (number, (stray, search)) in searches.into_iter().enumerate() {
        let mut deaths = 0;
        for steps in (0..10 * 24 * 8).map(|steps| [steps / 8 / 24, steps / 8 % 24, steps % 8]) {
            let (left, lived) = after(stray, search, steps);
            if lived || holds_something(&left) {
                continue;
            }
            deaths += 1;
            let whole = left.buddy().on(5).alloc(9);
            assert_eq!(whole, Ok(0), "search {number}, steps {steps:?}");
        }
        assert!(deaths > 100, "search {number}: {deaths} deaths with empty hands");
    }
}

/// Returns whether the dead thread has claimed something: then a repair of another copy brings it to light.
fn holds_something(left: &Arena) -> bool {
    let mended = copy(left);
    mended.buddy().mend();
    mended.buddy().count_free() < 512
}
