//! Recovery: the blocks of a member that is gone become the recoverer's, each by one compare-and-swap.
//!
//! Any number of members may recover at the same time: each block goes to one of them. A recoverer that dies has made
//! some blocks its own, which the next one recovers.

use nbbs::Piece;
use nbbs::sync::{Ordering, Word};

use super::{Ledger, Liveness, NotHeld, Owner, Replaced, Seat, Turn, order_of};

/// What shall become of a recovered block.
///
/// ```
/// use nbbs_shared::{Block, Fate, Geometry, Segment};
///
/// let segment = Segment::memfd("fate", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
/// let (alice, bob) = (segment.join()?, segment.join()?);
/// let needed = bob.alloc_for::<u64>()?.cast();
/// drop(bob);
/// let decide = |block: Block| if block.offset == needed { Fate::Keep } else { Fate::Free };
/// assert_eq!(alice.recover(decide).kept, 1);
/// assert!(alice.free(needed).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is freed.
    Free,
    /// It belongs to the recoverer from now on.
    Keep,
}

/// What a recovery found.
///
/// ```
/// use nbbs_shared::{Fate, Geometry, Segment};
///
/// let segment = Segment::memfd("found", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
/// let (alice, bob) = (segment.join()?, segment.join()?);
/// bob.alloc_for::<u64>()?;
/// drop(bob);
/// let found = alice.recover(|_block| Fate::Free);
/// assert_eq!((found.freed, found.kept, found.members), (1, 0, 0)); // Bob has left, and did not die
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Members that have died, and that no recovery has finished with before: as long as blocks are
    /// [pending](Self::pending), each counts them again. Those whose seats others have by now count as one for each seat.
    pub members: usize,
    /// Blocks and slots that were recovered and freed.
    pub freed: usize,
    /// Blocks and slots that were recovered and now belong to the recoverer.
    pub kept: usize,
    /// Blocks of which it could not be told whether they belong to an operation under way: a member stands still in the
    /// middle of one, or was preempted there, or others were just changing them. The same member's next recovery goes
    /// on from what this one saw, and each member that was in an operation has to go on only once or twice until it is
    /// told; if one leaves or dies instead, the others once more. Beside members that never rest something is pending
    /// at any time, also when nobody has died.
    pub pending: usize,
    /// Blocks and slots whose tags name a seat that does not exist, or that the buddy allocator would not free:
    /// somebody has written where it must not. They stay as they are.
    pub damaged: usize,
}

/// A block in use, as it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub index: u64,
    pub tag: u64,
}

/// A member that has died: its seat, and the turn that was seen last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dead {
    number: usize,
    pub(super) turn: Turn,
}

/// Members that have died and have not been recovered.
#[derive(Clone, Debug)]
pub(crate) struct Deaths {
    pub dead: Vec<Dead>,
    replaced: Vec<Replaced>,
}

/// To whom something with a tag belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Nobodys,
    /// To a member that is gone: it has died, or its seat has another generation, or none.
    Gone,
    /// To a member that is still on its seat, or to the segment.
    Held,
    /// To a member on a seat that does not exist.
    Nowhere,
}

impl<W: Word> Ledger<'_, W> {
    /// Returns how many members have died and have not been recovered, whoever has their seats now.
    pub fn count_dead(&self, seat: &Seat, liveness: &impl Liveness) -> usize {
        let count = |number| {
            let count_replaced = || usize::from(self.replaced_on(number).is_some());
            let replaced = count_replaced();
            // A newcomer that comes after the dead member was seen does not make it count twice; one that comes before
            // does not hide it.
            let is_dead = number != seat.number && self.dead_on(number, liveness).is_some();
            if is_dead { replaced + 1 } else { count_replaced() }
        };
        (0..self.seats()).map(count).sum()
    }

    /// Recovers the blocks that the dead held. `decide` says what becomes of each block, which is the caller's when
    /// `decide` is called. Also returns the deaths, perhaps fewer, of which no orphan is left.
    pub fn recover(
        &self,
        seat: &Seat,
        liveness: &impl Liveness,
        deaths: &Deaths,
        mut decide: impl FnMut(u64, u64) -> Fate,
    ) -> (Recovery, Option<Deaths>) {
        self.buddy.mend();
        let members = deaths.dead.len() + deaths.replaced.len();
        let mut recovery = Recovery { members, ..Recovery::default() };
        let (mut left, mut orphans) = (Vec::new(), Vec::new());
        for found in self.blocks() {
            match self.whose(found.tag, &deaths.dead) {
                Whose::Nobodys => orphans.push(found),
                Whose::Nowhere => recovery.damaged += 1,
                Whose::Gone => left.push(found),
                Whose::Held => {}
            }
        }
        left.retain_mut(|Found { index, tag }| {
            let old = std::mem::replace(tag, seat.owner.after(*tag));
            self.swap_tag(*index, old, *tag)
        });
        let settled = self.settle(seat, liveness, &orphans, deaths);
        recovery.pending = settled.pending;
        for found in left.into_iter().chain(settled.taken) {
            if !self.has_tag(&found) {
                // The member to which it was sent has taken it.
                continue;
            }
            let Found { index, tag } = found;
            let units = match self.len(seat, index) {
                Ok(units) => units,
                Err(NotHeld::By(_)) => continue,
                // It has freed it, too.
                Err(_) if !self.has_tag(&found) => continue,
                Err(_) => {
                    recovery.damaged += 1;
                    continue;
                }
            };
            match decide(index, units) {
                Fate::Keep => recovery.kept += 1,
                Fate::Free => match self.give_back(seat, index, tag) {
                    Ok(()) => recovery.freed += 1,
                    Err(NotHeld::By(_)) => {}
                    Err(_) => recovery.damaged += 1,
                },
            }
        }
        (recovery, settled.told)
    }

    /// Returns who has died and has not been recovered. Whoever recovers asks before it looks for blocks.
    pub fn deaths(&self, seat: &Seat, liveness: &impl Liveness) -> Deaths {
        // Before the dead are looked for, as who is dead then may be replaced afterwards.
        let replaced = self.replaced().collect();
        Deaths { dead: self.dead(seat, liveness).collect(), replaced }
    }

    /// Returns the members that have died and have not been replaced.
    pub fn dead(&self, seat: &Seat, liveness: &impl Liveness) -> impl Iterator<Item = Dead> {
        let others = (0..self.seats()).filter(|&number| number != seat.number);
        others.filter_map(|number| self.dead_on(number, liveness))
    }

    /// Returns the member of this seat that has died and has not been replaced.
    pub(super) fn dead_on(&self, number: usize, liveness: &impl Liveness) -> Option<Dead> {
        // The turn is read first: the member that it shows had the seat before the check, and if nobody has the seat
        // then, that member is gone. It has not left: then it would have changed the turn before.
        let before = self.turn(number)?;
        let is_dead = before.is_live() && !liveness.is_alive(number);
        let turn = self.turn(number)?;
        // Whoever has deserted its seat has died, also if a newcomer's lock has made it look alive.
        (turn.is_deserted() || is_dead && turn == before).then_some(Dead { number, turn })
    }

    /// Returns to whom something belongs whose tag was just read.
    pub fn whose(&self, tag: u64, dead: &[Dead]) -> Whose {
        let owner = Owner::of(tag);
        let Some((number, _)) = owner.seat() else {
            return if owner == Owner::NOBODY { Whose::Nobodys } else { Whose::Held };
        };
        // Read after the tag, so that a member is not taken for gone because it has only just come.
        let Some(turn) = self.turn(number) else { return Whose::Nowhere };
        let sits = turn.is_live() && Owner::new(number, turn.generation()) == owner;
        if sits && !dead.contains(&Dead { number, turn }) { Whose::Held } else { Whose::Gone }
    }

    /// Returns the blocks in use, and their tags.
    pub fn blocks(&self) -> Vec<Found> {
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

    /// Frees a block that was recovered and has had this tag since.
    ///
    /// # Errors
    /// Another member has taken it, or it is not there.
    fn give_back(&self, seat: &Seat, index: u64, tag: u64) -> Result<(), NotHeld> {
        let turn = self.begin(seat).ok_or(NotHeld::Outside)?;
        // Not by a store, as when a member frees its own: the member to which the block was sent may take it at this
        // moment.
        let freed = if self.swap_tag(index, tag, Owner::NOBODY.after(tag)) {
            // By the order that the tag names, as in `free`: a search for what is there need not end if somebody has
            // written into the words.
            let freed = self.buddy.on(seat.number).free_sized(index, order_of(tag));
            freed.map_err(|_| NotHeld::Damaged)
        } else {
            Err(NotHeld::By(self.owner_at(index).unwrap_or(Owner::NOBODY)))
        };
        self.end(seat, turn);
        freed
    }

    /// Records that members have been recovered.
    pub fn bury_all(&self, Deaths { dead, replaced }: Deaths) {
        dead.into_iter().for_each(|dead| self.bury(dead));
        replaced.into_iter().for_each(|replaced| self.bury_replaced(replaced));
    }

    /// Records that a member has been recovered, whether it has been said since that it deserted its seat, or it has
    /// been replaced there.
    fn bury(&self, Dead { number, turn }: Dead) {
        let Some(word) = self.turn_word(number) else { return };
        let is_buried = [turn, turn.deserted()].into_iter().any(|turn| {
            // Release: as in `end`. If it fails, it is in another state, or another member has recovered it.
            word.compare_exchange(turn.0, turn.gone().0, Ordering::Release, Ordering::Relaxed)
                .is_ok()
        });
        let newcomer = turn.seated().generation();
        if !is_buried
            && let Some(replaced) = self.replaced_on(number).filter(|its| its.by == newcomer)
        {
            self.bury_replaced(replaced);
        }
    }
}
