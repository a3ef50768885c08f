//! Orphans: blocks whose tag names nobody, because their member died between the buddy's step and its own.
//!
//! A block with such a tag may also be in the hands of a live member's operation, which will return in a moment. Only
//! an orphan stays. The checks are, in this order:
//!
//! 1. Its tag was read. Every member that was acting then has moved on or died: no free that wrote the tag is under
//!    way.
//! 2. The block is there, nothing covers it, and its tag is as before.
//! 3. Every member that was acting then has moved on, unless it had died before the look, and no claim was undone. So
//!    if the block belonged to one of their operations, it was granted, and has a tag, or was freed after that; both
//!    change the tag.
//! 4. The tag is swapped, if it is as before.
//!
//! Nobody is waited for: if a member does not move on within a number of looks, what was seen is remembered, and the
//! next recovery goes on from there.

use nbbs::sync::Word;

use super::recover::Found;
use super::tag::with_order;
use super::watch::Watch;
use super::{Deaths, Ledger, Liveness, Seat};

/// The most checks of a recovery: so many that it begins again a few times.
const CHECKS: usize = 8;

/// What became of the orphans.
pub(super) struct Settled {
    /// Those that became the caller's.
    pub taken: Vec<Found>,
    /// How many blocks could not be decided.
    pub pending: usize,
    /// Deaths of which no orphan is left.
    pub told: Option<Deaths>,
}

impl<W: Word> Ledger<'_, W> {
    /// Makes the orphans among `found` the caller's. The caller has asked for the deaths before it looked for blocks.
    pub(super) fn settle(
        &self,
        seat: &Seat,
        liveness: &impl Liveness,
        found: &[Found],
        deaths: &Deaths,
    ) -> Settled {
        let mut settled = Settled { taken: Vec::new(), pending: 0, told: None };
        let former = seat.watch.take();
        let left = former.and_then(|watch| self.pursue(seat, liveness, watch, &mut settled));
        // What was found since the former watch began waits for its end: other operations may have it in hand.
        let left = left.or_else(|| {
            let watch = self.watch(seat, found.to_vec(), deaths.clone());
            self.pursue(seat, liveness, watch, &mut settled)
        });
        settled.pending = found.iter().filter(|found| self.is_there(found)).count();
        if settled.pending == 0 {
            settled.told = Some(deaths.clone());
        } else {
            seat.watch.replace(left);
        }
        settled
    }

    /// Goes on as far as nobody stands still. Returns the watch unless there is nothing left to tell.
    fn pursue(
        &self,
        seat: &Seat,
        liveness: &impl Liveness,
        mut watch: Watch,
        settled: &mut Settled,
    ) -> Option<Watch> {
        for _ in 0..CHECKS {
            watch.orphans.retain(|found| self.is_there(found));
            if watch.orphans.is_empty() {
                settled.told = Some(watch.deaths);
                return None;
            }
            if !self.check(seat, liveness, &mut watch, &mut settled.taken) {
                break;
            }
        }
        Some(watch)
    }

    /// Makes the next check. Returns `false` if a member stands still.
    fn check(
        &self,
        seat: &Seat,
        liveness: &impl Liveness,
        watch: &mut Watch,
        taken: &mut Vec<Found>,
    ) -> bool {
        self.forget_frees(liveness, &mut watch.frees);
        if !watch.frees.is_empty() {
            return false;
        }
        let Some(mut vouched) = watch.vouched.take() else {
            watch.vouched = self.vouch(seat, liveness, &watch.orphans);
            return true;
        };
        let have_stayed = self.forget_claims(liveness, &mut vouched.claims);
        // After the claims have ended, who count what they undo before that.
        if !have_stayed || self.buddy.undone() != vouched.undone {
            return true;
        }
        if vouched.claims.is_empty() {
            let there = vouched.there.into_iter();
            taken.extend(there.filter_map(|(found, order)| self.take_orphan(seat, found, order)));
            return true;
        }
        watch.vouched = Some(vouched);
        false
    }

    /// Makes an orphan the caller's, unless it has become another's, and returns it with its new tag.
    fn take_orphan(&self, seat: &Seat, Found { index, tag }: Found, order: u32) -> Option<Found> {
        let new = seat.owner.after(with_order(tag, order));
        self.swap_tag(index, tag, new).then_some(Found { index, tag: new })
    }

    /// Returns whether the tag is as it was found.
    pub(super) fn has_tag(&self, found: &Found) -> bool {
        self.tag_of(found.index) == Some(found.tag)
    }

    /// Returns whether the block is there, with the same tag.
    fn is_there(&self, found: &Found) -> bool {
        self.has_tag(found) && self.buddy.order_of(found.index).is_ok()
    }
}
