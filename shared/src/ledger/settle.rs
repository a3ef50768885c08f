//! Orphans: blocks whose tag names nobody, because their member died between the buddy's step and its own.
//!
//! A block with such a tag may also be in the hands of a live member's operation, which will return in a moment. Only
//! an orphan stays. The checks are, in this order:
//!
//! 1. Its tag was read. Every member that was acting then has moved on: no free is under way that wrote the tag.
//! 2. The block is there, nothing covers it, and its tag is as before.
//! 3. Every member that was acting then has moved on, none has died in the meantime, and no claim was undone. So if the
//!    block belonged to one of their operations, it was granted, and has a tag, or was freed after that; both change
//!    the tag.
//! 4. The tag is swapped, if it is as before.
//!
//! Nobody is waited for: if a member does not move on within a number of looks, all of it is answered "not now".

use std::hint::spin_loop;

use nbbs::sync::Word;

use super::recover::Found;
use super::tag::with_order;
use super::{Ledger, Liveness, Seat, Turn};

/// How often an acting member is looked at, and how often all is begun again.
const LOOKS: usize = 32;
const ROUNDS: usize = 4;

/// The orphans that became the caller's, and how many blocks could not be decided.
pub(super) struct Settled {
    pub taken: Vec<Found>,
    pub pending: usize,
}

/// A seat as it was at the beginning of a round.
struct Seen {
    turn: Turn,
    /// Whether nobody had the seat, or a member that was dead.
    is_empty: bool,
}

impl<W: Word> Ledger<'_, W> {
    /// Makes the orphans among `found` the caller's.
    pub(super) fn settle(
        &self,
        seat: &Seat,
        liveness: &impl Liveness,
        mut found: Vec<Found>,
    ) -> Settled {
        for _ in 0..ROUNDS {
            found.retain(|found| self.tag_of(found.index) == Some(found.tag));
            if found.is_empty() {
                return Settled { taken: Vec::new(), pending: 0 };
            }
            let seats = self.seen(seat, liveness);
            if !self.all_moved_on(seat, &seats) {
                continue;
            }
            let undone = self.buddy.undone();
            let (mut there, mut rest) = (Vec::new(), Vec::new());
            for &found in &found {
                let order = self.buddy.vouch_for(found.index);
                match order.filter(|_| self.tag_of(found.index) == Some(found.tag)) {
                    Some(order) => there.push((found, order)),
                    None => rest.push(found),
                }
            }
            if self.all_moved_on(seat, &seats) && self.buddy.undone() == undone {
                let taken = there.into_iter().filter_map(|(Found { index, tag }, order)| {
                    let new = seat.owner.after(with_order(tag, order));
                    self.swap_tag(index, tag, new).then_some(Found { index, tag: new })
                });
                let taken = taken.collect();
                return Settled { taken, pending: self.still_there(&rest) };
            }
        }
        Settled { taken: Vec::new(), pending: self.still_there(&found) }
    }

    /// Returns how many blocks are there with the same tags.
    fn still_there(&self, found: &[Found]) -> usize {
        let there = |found: &&Found| {
            self.tag_of(found.index) == Some(found.tag) && self.buddy.order_of(found.index).is_ok()
        };
        found.iter().filter(there).count()
    }

    /// Returns all seats. The caller's own counts as empty: it has no other operation under way.
    fn seen(&self, seat: &Seat, liveness: &impl Liveness) -> Vec<Seen> {
        let seats = 0..self.seats();
        let seen = seats.map(|number| {
            let turn = self.turn(number).unwrap_or(Turn(0));
            let is_empty = number == seat.number || !turn.is_live() || !liveness.is_alive(number);
            Seen { turn, is_empty }
        });
        seen.collect()
    }

    /// Returns whether every operation under way ends soon, and nobody has come or died since `seats` was seen.
    fn all_moved_on(&self, seat: &Seat, seats: &[Seen]) -> bool {
        seats.iter().enumerate().filter(|&(number, _)| number != seat.number).all(
            |(number, seen)| {
                let now = self.turn(number).unwrap_or(seen.turn);
                let same = |turn: Turn| {
                    turn.generation() == seen.turn.generation()
                        && turn.is_live() == seen.turn.is_live()
                };
                if seen.is_empty {
                    return now == seen.turn;
                }
                same(now) && (!now.acts() || self.moves_on(number, now, same))
            },
        )
    }

    /// Returns whether the member on a seat, whose turn is `acting`, ends that operation within a number of looks.
    fn moves_on(&self, number: usize, acting: Turn, same: impl Fn(Turn) -> bool) -> bool {
        for _ in 0..LOOKS {
            match self.turn(number) {
                Some(now) if now != acting => return same(now),
                _ => spin_loop(),
            }
        }
        false
    }
}
