//! Checks what is left when all members have ended.

use std::sync::atomic::AtomicU64;

use hardware::{Shared, Stake};
use nbbs::{Invariant, Zone};
use testkit::{BackEnd, Block, Oracle, Violation, check_whole};

use crate::End;
use crate::member::alone;

/// Attaches once more. Returns how many units are lost.
///
/// # Errors
/// Units are missing that were not at stake, or the rest is not whole.
pub fn check(system: &str, shared: &Shared, stakes: &[Stake]) -> Result<u64, End> {
    let mut missing = Vec::new();
    alone(system, || {
        shared.lend_back_ends(system, &mut |base, back_end| {
            missing.extend(missing_of(back_end, shared, base)?);
            Ok(())
        })?;
        if system == "nbbs" && missing.is_empty() {
            shared.zones()?.iter().try_for_each(|zone| audit(zone, stakes))?;
        }
        excused(&missing, stakes)
    })?;
    Ok(missing.len() as u64)
}

/// Checks that a zone is in order, except the words of what was being changed when its owner died.
fn audit(zone: &Zone<'_, AtomicU64>, stakes: &[Stake]) -> Result<(), Violation> {
    let Err(broken) = zone.buddy.audit() else { return Ok(()) };
    let unit = zone.base + broken.unit;
    let half_changed = stakes.iter().filter_map(Stake::place).any(|place| place.contains(&unit));
    if broken.invariant == Invariant::Dormant && half_changed {
        return Ok(());
    }
    Err(Violation::Audit(broken.to_string()))
}

/// Checks that exactly these units may be missing: those at known places, and of the others no more than were at stake.
fn excused(missing: &[u64], stakes: &[Stake]) -> Result<(), Violation> {
    let known =
        |unit: u64| stakes.iter().filter_map(Stake::place).any(|place| place.contains(&unit));
    let elsewhere = missing.iter().filter(|unit| !known(**unit)).count() as u64;
    let anywhere = stakes.iter().filter(|stake| stake.from.is_none());
    if elsewhere <= anywhere.map(|stake| stake.units).sum() {
        return Ok(());
    }
    Err(Violation::Lost { units: missing.to_vec() })
}

/// Returns the units that nobody holds and that cannot be allocated one by one. All others must be allocatable at every
/// order, merged.
fn missing_of<B: BackEnd + ?Sized>(
    back_end: &B,
    shared: &Shared,
    base: u64,
) -> Result<Vec<u64>, Violation> {
    let (held, rest) = (shared.oracle(), Oracle::new(back_end.units()));
    for unit in (0..rest.units()).filter(|unit| !held.is_free(base + unit)) {
        rest.take(0, unit, 0)?;
    }
    // This reveals everything that a death has left behind in the words above.
    for order in (0..=back_end.max_order()).rev() {
        drain(back_end, &rest, order)?;
    }
    let missing = drain(back_end, &rest, 0)?;
    for &unit in &missing {
        rest.take(0, unit, 0)?;
    }
    check_whole(back_end, &rest)?;
    Ok(missing.into_iter().map(|unit| base + unit).collect())
}

/// Allocates all blocks of an order and frees them. Returns the free units that were in none.
fn drain<B: BackEnd + ?Sized>(
    back_end: &B,
    oracle: &Oracle,
    order: u32,
) -> Result<Vec<u64>, Violation> {
    let mut blocks: Vec<Block> = Vec::new();
    while let Some(index) = back_end.alloc(0, order) {
        blocks.push(oracle.take(0, index, order)?);
    }
    let left = (0..oracle.units()).filter(|&unit| oracle.is_free(unit)).collect();
    for block in blocks {
        oracle.give(block)?;
        let freed = back_end.free(0, block.index, order);
        freed.map_err(|reason| Violation::FreeRefused { block, reason })?;
    }
    Ok(left)
}
