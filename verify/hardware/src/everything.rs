//! Makes every call of the buddy allocator.

use std::fmt::Debug;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU32, AtomicU64};

use nbbs::sync::Word;
use nbbs::{Lane, Piece, Request, Zone, Zones};
use testkit::Violation;
use testkit::program::Held;

use crate::calls::{Calls, LastFirst, Refusal};
use crate::hands::{Actor, Hands, below};

/// An actor that makes every call of the buddy allocator.
///
/// It calls the first arena by itself, on a lane and on the thread's own lane, and all arenas behind one handle, also
/// in both ways. What came from one is changed and freed through another.
#[derive(Debug)]
pub struct Everything<'a, W, M = Box<[AtomicU32]>> {
    zones: &'a [Zone<'a, W>],
    lane: Lane<'a, W>,
    together: [LastFirst<'a, W>; 2],
    hands: Hands<'a, M>,
    /// Reservations, as in the hands' slots. Without slots, none are made.
    reservations: Hands<'a, M>,
}

/// The calls of all arenas, and those of the first arena alone.
type Caller<'c> = &'c dyn Calls;

impl<'a, W: Word, M: Deref<Target = [AtomicU32]>> Everything<'a, W, M> {
    /// Creates an actor on consecutive arenas, the first of them at 0; it uses `lane` if there is one.
    ///
    /// # Panics
    /// If the zones overlap.
    pub fn new(
        zones: &'a [Zone<'a, W>],
        lane: usize,
        hands: Hands<'a, M>,
        reservations: &'a [AtomicU64],
    ) -> Self {
        let all = Zones::new(zones).expect("zones one behind the other");
        let together = [LastFirst(all), LastFirst(all.on(lane))];
        let reservations = Hands { slots: reservations, ..hands };
        Self { zones, lane: zones[0].buddy.on(lane), together, hands, reservations }
    }

    /// Returns the caller for a unit.
    fn about(&self, index: u64) -> Caller<'_> {
        let here = index < self.zones[0].buddy.units();
        match below(if here { 4 } else { 2 }) {
            2 => &self.lane,
            3 => &self.zones[0].buddy,
            all => &self.together[all as usize],
        }
    }

    fn any_zone(&self) -> &Zone<'a, W> {
        &self.zones[below(self.zones.len() as u64) as usize]
    }

    /// Draws how many units to ask for: mostly few, and now and then as many as the first zone has.
    fn any_len(&self) -> u64 {
        let most = self.zones[0].buddy.units();
        1 + below(if below(16) == 0 { most } else { most.min(40) })
    }

    fn any_order(&self) -> u32 {
        let most = u64::from(self.zones[0].buddy.max_order()) + 1;
        below(if below(16) == 0 { most } else { most.min(4) }) as u32
    }

    fn alloc(&self) -> Result<(), Violation> {
        let (caller, mut len, order) = (self.about(0), self.any_len(), self.any_order());
        self.hands.stakes(len);
        let index = match below(5) {
            0 => {
                len = 1 << order;
                self.hands.stakes(len);
                granted("alloc", caller.alloc(order))?
            }
            1 => granted("alloc_units", caller.alloc_units(len))?,
            2 => {
                let zone = self.any_zone();
                let range = range_in(zone, 40);
                let index = zone.base + range.start;
                len = range.end - range.start;
                self.hands.stakes_on(Held { index, len });
                granted("alloc_at", self.about(index).alloc_at(index, len))?
            }
            3 => {
                let range = range_in(&self.zones[0], u64::MAX);
                let request = Request::units(len).aligned(order.min(3)).within(range);
                let request = if below(2) == 0 { request } else { request.top_down() };
                granted("request", caller.request(request))?
            }
            _ => return self.alloc_batch(caller, order),
        };
        index.map_or(Ok(()), |index| self.receive(Held { index, len }))
    }

    fn alloc_batch(&self, caller: Caller<'_>, order: u32) -> Result<(), Violation> {
        let mut blocks = [0; 6];
        let blocks = &mut blocks[..1 + below(6) as usize];
        self.hands.stakes((blocks.len() as u64) << order);
        let got = granted("alloc_batch", caller.alloc_batch(order, blocks))?.unwrap_or(0);
        let blocks = blocks[..got].iter().map(|&index| Held { index, len: 1 << order });
        blocks.clone().try_for_each(|block| self.hands.take(block))?;
        blocks.clone().try_for_each(|block| self.keep(block))
    }

    /// Receives what was just handed out.
    fn receive(&self, held: Held) -> Result<(), Violation> {
        self.hands.take(held)?;
        self.keep(held)
    }

    /// Puts what is held into a slot, and frees what was there.
    fn keep(&self, held: Held) -> Result<(), Violation> {
        self.hands.exchange(Some(held)).map_or(Ok(()), |other| self.free(other))
    }

    /// Frees a run in one of the possible ways.
    fn free(&self, held: Held) -> Result<(), Violation> {
        let Held { index, len } = held;
        let (caller, all) = (self.about(index), self.together[0].0);
        must("len_of", all.len_of(index), |got| got == len)?;
        let order = len.next_power_of_two().ilog2();
        self.hands.stakes_on(held);
        self.hands.give(held)?;
        let is_block = len == 1 << order && self.within(index).1 & (len - 1) == 0;
        match below(if is_block { 5 } else { 3 }) {
            0 => must("free", caller.free(index), |got| got == len),
            1 => must("free_units", caller.free_units(index, len), |()| true),
            2 => must("free_part", caller.free_part(index, index..index + len), |()| true),
            3 => must("free_sized", caller.free_sized(index, order), |()| true),
            _ => must("free_batch", caller.free_batch(order, &[index]), |()| true),
        }
    }

    /// Returns the zone of a unit, and the unit's number there.
    fn within(&self, index: u64) -> (&Zone<'a, W>, u64) {
        let number = self.together[0].0.zone_of(index).expect("a unit of a zone");
        (&self.zones[number], index - self.zones[number].base)
    }

    /// Changes a run into another. The owner map is told before units become free, and after units are new.
    fn change(&self, held: Held) -> Result<(), Violation> {
        let Held { index, len } = held;
        let (caller, less) = (self.about(index), 1 + below(len));
        self.hands.stakes_on(held);
        match below(5) {
            0 => {
                let rest = Held { index: index + less, len: len - less };
                let shrunk = self.without(rest, || caller.shrink(index, less))?;
                self.keep(Held { index, len: if shrunk { less } else { len } })
            }
            1 => self.grow(held, caller),
            2 if less < len => match granted("split_off", caller.split_off(index, less))? {
                Some(rest) => {
                    self.keep(Held { index: rest, len: len - less })?;
                    self.keep(Held { index, len: less })
                }
                None => self.keep(held),
            },
            3 => self.split(held, caller),
            _ => {
                let start = below(less);
                let part = Held { index: index + start, len: less - start };
                let freed =
                    self.without(part, || caller.free_part(index, index + start..index + less))?;
                if !freed {
                    return self.keep(held);
                }
                let rest = Held { index: index + less, len: len - less };
                let kept = [Held { index, len: start }, rest].into_iter();
                kept.filter(|part| part.len > 0).try_for_each(|part| self.keep(part))
            }
        }
    }

    /// Makes a call that frees these units of a run, if it is granted.
    fn without<E: Refusal + Debug>(
        &self,
        part: Held,
        call: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, Violation> {
        self.hands.give(part)?;
        let done = granted("a cut", call())?.is_some();
        if done { Ok(true) } else { self.hands.take(part).map(|()| false) }
    }

    fn grow(&self, held: Held, caller: Caller<'_>) -> Result<(), Violation> {
        let Held { index, len } = held;
        let (zone, here) = self.within(index);
        let more = below(40).min(zone.buddy.units() - here - len);
        self.hands.stakes_on(Held { index, len: len + more });
        if granted("grow", caller.grow(index, len + more))?.is_none() {
            return self.keep(held);
        }
        self.hands.take(Held { index: index + len, len: more })?;
        self.keep(Held { index, len: len + more })
    }

    fn split(&self, held: Held, caller: Caller<'_>) -> Result<(), Violation> {
        let Held { index, len } = held;
        let most = (self.within(index).1 | len).trailing_zeros();
        let order = most - below(u64::from(most.min(3)) + 1) as u32;
        if len >> order > 8 || granted("split", caller.split(index, order))?.is_none() {
            return self.keep(held);
        }
        let parts = (index..index + len).step_by(1 << order);
        parts.map(|index| Held { index, len: 1 << order }).try_for_each(|part| self.keep(part))
    }

    /// Reserves a range, and releases another.
    fn reserve(&self) -> Result<(), Violation> {
        let zone = self.any_zone();
        let range = range_in(zone, 40);
        let held = Held { index: zone.base + range.start, len: range.end - range.start };
        self.reservations.stakes_on(held);
        if granted("reserve", zone.buddy.reserve(range))?.is_some() {
            self.reservations.take(held)?;
            self.reservations.exchange(Some(held)).map_or(Ok(()), |held| self.release(held))?;
        }
        Ok(())
    }

    fn release(&self, held: Held) -> Result<(), Violation> {
        let (zone, here) = self.within(held.index);
        self.reservations.stakes_on(held);
        self.reservations.give(held)?;
        must("release", zone.buddy.release(here..here + held.len), |()| true)
    }

    /// Looks at the arena. The figures depend on what others do meanwhile.
    fn look(&self) -> Result<(), Violation> {
        let buddy = &self.any_zone().buddy;
        let mut seen = 0;
        match below(5) {
            0 => {
                let stats = buddy.stats();
                seen = stats.free_units + stats.used_units + stats.reserved_units;
            }
            1 => buddy.walk(|piece| seen += units_of(piece)),
            2 => {
                let mut map = [0; 256];
                let order = buddy.units().div_ceil(256).next_power_of_two().ilog2();
                let order = order.min(buddy.max_order());
                must("occupancy_map", buddy.occupancy_map(order, &mut map), |_| true)?;
                seen = buddy.units();
            }
            3 => {
                // Its answer is only valid at a moment without other operations.
                let _ = buddy.audit();
                seen = buddy.units();
            }
            _ => {
                let _ = (buddy.order_bound(), buddy.order_of(below(buddy.units())));
                seen = buddy.units();
            }
        }
        if seen == buddy.units() {
            Ok(())
        } else {
            Err(Violation::wrong("units seen", buddy.units(), seen))
        }
    }
}

impl<W: Word, M: Deref<Target = [AtomicU32]>> Actor for Everything<'_, W, M> {
    fn act(&self) -> Result<(), Violation> {
        let done = match below(32) {
            0 => self.look(),
            1 if !self.reservations.slots.is_empty() => self.reserve(),
            2..=9 => self.alloc(),
            drawn => match self.hands.exchange(None) {
                None => self.alloc(),
                Some(held) if drawn % 2 == 0 => self.change(held),
                Some(held) => self.free(held),
            },
        };
        self.hands.stakes_nothing();
        done
    }

    fn give_back(&self) -> Result<(), Violation> {
        self.reservations.empty().try_for_each(|held| self.release(held))?;
        self.hands.empty().try_for_each(|held| self.free(held))
    }
}

/// Draws a range of up to `most` units in a zone, by their numbers there.
fn range_in<W: Word>(zone: &Zone<'_, W>, most: u64) -> Range<u64> {
    let units = 1 + below(most.min(zone.buddy.units()));
    let start = below(zone.buddy.units() - units + 1);
    start..start + units
}

fn units_of(piece: Piece) -> u64 {
    match piece {
        Piece::Free { order, .. } | Piece::Used { order, .. } => 1 << order,
        Piece::Run { len, .. } | Piece::Reserved { len, .. } => len,
        _ => 0,
    }
}

/// Returns what was granted; a refusal must be an ordinary answer.
fn granted<T, E: Refusal + Debug>(
    question: &str,
    answer: Result<T, E>,
) -> Result<Option<T>, Violation> {
    match answer {
        Ok(granted) => Ok(Some(granted)),
        Err(refusal) if refusal.is_ordinary() => Ok(None),
        Err(refusal) => Err(Violation::wrong(question, "an ordinary answer", refusal)),
    }
}

/// Checks a call that cannot be refused.
fn must<T: Debug + Copy, E: Debug>(
    question: &str,
    answer: Result<T, E>,
    right: impl FnOnce(T) -> bool,
) -> Result<(), Violation> {
    match answer {
        Ok(got) if right(got) => Ok(()),
        other => Err(Violation::wrong(question, "what is held", other)),
    }
}
