//! Blocks of `2^order` units, from one lane.
//!
//! ```text
//! alloc     claims a block where the lane claimed last
//! spare     claims a block that a free left
//! beside    claims a block beside that word     search    finds a word in which a block can be claimed
//! claim     claims a block in a given word      batch     claims and frees many blocks of one word at once
//! free      finds a block and clears it          look      says whether a block is free
//! ```

mod alloc;
mod batch;
mod beside;
mod claim;
mod free;
mod look;
mod search;
mod spare;

use crate::lane::OnLane;
use crate::layout::geometry::Geometry;
use crate::sync::Word;
use crate::tree::Tree;

/// The blocks of an arena, as one lane allocates and frees them.
pub(crate) struct Blocks<'b, W> {
    pub lane: OnLane<'b, W>,
}

copy!(Blocks<'_, W>);

impl<'b, W: Word> Blocks<'b, W> {
    #[inline(always)]
    fn tree(self) -> &'b Tree<'b, W> {
        self.lane.tree()
    }

    #[inline(always)]
    fn geometry(self) -> &'b Geometry<W> {
        self.lane.geometry()
    }
}

/// Returns the level of the words in which blocks of `order` lie, and log2 of the slots that one takes. `LEAF`: that is
/// known to be the lowest level.
#[inline(always)]
fn level_and_log2<const LEAF: bool, W: Word>(order: u32) -> (usize, u32) {
    let level = if LEAF { 0 } else { W::SHAPE.level_of(order) };
    (level, order - W::SHAPE.slot_order(level))
}
