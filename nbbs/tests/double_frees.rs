//! Tests that exactly one of several threads that free the same block at the same time succeeds.

use nbbs::sync::Word;
use nbbs::{Buddy, FreeError};
use testkit::Violation;
use testkit::program::{Arena, Body};
use testkit::steered::{Schedule, Steered, Turn, at_once, follow};

/// Sizes of one level to four, the last with several lanes.
const ARENAS: [u64; 4] = [20, 64, 600, 20_000];

/// Allocates a block of `order`, lets three threads free it, and checks that one did. A neighbour is held meanwhile or
/// not, so that the block's word empties or does not.
fn race_to_free<W: Word>(
    buddy: Buddy<'_, W>,
    order: u32,
    with_neighbour: bool,
    together: impl FnOnce(Vec<Body<'_>>) -> Result<(), Violation>,
) {
    let index = buddy.on(0).alloc(order).expect("everything was freed");
    let neighbour = if with_neighbour { buddy.on(0).alloc(order).ok() } else { None };
    let mut answers = [None; 3];
    let bodies = answers.iter_mut().enumerate().map(|(lane, answer)| -> Body<'_> {
        Box::new(move || {
            *answer = Some(match lane {
                0 => buddy.on(lane).free(index),
                _ => buddy.on(lane).free_sized(index, order).map(|()| 1 << order),
            });
            Ok(())
        })
    });
    together(bodies.collect()).unwrap();

    let granted = answers.iter().filter(|&&answer| answer == Some(Ok(1 << order))).count();
    let error = Some(Err(FreeError::NotAllocated { index }));
    let refused = answers.iter().filter(|&&answer| answer == error).count();
    assert_eq!((granted, refused), (1, 2), "order {order} at {index}: {answers:?}");
    assert!(neighbour.is_none_or(|index| buddy.free(index) == Ok(1 << order)));
}

fn check_whole<W: Word>(buddy: Buddy<'_, W>) {
    buddy.audit().unwrap();
    assert_eq!(buddy.stats().free_units, buddy.units());
    assert_eq!(buddy.alloc(buddy.max_order()).map(|block| buddy.free(block).is_ok()), Ok(true));
}

#[test]
fn by_chance() {
    for units in ARENAS {
        let arena: Arena = Arena::new(units);
        for order in (0..=units.ilog2()).filter(|order| [0, 3, 4, 5, 8, 9, 13].contains(order)) {
            for round in 0..200 {
                race_to_free(arena.buddy(), order, round % 2 == 0, at_once);
            }
            check_whole(arena.buddy());
        }
    }
}

#[test]
fn by_schedule() {
    for units in ARENAS {
        let arena = Arena::<Steered>::new(units);
        for order in (0..=units.ilog2()).filter(|order| [0, 4, 5, 9, 13].contains(order)) {
            for seed in 0..400 {
                let schedule = Schedule { seed, stalls: seed as u32 % 4, steps: 40 };
                let together = |bodies: Vec<Body<'_>>| schedule.run(bodies).map(|_| ());
                race_to_free(arena.buddy(), order, seed % 8 < 4, together);
            }
            check_whole(arena.buddy());
        }
    }
}

/// Unit 63 is the last of the head of a run that is just then grown: it shows the code of a block, with a rest behind
/// it.
#[test]
fn the_last_unit_of_a_hidden_head_is_no_block() {
    let mut met = 0;
    for stop in 0..80 {
        let arena = Arena::<Steered>::new(1024);
        let buddy = arena.buddy();
        buddy.on(0).alloc_at(40, 60).unwrap();
        let (mut grown, mut freed) = (None, None);
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                grown = Some(buddy.on(0).grow(40, 120));
                Ok(())
            }),
            Box::new(|| {
                freed = Some(buddy.on(1).free(63));
                Ok(())
            }),
        ];
        follow(&[Turn::steps(0, stop), Turn::rest(1), Turn::rest(0)], bodies).unwrap();
        match freed.unwrap() {
            Err(FreeError::Reserved { index: 63 }) => met += 1,
            Err(FreeError::NotABlock { index: 63 }) => {}
            answer => panic!("stopped before step {stop}: {answer:?}"),
        }
        assert_eq!((grown, buddy.len_of(40)), (Some(Ok(())), Ok(120)));
    }
    assert!(met > 0);
}

/// Somebody frees a unit once more, while it is being claimed. What that claim splits afterwards is merged: all of the
/// arena can be allocated as one block.
#[test]
fn a_claim_that_is_freed_as_it_climbs_leaves_no_split_behind() {
    type Claim = fn(&Buddy<'_, Steered>) -> Option<u64>;
    let claims: [(u32, Claim); 4] = [
        (0, |buddy| buddy.on(0).alloc(0).ok()),
        (0, |buddy| buddy.on(0).alloc_batch(0, &mut [0]).ok().map(|_| 0)),
        (0, |buddy| buddy.on(0).alloc_at(0, 1).ok()),
        (5, |buddy| buddy.on(0).alloc(5).ok()),
    ];
    for (number, (order, claim)) in claims.into_iter().enumerate() {
        let mut met = 0;
        for stop in 0..60 {
            let arena = Arena::<Steered>::new(8192);
            let buddy = arena.buddy();
            let (mut claimed, mut freed) = (None, None);
            let bodies: Vec<Body<'_>> = vec![
                Box::new(|| {
                    claimed = claim(&buddy);
                    Ok(())
                }),
                Box::new(|| {
                    freed = buddy.on(1).free_sized(0, order).ok();
                    Ok(())
                }),
            ];
            follow(&[Turn::steps(0, stop), Turn::rest(1), Turn::rest(0)], bodies).unwrap();
            met += u32::from(freed.is_some());
            assert!(buddy.audit().is_ok(), "claim {number}, stopped after {stop} steps");
            if freed.is_some() {
                claimed.and_then(|index| buddy.free(index).ok());
                check_whole(buddy);
            }
        }
        assert!(met > 1, "claim {number}");
    }
}
