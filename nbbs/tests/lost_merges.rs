//! Claims below a block that are undone, each while others open and merge slots of the same word.

use nbbs::RequestError;
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, Turn, count_steps, follow};

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
