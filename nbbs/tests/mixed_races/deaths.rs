//! What the dead may cost: what they had in hand, and nothing else.

use std::collections::BTreeSet;
use std::ops::Range;

use fastrand::Rng;
use nbbs::sync::Word;
use nbbs::{Buddy, Piece, ResizeError};
use testkit::Block;
use testkit::program::Held;

use crate::world::{Claims, World, range};

/// Judges an arena in which some have died and all others have returned: before it is mended, while the others hold
/// what they have, and once they have freed it.
pub fn judge<W: Word>(buddy: &Buddy<'_, W>, mut world: World, random: &mut Rng) {
    if random.bool() {
        judge_unmended(buddy, &world, random);
    }
    buddy.mend();
    check_audit(buddy, &world);
    free_all(buddy, &mut world, random);
    buddy.mend();
    check_audit(buddy, &world);
    let in_use = in_use(buddy);
    check_lost(&in_use, &world);
    let is_free = |range: Range<u64>| range.into_iter().all(|unit| !in_use.contains(&unit));
    for order in 0..=buddy.max_order() {
        let free = blocks(buddy, order).filter(|block| is_free(block.units())).count();
        assert_eq!(buddy.here().has_free(order), free > 0, "order {order}");
        assert_eq!(drain(buddy, order, random), free, "order {order}, in use: {in_use:?}");
        check_audit(buddy, &world);
    }
    for _ in 0..4 {
        let Some(stretch) = stretch(buddy.units(), |unit| !in_use.contains(&unit), random) else {
            break;
        };
        check_changes(buddy, stretch, random);
    }
    check_audit(buddy, &world);
    assert_eq!(in_use, self::in_use(buddy));
}

/// Before anything is mended, what nobody had in hand can be allocated.
fn judge_unmended<W: Word>(buddy: &Buddy<'_, W>, world: &World, random: &mut Rng) {
    for order in 0..=buddy.max_order() {
        let is_free = |block: &Block| block.units().all(|unit| world.is_free(unit));
        let free = blocks(buddy, order).filter(is_free).count() as u64;
        let spoilt: u64 = world.claims_of_the_dead().map(|claims| claims.spoils(1 << order)).sum();
        let found = drain(buddy, order, random) as u64;
        assert!(found + spoilt >= free, "order {order}: {found} of {free}, {spoilt} in dead hands");
    }
    let no_claims = world.claims_of_the_dead().all(|claims| claims.spoils(1) == 0);
    if no_claims
        && let Some(Range { start, end }) =
            stretch(buddy.units(), |unit| world.is_free(unit), random)
    {
        assert_eq!(buddy.here().alloc_at(start, end - start), Ok(start));
        assert_eq!(buddy.free(start), Ok(end - start));
    }
}

/// Draws a stretch of units that are free.
fn stretch(units: u64, is_free: impl Fn(u64) -> bool, random: &mut Rng) -> Option<Range<u64>> {
    let start = (random.u64(..units)..units).find(|&unit| is_free(unit))?;
    let end = (start..units).find(|&unit| !is_free(unit)).unwrap_or(units);
    Some(start..random.u64(start + 1..=end))
}

fn blocks<W: Word>(buddy: &Buddy<'_, W>, order: u32) -> impl Iterator<Item = Block> {
    (0..buddy.units() >> order).map(move |number| Block { index: number << order, order })
}

/// Allocates blocks of an order until it is refused, and frees them. Returns how many there were.
fn drain<W: Word>(buddy: &Buddy<'_, W>, order: u32, random: &mut Rng) -> usize {
    let lane = buddy.on(random.usize(..8));
    let mut found = Vec::new();
    while let Ok(index) = lane.alloc(order) {
        found.push(index);
    }
    random.shuffle(&mut found);
    for &index in &found {
        assert_eq!(buddy.on(random.usize(..8)).free(index), Ok(1 << order));
    }
    found.len()
}

/// An audit may name units that are in dead hands, or what the dead claimed below a block.
fn check_audit<W: Word>(buddy: &Buddy<'_, W>, world: &World) {
    let Err(broken) = buddy.audit() else { return };
    let in_hand = |unit| world.hands_of_the_dead().any(|hand| hand.contains(&unit));
    let claimed = world.claims_of_the_dead().any(|claims| claims.spoils(1) > 0)
        && in_use(buddy).contains(&broken.unit);
    assert!(in_hand(broken.unit) || claimed, "{broken}");
}

/// Frees what is held, also by the dead, cut in two where that can be.
fn free_all<W: Word>(buddy: &Buddy<'_, W>, world: &mut World, random: &mut Rng) {
    let may_fail =
        !world.no_change_died() || world.claims_of_the_dead().any(|claims| claims.spoils(1) > 0);
    for held in world.held.iter_mut().flat_map(std::mem::take) {
        let Held { index, mut len } = held;
        let lane = buddy.on(random.usize(..8));
        assert_eq!(buddy.len_of(index), Ok(len));
        if len > 1 && random.bool() {
            let first = random.u64(1..len);
            match lane.split_off(index, first) {
                Ok(second) => {
                    assert_eq!(lane.free(second), Ok(len - first));
                    len = first;
                }
                Err(ResizeError::Contended { .. }) if may_fail => {}
                Err(error) => panic!("{held:?} is not cut after {first}: {error}"),
            }
        }
        assert_eq!(lane.free(index), Ok(len), "{:?}", range(held));
    }
    for range in world.reserved.iter_mut().flat_map(std::mem::take) {
        buddy.release(range).unwrap();
    }
}

/// Returns the units that are in use, or reserved.
fn in_use<W: Word>(buddy: &Buddy<'_, W>) -> BTreeSet<u64> {
    let mut units: BTreeSet<u64> = (0..buddy.units()).collect();
    buddy.walk(|piece| {
        if let Piece::Free { index, order } = piece {
            (index..index + (1 << order)).for_each(|unit| _ = units.remove(&unit));
        }
    });
    units
}

/// Checks that what is in use, when all that is held was freed, is what the dead had in hand.
fn check_lost(in_use: &BTreeSet<u64>, world: &World) {
    let mut lost = in_use.clone();
    world.hands_of_the_dead().flatten().for_each(|unit| _ = lost.remove(&unit));
    let most: u64 = world
        .claims_of_the_dead()
        .map(|claims| match claims {
            Claims::Nothing => 0,
            Claims::Blocks(count, order) => count << order,
            Claims::Run(len) => len,
        })
        .sum();
    assert!(lost.len() as u64 <= most, "lost: {lost:?}, at most {most}");
}

/// Checks that free units can be had at their place, and cut, while nobody is at work.
fn check_changes<W: Word>(buddy: &Buddy<'_, W>, stretch: Range<u64>, random: &mut Rng) {
    let (start, len) = (stretch.start, stretch.end - stretch.start);
    let lane = buddy.on(random.usize(..8));
    assert_eq!(lane.alloc_at(start, len), Ok(start), "{len} units");
    let mut first = len;
    if len > 1 {
        first = random.u64(1..len);
        match random.u32(..3) {
            0 => lane.shrink(start, first).unwrap(),
            1 => {
                assert_eq!(lane.split_off(start, first), Ok(start + first));
                assert_eq!(lane.free(start + first), Ok(len - first));
            }
            _ => lane.free_part(start, start + first..start + len).unwrap(),
        }
    }
    if random.bool() {
        lane.grow(start, len).unwrap();
        first = len;
    }
    assert_eq!(lane.free(start), Ok(first));
}
