//! Recovery: what a member held that is no more becomes the recoverer's, block by block, each by one compare-and-swap.
//!
//! Any number of members may recover at the same time: each block goes to one of them. Whoever dies on the way has made some
//! blocks its own, which the next recovers.

use nbbs::Piece;
use nbbs::sync::{Ordering, Word};

use super::{Ledger, Liveness, Owner, Seat, Turn};

/// What is to become of a recovered block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is freed.
    Free,
    /// It is the recoverer's from now on.
    Keep,
}

/// What a recovery found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Members that had died since somebody last recovered.
    pub members: usize,
    /// Blocks that were recovered and freed.
    pub freed: usize,
    /// Blocks that were recovered and are the recoverer's now.
    pub kept: usize,
    /// Blocks of which it could not be told whether they belong to an operation under way, as a member stands still in the
    /// middle of one, or others were just changing them. Another recovery will tell.
    pub pending: usize,
    /// Blocks whose tags name a seat that there is not, or that the buddy allocator would not free: somebody has
    /// written where he must not. They stay as they are.
    pub damaged: usize,
}

/// A block in use, as it was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub index: u64,
    pub tag: u64,
}

impl<W: Word> Ledger<'_, W> {
    /// Whether the member on a seat has died and nobody has said so yet.
    pub fn is_dead(&self, seat: usize, liveness: &impl Liveness) -> bool {
        // The turn first: who is seen in it had the seat before the look, and if nobody has it then, is no more.
        self.turn(seat).is_some_and(Turn::is_live) && !liveness.is_alive(seat)
    }

    /// Recovers what the dead held: `decide` says what becomes of each block, which is the caller's when it is asked.
    pub fn recover(
        &self,
        seat: &Seat,
        liveness: &impl Liveness,
        mut decide: impl FnMut(u64, u64) -> Fate,
    ) -> Recovery {
        let dead = self.dead(seat, liveness);
        self.buddy.mend();
        let mut recovery = Recovery { members: dead.len(), ..Recovery::default() };
        let (mut left, mut orphans) = (Vec::new(), Vec::new());
        for found in self.blocks() {
            match Owner::of(found.tag).seat() {
                None => orphans.push(found),
                Some((number, _)) if number >= self.seats() => recovery.damaged += 1,
                Some(_) if self.is_gone(found.tag, &dead) => left.push(found),
                Some(_) => {}
            }
        }
        left.retain(|found| self.swap_tag(found.index, found.tag, seat.owner.after(found.tag)));
        let settled = self.settle(seat, liveness, orphans);
        recovery.pending = settled.pending;
        for index in left.into_iter().map(|found| found.index).chain(settled.taken) {
            let Ok(units) = self.len(seat, index) else {
                recovery.damaged += 1;
                continue;
            };
            match decide(index, units) {
                Fate::Keep => recovery.kept += 1,
                Fate::Free if self.give_back(seat, index) => recovery.freed += 1,
                Fate::Free => recovery.damaged += 1,
            }
        }
        if recovery.pending == 0 {
            dead.into_iter().for_each(|(number, turn)| self.bury(number, turn));
        }
        recovery
    }

    /// The seats whose members have died, and their last turns.
    fn dead(&self, seat: &Seat, liveness: &impl Liveness) -> Vec<(usize, Turn)> {
        let others = (0..self.seats()).filter(|&number| number != seat.number);
        let died = others.filter_map(|number| {
            let turn = self.turn(number)?;
            (turn.is_live() && !liveness.is_alive(number)).then_some((number, turn))
        });
        died.collect()
    }

    /// Whether the member that `tag` names is no more: it is one of the `dead`, or its seat has another generation, or none.
    fn is_gone(&self, tag: u64, dead: &[(usize, Turn)]) -> bool {
        let Some((number, _)) = Owner::of(tag).seat() else { return false };
        // After the tag was read, so that a member is not taken for gone because it has only just come.
        self.turn(number).is_some_and(|turn| {
            let sits = turn.is_live() && Owner::new(number, turn.generation()) == Owner::of(tag);
            !sits || dead.iter().any(|&(other, last)| other == number && last == turn)
        })
    }

    /// The blocks in use, and their tags.
    fn blocks(&self) -> Vec<Found> {
        let mut blocks = Vec::new();
        self.buddy.walk(|piece| {
            if let Piece::Used { index, .. } = piece
                && let Some(tag) = self.tag_of(index)
            {
                blocks.push(Found { index, tag });
            }
        });
        blocks
    }

    /// Frees a block that was recovered. `false`: it has been taken meanwhile, or is not there.
    fn give_back(&self, seat: &Seat, index: u64) -> bool {
        let held = self.tag_of(index).filter(|&tag| Owner::of(tag) == seat.owner);
        let (Some(tag), Some(turn)) = (held, self.begin(seat)) else { return false };
        // Not by a store, as where a member frees its own: whoever was sent the block may take it at this moment.
        let freed = self.swap_tag(index, tag, Owner::NOBODY.after(tag))
            && self.buddy.on(seat.number).free(index).is_ok();
        self.end(seat, turn);
        freed
    }

    /// Says that the member whose last turn this is has been recovered.
    fn bury(&self, seat: usize, turn: Turn) {
        if let Some(word) = self.turn_word(seat) {
            // Release: as in `end`. If it fails, another has recovered it, or has the seat.
            let _ =
                word.compare_exchange(turn.0, turn.gone().0, Ordering::Release, Ordering::Relaxed);
        }
    }
}
