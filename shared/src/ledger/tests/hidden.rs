//! A claim that died below others: no look from above sees it until they are gone.

use testkit::program::Body;
use testkit::steered::{Turn, die_before, follow};

use super::world::World;

const UNITS: u64 = 1024;

/// A claim died below a large block, which is freed before the recovery begins. Above it stands another claim, whose
/// member takes it back while the recovery looks. Whatever the recovery sees, the next one finds what died.
#[test]
fn below_a_claim_that_is_taken_back() {
    let mut missed = 0;
    for looks in (0..2500).step_by(10) {
        let world = World::new(UNITS);
        let (mut large, mut other) = (world.sit(0), world.sit(2));
        let (mut dead, mut recoverer) = (world.sit(1), world.sit(3));
        // Leaves cursors in an area that is free then.
        other.alloc(5).unwrap();
        other.free().unwrap();
        dead.alloc(0).unwrap();
        dead.free().unwrap();
        large.alloc(9).unwrap();
        large.alloc(9).unwrap();
        // Claims unit 0, below the large block, and dies before it looks up.
        assert!(die_before(8, || dead.alloc(0)).is_none());
        drop(dead);
        world.kill(1);
        let mut found = None;
        let (taker, seen, claimer, holder) = (&mut recoverer, &mut found, &mut other, &mut large);
        let bodies: Vec<Body<'_>> = vec![
            Box::new(move || claimer.alloc(5)),
            Box::new(move || holder.free().and_then(|()| holder.free())),
            Box::new(move || {
                *seen = Some((taker.recover()?, taker.recover()?));
                Ok(())
            }),
        ];
        let script = [
            Turn::steps(0, 14), // claims units 0 to 31, and has seen the large block above
            Turn::rest(1),      // which is freed
            Turn::steps(2, looks),
            Turn::steps(0, 2), // takes its claim back
            Turn::rest(2),
            Turn::rest(0),
        ];
        follow(&script, bodies).unwrap_or_else(|found| panic!("{looks}: {found}"));
        let (first, _) = found.unwrap();
        missed += usize::from(first.freed + first.kept + first.pending == 0);
        other.free().unwrap();
        world.assert_whole(&mut recoverer, &format!("{looks} looks"));
    }
    // Otherwise this test has lost what it is about.
    assert!(missed > 0, "no recovery missed it");
}
