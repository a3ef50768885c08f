//! Judges by the specification what a call may answer if no other lane disturbs it.

use std::ops::Range;

use testkit::program::{No, has_place};
use testkit::{Oracle, Spec, Unit, Violation};

use crate::calls::Call;

/// Returns the specification of what the owner map knows: blocks and runs count as units that are not free.
fn spec(oracle: &Oracle) -> Spec {
    let mut spec = Spec::new(oracle.units());
    for unit in (0..oracle.units()).filter(|&unit| !oracle.is_free(unit)) {
        spec.reserve(unit..unit + 1);
    }
    spec
}

/// Judges the refusal of a block of the order.
pub fn exhausted(oracle: &Oracle, order: u32) -> Result<(), Violation> {
    spec(oracle).check_refusal(order)
}

/// Judges the refusal of the units of a range.
pub fn in_use(oracle: &Oracle, range: &Range<u64>) -> Result<(), Violation> {
    if range.clone().all(|unit| oracle.is_free(unit)) {
        return Err(Violation::wrong(format!("{range:?}"), "free", "in use"));
    }
    Ok(())
}

/// Judges a granted call, with `index` as the first unit.
pub fn granted(oracle: &Oracle, call: &Call, index: u64) -> Result<(), Violation> {
    match call {
        Call::At(held) if held.index != index => {
            Err(Violation::wrong(format!("{call:?}"), held, index))
        }
        Call::Within { units, order, range, top_down } => {
            let mut spec = spec(oracle);
            spec.release(index..index + units);
            let place = spec.place(*units, *order, range, *top_down);
            if place == Some(index) {
                return Ok(());
            }
            Err(Violation::wrong(format!("{call:?}"), place, index))
        }
        _ => Ok(()),
    }
}

/// Judges a refused call.
pub fn refused(oracle: &Oracle, call: &Call, no: No) -> Result<(), Violation> {
    let spec = spec(oracle);
    let all = 0..spec.units();
    let right = match (call, no) {
        (Call::Units(units), No::Exhausted) => spec.place(*units, 0, &all, false).is_none(),
        (Call::Within { units, order, range, top_down }, No::Exhausted) => {
            has_place(*units, *order, range)
                && spec.place(*units, *order, range, *top_down).is_none()
        }
        (Call::Within { units, order, range, .. }, No::Nowhere) => {
            !has_place(*units, *order, range)
        }
        (Call::At(at), No::InUse(_)) => !spec.all(&(at.index..at.index + at.len), Unit::Free),
        (Call::Grow(held, units), No::InUse(_)) => {
            !spec.all(&(held.index + held.len..held.index + units), Unit::Free)
        }
        _ => false,
    };
    if right { Ok(()) } else { Err(Violation::wrong(format!("{call:?}"), "something else", no)) }
}
