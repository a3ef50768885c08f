//! Judges whether a refusal is honest: whether at one instant of the call every block of the order was in use, or in
//! the hands of an allocation or a free that had not returned.
//!
//! A block is in use from the return of its allocation to the beginning of its free. A free that has not returned may
//! still have the rest of its block in its hands, or no longer. An allocation that has not returned has any one free
//! block of its order in its hands, or none, whatever it returns in the end.

use super::{Answer, Call};
use crate::{Block, Spec, Unit};

/// Returns a block that was free at the last instant of the call, if the call is a refusal that is not honest.
pub(super) fn witness_against(units: u64, calls: &[Call], refusal: Call) -> Option<Block> {
    let Answer::Refused(order) = refusal.answer else { return None };
    let empty = Spec::new(units);
    if order > empty.max_order() {
        return None;
    }
    // The blocks in use only change where a call begins or returns.
    let times = calls.iter().flat_map(|call| [call.start, call.end]);
    let during = times.filter(|time| (refusal.start..refusal.end).contains(time));
    let mut witness = None;
    for time in during {
        let mut spec = empty.clone();
        for unit in in_use(calls, time).flat_map(Block::units) {
            // It is not the task of this check to find overlaps.
            spec.reserve(unit..unit + 1);
        }
        let others = calls.iter().filter(|&&call| call != refusal);
        let open = others.filter(|call| call.start <= time && time < call.end);
        let mut hands: Vec<Hand> = open.filter_map(|call| hand(call.answer)).collect();
        witness = spec.free_block(order);
        if can_hide(&mut spec, order, &mut hands) {
            return None;
        }
    }
    witness
}

/// What an operation that has not returned may have in its hands.
#[derive(Clone, Copy)]
enum Hand {
    /// Any one block of this order.
    Any(u32),
    /// What is free in this block.
    RestOf(Block),
}

fn hand(answer: Answer) -> Option<Hand> {
    match answer {
        Answer::Granted(block) => Some(Hand::Any(block.order)),
        Answer::Refused(order) => Some(Hand::Any(order)),
        Answer::Freed(block) => Some(Hand::RestOf(block)),
        Answer::NotFreed(_) => None,
    }
}

/// Iterates over the blocks whose allocation had returned just after `time`, and whose free had not begun.
fn in_use(calls: &[Call], time: u64) -> impl Iterator<Item = Block> + '_ {
    calls.iter().filter_map(move |call| {
        let Answer::Granted(block) = call.answer else { return None };
        let freed = |other: &Call| {
            other.answer == Answer::Freed(block) && call.end <= other.start && other.start <= time
        };
        (call.end <= time && !calls.iter().any(freed)).then_some(block)
    })
}

/// Returns whether the hands can take blocks so that no block of `order` is left free.
fn can_hide(spec: &mut Spec, order: u32, hands: &mut Vec<Hand>) -> bool {
    let Some(free) = spec.free_block(order) else { return true };
    for place in 0..hands.len() {
        let block = match hands[place] {
            // A smaller block hides the block that contains it, wherever it is in that block.
            Hand::Any(order) => Block { index: free.index >> order << order, order },
            Hand::RestOf(block) => block,
        };
        let is_free = |&unit: &u64| spec.unit(unit) == Some(Unit::Free);
        let rest: Vec<u64> = block.units().filter(is_free).collect();
        let whole = rest.len() as u64 == block.len();
        if rest.is_empty() || !whole && matches!(hands[place], Hand::Any(_)) {
            continue;
        }
        let hand = hands.remove(place);
        rest.iter().for_each(|&unit| _ = spec.reserve(unit..unit + 1));
        let hidden = can_hide(spec, order, hands);
        rest.iter().for_each(|&unit| _ = spec.release(unit..unit + 1));
        hands.insert(place, hand);
        if hidden {
            return true;
        }
    }
    false
}
