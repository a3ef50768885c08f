//! What a recoverer remembers of blocks that may be orphans, from one recovery to the next: their tags, and the turns
//! of the members that were acting when it looked.
//!
//! A member that is preempted in an operation has an odd turn for as long as that takes, and hardly ever are all turns
//! even at once. But each of them changes some time, and needs to do so only once.

use std::hint::spin_loop;

use nbbs::sync::Word;

use super::{Deaths, Found, Ledger, Liveness, Seat, Turn};

/// How often an acting member is looked at before it counts as one that stands still.
const LOOKS: usize = 32;

/// Blocks that may be orphans, and what is waited for.
#[derive(Debug)]
pub(super) struct Watch {
    /// Who had died when it began: what they left in the middle of an operation is among the blocks.
    pub deaths: Deaths,
    pub orphans: Vec<Found>,
    /// Operations that were under way after the tags had been read, and may be still.
    pub frees: Vec<Acting>,
    pub vouched: Option<Vouched>,
}

/// Blocks that were there, with the same tags, when no free that wrote such a tag was under way any more.
#[derive(Debug)]
pub(super) struct Vouched {
    /// With their orders.
    pub there: Vec<(Found, u32)>,
    /// Operations that were under way after the blocks were seen, and may be still: not those of members that had died
    /// before.
    pub claims: Vec<Acting>,
    /// The count of undone claims before the blocks were seen.
    pub undone: u64,
}

/// A member in the middle of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acting {
    number: usize,
    turn: Turn,
}

impl<W: Word> Ledger<'_, W> {
    /// Begins to watch blocks whose tags were read before.
    pub(super) fn watch(&self, seat: &Seat, orphans: Vec<Found>, deaths: Deaths) -> Watch {
        Watch { deaths, orphans, frees: acting(seat, &self.all_turns()), vouched: None }
    }

    /// Looks for the blocks. `None` if none is there, or if a member has come or gone meanwhile: it could have claimed
    /// the block that was seen, and have died as it took the claim back.
    pub(super) fn vouch(
        &self,
        seat: &Seat,
        liveness: &impl Liveness,
        orphans: &[Found],
    ) -> Option<Vouched> {
        let before = self.all_turns();
        // Asked before the look: who dies after it may have taken back what was seen, and not have counted that.
        let mut dead = acting(seat, &before);
        dead.retain(|acting| !liveness.is_alive(acting.number));
        let undone = self.buddy.undone();
        let vouched = |&found: &Found| {
            let order = self.buddy.vouch_for(found.index)?;
            self.has_tag(&found).then_some((found, order))
        };
        let there: Vec<_> = orphans.iter().filter_map(vouched).collect();
        let after = self.all_turns();
        let mut claims = acting(seat, &after);
        claims.retain(|acting| !dead.contains(acting));
        let are_same = before.iter().zip(&after).all(|(before, after)| before.is_one_life(*after));
        (are_same && !there.is_empty()).then_some(Vouched { there, claims, undone })
    }

    /// Forgets the frees that have ended, or whose members have died: these do nothing any more.
    pub(super) fn forget_frees(&self, liveness: &impl Liveness, frees: &mut Vec<Acting>) {
        frees.retain(|free| self.moved_on(free).is_none() && liveness.is_alive(free.number));
    }

    /// Forgets the operations that have ended. `false` if one of them may not have, as its member has gone.
    pub(super) fn forget_claims(&self, liveness: &impl Liveness, claims: &mut Vec<Acting>) -> bool {
        let mut have_stayed = true;
        claims.retain(|claim| {
            let now = self.moved_on(claim);
            have_stayed &= match now {
                Some(now) => now.is_one_life(claim.turn),
                None => liveness.is_alive(claim.number),
            };
            now.is_none()
        });
        have_stayed
    }

    /// Returns the turn of the member's seat if it changes within a number of looks.
    fn moved_on(&self, acting: &Acting) -> Option<Turn> {
        (0..LOOKS).find_map(|_| {
            spin_loop();
            self.turn(acting.number).filter(|&now| now != acting.turn)
        })
    }

    /// Returns the turns of all seats.
    fn all_turns(&self) -> Vec<Turn> {
        (0..self.seats()).filter_map(|number| self.turn(number)).collect()
    }
}

/// Returns the members that are in the middle of an operation, by their turns. The caller has none under way.
fn acting(seat: &Seat, turns: &[Turn]) -> Vec<Acting> {
    let all = turns.iter().enumerate().map(|(number, &turn)| Acting { number, turn });
    let acts = |acting: &Acting| {
        acting.number != seat.number && acting.turn.is_live() && acting.turn.acts()
    };
    all.filter(acts).collect()
}
