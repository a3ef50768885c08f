//! Judges which refusals are true.

use std::ops::Range;

use nbbs::{FreeError, RangeError};

use crate::{Block, Spec, Unit};

/// Returns whether a free, or a question about a block, may be refused with this error. If several things are wrong
/// with a request, each may be named.
pub(super) fn of_free(spec: &Spec, index: u64, order: Option<u32>, error: FreeError) -> bool {
    let unit = spec.unit(index);
    let max = spec.max_order();
    match error {
        FreeError::OutOfRange { start, end, units } => {
            unit.is_none() && (start, end, units) == (index, index.saturating_add(1), spec.units())
        }
        FreeError::OrderTooLarge { order: named, max: limit } => {
            order == Some(named) && named > max && limit == max
        }
        FreeError::Misaligned { index: at, order: named } => {
            let aligned = named < 64 && Block { index, order: named }.is_aligned();
            order == Some(named) && at == index && !aligned
        }
        FreeError::NotAllocated { index: named } => named == index && unit == Some(Unit::Free),
        FreeError::NotABlock { index: named } => named == index && unit == Some(Unit::Body),
        FreeError::WrongLength { index: at, units, actual } => {
            let asked = order.map(|order| 1 << order);
            at == index
                && asked == Some(units)
                && spec.len_at(index) == Some(actual)
                && units != actual
        }
        FreeError::Reserved { index: named } => named == index && unit == Some(Unit::Reserved),
        FreeError::WrongOrder { index: at, order: named, actual } => {
            let block = Block { index, order: actual };
            at == index
                && order == Some(named)
                && named != actual
                && spec.block_at(index) == Some(block)
        }
        _ => false,
    }
}

/// Returns whether a reservation may be refused with this error.
pub(super) fn of_reserve(spec: &Spec, range: &Range<u64>, error: RangeError) -> bool {
    match error {
        RangeError::InUse { unit } => {
            let near = unit..range.end.min((unit | 31) + 1);
            is_range(spec, range) && range.contains(&unit) && !spec.all(&near, Unit::Free)
        }
        error => of_bounds(spec, range, error),
    }
}

/// Returns whether a release may be refused with this error.
pub(super) fn of_release(spec: &Spec, range: &Range<u64>, error: RangeError) -> bool {
    match error {
        RangeError::NotReserved { unit } => {
            let is_reserved = |&unit: &u64| spec.unit(unit) == Some(Unit::Reserved);
            is_range(spec, range) && range.clone().find(|unit| !is_reserved(unit)) == Some(unit)
        }
        error => of_bounds(spec, range, error),
    }
}

fn of_bounds(spec: &Spec, range: &Range<u64>, error: RangeError) -> bool {
    let Range { start, end } = *range;
    !is_range(spec, range) && error == RangeError::OutOfRange { start, end, units: spec.units() }
}

fn is_range(spec: &Spec, range: &Range<u64>) -> bool {
    range.start < range.end && range.end <= spec.units()
}
