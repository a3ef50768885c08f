//! Tests what a thread that died anywhere in an allocation, a free or a reservation leaves behind, once it has been
//! mended: only what it had claimed, which can be found and given back.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use nbbs::{Buddy, Piece};
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, Turn, die_before, die_within, follow};
use testkit::{Oracle, check_whole, depth};

const UNITS: [u64; 5] = [8, 33, 64, 100, 600];

/// More steps than any operation here takes.
const MANY: u64 = 10_000;

/// What was in use before the death.
#[derive(Clone, Copy, Debug)]
struct Scene {
    units: u64,
    taken: &'static [u32],
}

impl Scene {
    fn set(self, buddy: &Buddy<'_, Steered>) -> Vec<u64> {
        self.taken.iter().filter_map(|&order| buddy.on(1).alloc(order).ok()).collect()
    }
}

/// Lets `act` die before each of its steps, in every scene, and checks what is left.
fn die_everywhere(act: impl Fn(&Buddy<'_, Steered>, &[u64])) {
    for units in UNITS {
        for taken in [&[][..], &[0], &[0, 3], &[4, 0, 2]] {
            let scene = Scene { units, taken };
            let ends = (0..MANY).find(|&step| {
                let arena = Arena::<Steered>::new(units);
                let buddy = arena.buddy();
                let held = scene.set(&buddy);
                let died = die_before(step, || act(&buddy, &held)).is_none();
                assert_mends(&buddy, step, scene);
                !died
            });
            assert!(ends.is_some(), "{scene:?}: more than {MANY} steps");
        }
    }
}

/// Checks that everything in use can be found and given back, and that all is whole then.
fn assert_mends(buddy: &Buddy<'_, Steered>, step: u64, scene: Scene) {
    // What lies below a block shows when the block is free.
    for _ in 0..3 {
        buddy.mend();
        buddy.audit().unwrap_or_else(|broken| panic!("{scene:?}, step {step}: {broken}"));
        for piece in pieces(buddy) {
            match piece {
                Piece::Used { index, .. } => {
                    assert!(buddy.vouch_for(index).is_some(), "{scene:?}, step {step}: {index}");
                    buddy.on(2).free(index).unwrap();
                }
                Piece::Reserved { index, len } => buddy.release(index..index + len).unwrap(),
                _ => {}
            }
        }
    }
    buddy.mend();
    assert_eq!(buddy.count_free(), scene.units, "{scene:?}, step {step}");
    check_whole(buddy, &Oracle::new(scene.units))
        .unwrap_or_else(|violation| panic!("{scene:?}, step {step}: {violation}"));
}

fn pieces(buddy: &Buddy<'_, Steered>) -> Vec<Piece> {
    let mut found = Vec::new();
    buddy.walk(|piece| found.push(piece));
    found
}

#[test]
fn an_allocation_that_died() {
    for order in [0, 2, 4, 5, 9] {
        die_everywhere(|buddy, _| _ = buddy.on(0).alloc(order));
    }
}

#[test]
fn a_free_that_died() {
    for lane in [1, 0] {
        die_everywhere(|buddy, held| {
            held.iter().for_each(|&index| _ = buddy.on(lane).free(index));
        });
    }
}

#[test]
fn a_reservation_that_died() {
    for range in [0..8, 3..7, 5..33, 0..64, 20..100, 32..600] {
        die_everywhere(|buddy, held| {
            // Refused while something is in use there.
            let _refused = buddy.reserve(range.clone());
            held.iter().for_each(|&index| _ = buddy.on(1).free(index));
            if buddy.reserve(range.clone()).is_ok() {
                buddy.release(range.clone()).unwrap();
            }
        });
    }
}

#[test]
fn mending_that_died() {
    let half_done = |buddy: &Buddy<'_, Steered>, step| {
        let block = buddy.on(0).alloc(0).unwrap();
        let _died = die_before(step, || buddy.on(3).free(block));
        let _died = die_before(step, || buddy.on(0).alloc(3));
    };
    for step in 0..20 * depth().min(4) {
        die_everywhere(|buddy, _| {
            half_done(buddy, step % 20);
            buddy.mend();
        });
    }
}

/// A thread dies as it has claimed a unit below a split slot. An allocation that is to be refused has looked at the leaf
/// word before that, and commits in the middle of `act` that the slot is free. Calls `check` with the unit.
fn commit_late(
    act: impl Fn(&Buddy<'_, Steered>, u64) + Sync,
    mut check: impl FnMut(&Buddy<'_, Steered>, u64, &str),
) {
    for units in [64, 600] {
        for (looks, dies) in (8..24).flat_map(|looks| (6..12).map(move |dies| (looks, dies))) {
            for acts in 0..60 {
                let arena = Arena::<Steered>::new(units);
                let buddy = arena.buddy();
                // All words are in use but that of the lane's cursor.
                let block = buddy.on(1).alloc(0).unwrap();
                while buddy.on(5).alloc(5).is_ok() {}
                buddy.on(1).free(block).unwrap();
                let bodies: [Body<'_>; 3] = [
                    Box::new(|| {
                        _ = buddy.on(0).alloc(6);
                        Ok(())
                    }),
                    Box::new(|| {
                        _ = buddy.on(1).alloc(0);
                        Ok(())
                    }),
                    Box::new(|| {
                        act(&buddy, block);
                        Ok(())
                    }),
                ];
                let script = [
                    Turn::steps(0, looks),
                    Turn::last(1, dies),
                    Turn::steps(2, acts),
                    Turn::rest(0),
                    Turn::rest(2),
                ];
                follow(&script, bodies.into()).unwrap();
                check(&buddy, block, &format!("{units}: {looks} {dies} {acts}"));
            }
        }
    }
}

/// After it was mended, another mending finds no more.
#[test]
fn a_claim_that_an_inspection_missed_is_mended() {
    let mut claimed = 0;
    commit_late(
        |buddy, _| buddy.mend(),
        |buddy, unit, what| {
            let found = pieces(buddy);
            buddy.mend();
            assert_eq!(found, pieces(buddy), "{what}");
            claimed += u32::from(found.contains(&Piece::Used { index: unit, order: 0 }));
        },
    );
    assert!(claimed > 0);
}

/// Of a block that is vouched for nobody gets a part.
#[test]
fn a_claim_that_an_inspection_missed_is_vouched_for() {
    let is_there = AtomicBool::new(false);
    let mut vouched = 0;
    commit_late(
        |buddy, unit| is_there.store(buddy.vouch_for(unit).is_some(), Relaxed),
        |buddy, unit, what| {
            if is_there.load(Relaxed) {
                assert!(buddy.on(2).alloc(5).is_err(), "{what}");
                assert!(pieces(buddy).contains(&Piece::Used { index: unit, order: 0 }), "{what}");
                vouched += 1;
            }
        },
    );
    assert!(vouched > 0);
}

/// A claim by an old cursor, or at home, meets a block: the count shows that it is undone. Then the lane searches.
#[test]
fn claims_that_are_undone_are_counted() {
    let arena: Arena = Arena::new(64);
    let buddy = arena.buddy();
    let first = buddy.on(0).alloc(0).unwrap();
    buddy.on(1).free(first).unwrap();
    buddy.mend();
    let all = buddy.on(1).alloc(6).unwrap();
    assert_eq!(buddy.undone(), 0);
    for _ in 0..2 {
        assert!(buddy.on(0).alloc(0).is_err());
        assert_eq!(buddy.undone(), 1);
    }
    for _ in 0..2 {
        assert!(buddy.on(0).alloc_batch(1, &mut [0; 4]).is_err());
        assert_eq!(buddy.undone(), 1 + 4);
    }
    buddy.on(1).free(all).unwrap();
}

/// Each of two mendings may undo what the other has begun, but not again and again.
#[test]
fn mendings_side_by_side_end() {
    const LIMIT: u64 = 600;
    for (units, dies) in
        [64, 600].into_iter().flat_map(|units| (4..9).map(move |dies| (units, dies)))
    {
        for (ahead, turn) in (0..20).flat_map(|ahead| (8..16).map(move |turn| (ahead, turn))) {
            let arena = Arena::<Steered>::new(units);
            let buddy = arena.buddy();
            let _died = die_before(dies, || buddy.on(0).alloc(0));
            let mend = |lane| {
                let mended = die_within(lane, LIMIT, || buddy.mend());
                assert!(mended.is_some(), "{units}, {dies}: {ahead} ahead, then {turn} each");
                Ok(())
            };
            let bodies: [Body<'_>; 2] = [Box::new(|| mend(0)), Box::new(|| mend(1))];
            let mut script = vec![Turn::steps(0, ahead)];
            script.extend((0..LIMIT).map(|number| Turn::steps(number as usize % 2, turn)));
            follow(&script, bodies.into()).unwrap();
        }
    }
}
