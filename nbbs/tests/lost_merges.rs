//! Claims below a block that are undone, each while others open and merge slots of the same word.

use nbbs::RequestError;
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, Turn, count_steps, die_within, follow};

/// The claim of lane 0 is undone below lane 2's block; whenever its merge is about to end, lane 1 comes by with a claim
/// of its own. However often that happens, nothing stays split below the block, which could then not be cut.
#[test]
fn an_undone_claim_leaves_nothing_split() {
    const TIMES: usize = 6;
    let stray = |arena: &Arena<Steered>, lane, unit| {
        let refused = arena.buddy().on(lane).alloc_at(unit, 1);
        assert!(matches!(refused, Err(RequestError::InUse { .. })), "{refused:?}");
    };
    let held = || {
        let arena = Arena::<Steered>::new(1024);
        arena.buddy().on(2).alloc_at(0, 512).unwrap();
        arena
    };
    let (_, steps) = count_steps(100, || stray(&held(), 1, 32)).unwrap();
    for (first, again) in (1..20).flat_map(|first| (1..8).map(move |again| (first, again))) {
        let arena = held();
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                stray(&arena, 0, 320);
                Ok(())
            }),
            Box::new(|| {
                (0..TIMES).for_each(|_| stray(&arena, 1, 32));
                Ok(())
            }),
        ];
        let mut script = vec![Turn::steps(0, first)];
        for _ in 0..TIMES {
            script.extend([Turn::steps(1, steps), Turn::steps(0, again)]);
        }
        follow(&script, bodies).unwrap();
        let (audit, cut) = (arena.buddy().audit(), arena.buddy().on(2).shrink(0, 100));
        assert!(audit.is_ok() && cut.is_ok(), "{first}, then {again}: {audit:?}, {cut:?}");
    }
}

/// Lane 0 takes a claim back below a block that lane 2 has freed meanwhile, and goes up past the free slot. Lane 1 merges
/// the word beside it. Each may undo what the other has done to the word above, but not again and again.
#[test]
fn merges_side_by_side_end() {
    const LIMIT: u64 = 300;
    let merge = |before: [u64; 3], turns: [u64; 2]| {
        let arena = Arena::<Steered>::new(1024);
        let buddy = arena.buddy();
        for (index, units) in [(0, 32), (40, 5), (64, 32)] {
            buddy.on(9).alloc_at(index, units).unwrap();
        }
        let act = |lane, act: &dyn Fn()| {
            assert!(die_within(lane, LIMIT, act).is_some(), "{before:?}, then {turns:?}");
            Ok(())
        };
        let bodies: [Body<'_>; 3] = [
            Box::new(|| act(0, &|| _ = buddy.on(0).alloc_at(0, 1))),
            Box::new(|| act(1, &|| buddy.on(1).free_units(40, 5).unwrap())),
            Box::new(|| act(2, &|| _ = buddy.on(2).free(0).unwrap())),
        ];
        let [claimed, undone, merged] = before;
        let mut script = vec![
            Turn::steps(0, claimed),
            Turn::rest(2),
            Turn::steps(0, undone),
            Turn::steps(1, merged),
        ];
        for _ in 0..LIMIT {
            script.extend([0, 1].map(|lane| Turn::steps(lane, turns[lane])));
        }
        follow(&script, bodies.into()).unwrap();
    };
    for claimed in 2..10 {
        for (undone, merged) in
            (0..6).flat_map(|undone| (0..14).map(move |merged| (undone, merged)))
        {
            for turns in [[3, 6], [4, 5], [4, 6], [4, 7], [5, 6]] {
                merge([claimed, undone, merged], turns);
            }
        }
    }
}
