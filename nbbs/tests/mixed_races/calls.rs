//! The calls that a lane makes, drawn at random, and how their answers are judged.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fastrand::Rng;
use nbbs::sync::Word;
use nbbs::{AllocError, Buddy, Lane};
use testkit::program::{Ask, Held, No, Subject};
use testkit::{BackEnd, Block};

use crate::world::{Claims, Ended, World, range};

/// A kind of call.
#[derive(Clone, Copy)]
pub enum Kind {
    Alloc,
    Free,
    Mend,
    Look,
    Run,
    Cut,
    Grow,
    Batch,
    FreeBatch,
    Split,
    Reserve,
    Release,
}

use Kind::{Alloc, Batch, Cut, Free, FreeBatch, Grow, Look, Mend, Release, Reserve, Run, Split};

/// All kinds, the frequent ones several times.
pub const ALL: &[Kind] = &[
    Alloc, Alloc, Free, Free, Free, Mend, Look, Run, Run, Cut, Cut, Grow, Grow, Batch, FreeBatch,
    Split, Reserve, Release,
];

/// A lane that makes calls.
pub struct Caller<'a, W> {
    pub world: &'a Mutex<World>,
    pub buddy: Buddy<'a, W>,
    pub number: usize,
    pub random: Rng,
    pub kinds: &'a [Kind],
}

impl<'a, W: Word> Caller<'a, W> {
    /// Never locked while another lane may go on.
    pub fn world(&self) -> MutexGuard<'a, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lane(&self) -> Lane<'_, W> {
        self.buddy.on(self.number)
    }

    /// Carries out a call, and notes how long it takes and what it may claim.
    pub fn call<R>(
        &self,
        claims: Claims,
        hands: Vec<Range<u64>>,
        call: impl FnOnce() -> R,
    ) -> (R, Ended) {
        let began = self.world().begin(self.number, claims, hands);
        let answer = call();
        (answer, self.world().end(began))
    }

    pub fn ask(
        &self,
        claims: Claims,
        hands: Vec<Range<u64>>,
        ask: Ask<'_>,
    ) -> (Result<u64, No>, Ended) {
        self.call(claims, hands, || self.buddy.ask(self.number, ask))
    }

    /// Takes something out of what the lane holds.
    pub fn pick(&mut self) -> Option<Held> {
        let held = &mut self.world().held[self.number];
        (!held.is_empty()).then(|| held.swap_remove(self.random.usize(..held.len())))
    }

    pub fn keep(&self, held: Held) {
        self.world().held[self.number].push(held);
    }

    pub fn act(&mut self) {
        match *self.random.choice(self.kinds).expect("a caller makes some kind of call") {
            Alloc => self.alloc(),
            Free => self.free(),
            Mend => _ = self.call(Claims::Nothing, Vec::new(), || self.buddy.mend()),
            Look => self.look(),
            Run => self.run(),
            Cut => self.cut(),
            Grow => self.grow(),
            Batch => self.batch(),
            FreeBatch => self.free_batch(),
            Split => self.split(),
            Reserve => self.reserve(),
            Release => self.release(),
        }
    }

    fn alloc(&mut self) {
        let max = self.buddy.max_order();
        let most = if self.random.bool() { max } else { max.min(3) };
        let order = self.random.u32(..=most);
        let (found, ended) =
            self.call(Claims::Blocks(1, order), Vec::new(), || self.lane().alloc(order));
        match found {
            Ok(index) => self.receive_block(index, order),
            Err(AllocError::Exhausted { .. }) => self.world().judge_block(ended, order),
            Err(error) => panic!("{error}"),
        }
    }

    fn receive_block(&self, index: u64, order: u32) {
        assert!(index.is_multiple_of(1 << order), "a block of order {order} at {index}");
        self.world().receive(self.number, Held { index, len: 1 << order });
    }

    fn free(&mut self) {
        let Some(held) = self.pick() else { return };
        let Held { index, len } = held;
        let way = (self.random.u32(..3), Block::of(index, len));
        let lane = self.lane();
        let free = || match way {
            (0, Some(block)) => lane.free_sized(index, block.order).map(|()| len),
            (1, _) => lane.free_units(index, len).map(|()| len),
            _ => lane.free(index),
        };
        self.world().leave(self.number, range(held));
        let (freed, _) = self.call(Claims::Nothing, vec![range(held)], free);
        assert_eq!(freed, Ok(len), "free of {held:?}");
        self.world().left(self.number, range(held));
    }

    /// Looks at the arena: what the lane holds must be seen as it is.
    fn look(&mut self) {
        let held = self.world().held[self.number].clone();
        let blocks = held.iter().filter_map(|held| Block::of(held.index, held.len));
        let blocks: Vec<Block> = blocks.collect();
        match self.random.u32(..3) {
            0 => {
                let order = self.random.u32(..=self.buddy.max_order());
                _ = self.lane().has_free(order);
            }
            1 => self.buddy.observe(&blocks).unwrap_or_else(|violation| panic!("{violation}")),
            _ => {
                for held in held {
                    assert_eq!(self.buddy.len_of(held.index), Ok(held.len));
                    _ = self.buddy.vouch_for(held.index);
                }
            }
        }
    }

    fn batch(&mut self) {
        let order = self.random.u32(..=self.buddy.max_order().min(6));
        let count = self.random.usize(1..10);
        let mut blocks = vec![0; count];
        let claims = Claims::Blocks(count as u64, order);
        let (found, ended) = self.ask(claims, Vec::new(), Ask::Batch(order, &mut blocks));
        assert!(matches!(found, Ok(_) | Err(No::Exhausted)), "{found:?}");
        for &index in &blocks {
            self.receive_block(index, order);
        }
        if blocks.len() < count {
            self.world().judge_block(ended, order);
        }
    }

    /// Frees all blocks of the size of the first.
    fn free_batch(&mut self) {
        let held = self.world().held[self.number].clone();
        let blocks = held.iter().filter_map(|held| Block::of(held.index, held.len));
        let Some(order) = blocks.clone().map(|block| block.order).next() else { return };
        let blocks: Vec<Block> = blocks.filter(|block| block.order == order).collect();
        let indices: Vec<u64> = blocks.iter().map(|block| block.index).collect();
        {
            let mut world = self.world();
            world.held[self.number].retain(|held| !indices.contains(&held.index));
            blocks.iter().for_each(|block| world.leave(self.number, block.units()));
        }
        let hands = blocks.iter().map(|block| block.units()).collect();
        let (freed, _) = self.ask(Claims::Nothing, hands, Ask::FreeBatch(order, &indices));
        assert_eq!(freed, Ok(0));
        blocks.iter().for_each(|block| self.world().left(self.number, block.units()));
    }
}
