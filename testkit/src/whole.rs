//! Checks that the memory is whole again.

use crate::{BackEnd, Block, Oracle, Violation};

/// Allocates the arena in full at every order, from the largest down, and frees it again: as many blocks must be
/// granted as the owner map has free, and no more. Must be called when nothing else runs.
///
/// # Errors
/// [`Violation::NotWhole`], or anything that goes wrong on the way.
pub fn check_whole<B: BackEnd + ?Sized>(back_end: &B, oracle: &Oracle) -> Result<(), Violation> {
    let orders = 0..=back_end.max_order();
    orders.rev().try_for_each(|order| check_order(back_end, oracle, order))
}

/// Does [`check_whole`] for one order.
fn check_order<B: BackEnd + ?Sized>(
    back_end: &B,
    oracle: &Oracle,
    order: u32,
) -> Result<(), Violation> {
    let expected = oracle.free_blocks(order);
    let mut held = Vec::new();
    while let Some(index) = back_end.alloc(0, order) {
        held.push(oracle.take(0, index, order)?);
    }
    let blocks = held.len() as u64;
    // In both directions, so that merges meet buddies on either side.
    if order % 2 == 1 {
        held.reverse();
    }
    held.into_iter().try_for_each(|block| free(back_end, oracle, 0, block))?;
    if blocks == expected { Ok(()) } else { Err(Violation::NotWhole { order, blocks, expected }) }
}

/// Frees a held block, first in the owner map.
pub(crate) fn free<B: BackEnd + ?Sized>(
    back_end: &B,
    oracle: &Oracle,
    lane: usize,
    block: Block,
) -> Result<(), Violation> {
    oracle.give(block)?;
    back_end
        .free(lane, block.index, block.order)
        .map_err(|reason| Violation::FreeRefused { block, reason })
}
