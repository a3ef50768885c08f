//! Allocates and frees blocks of any allocator.

use std::ops::Deref;
use std::sync::atomic::AtomicU32;

use testkit::program::Held;
use testkit::{BackEnd, Block, Violation};

use crate::hands::{Actor, Hands, below};

/// An actor that allocates and frees blocks.
#[derive(Debug)]
pub struct Blocks<'a, B: ?Sized, M = Box<[AtomicU32]>> {
    /// The allocator.
    pub back_end: &'a B,
    /// What the actor holds.
    pub hands: Hands<'a, M>,
    /// The lane.
    pub lane: usize,
}

impl<B: BackEnd + ?Sized, M: Deref<Target = [AtomicU32]>> Blocks<'_, B, M> {
    fn alloc(&self) -> Result<(), Violation> {
        let orders = u64::from(self.back_end.max_order()) + 1;
        // Mostly small orders, and now and then the largest.
        let order = if below(4) == 0 { orders - 1 } else { below(orders) / 2 } as u32;
        self.hands.stakes(1 << order);
        if let Some(index) = self.back_end.alloc(self.lane, order) {
            let held = Held { index, len: 1 << order };
            self.hands.take(held)?;
            // A handler may have filled the slot in the meantime.
            self.hands.exchange(Some(held)).map_or(Ok(()), |other| self.free(other))?;
        }
        Ok(())
    }

    fn free(&self, held: Held) -> Result<(), Violation> {
        let block = Block { index: held.index, order: held.len.ilog2() };
        self.hands.stakes_on(held);
        self.hands.give(held)?;
        let freed = self.back_end.free(self.lane, block.index, block.order);
        freed.map_err(|reason| Violation::FreeRefused { block, reason })
    }
}

impl<B: BackEnd + ?Sized, M: Deref<Target = [AtomicU32]>> Actor for Blocks<'_, B, M> {
    fn act(&self) -> Result<(), Violation> {
        let done = self.hands.exchange(None).map_or_else(|| self.alloc(), |held| self.free(held));
        self.hands.stakes_nothing();
        done
    }

    fn give_back(&self) -> Result<(), Violation> {
        self.hands.empty().try_for_each(|held| self.free(held))
    }
}
