//! Requests to an allocator that can do more than blocks.

use alloc::{vec, vec::Vec};
use core::ops::Range;

use nbbs::sync::Word;
use nbbs::{AllocError, Buddy, Request, RequestError, ResizeError};

/// Units that are held together, block or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The first unit.
    pub index: u64,
    /// The number of units.
    pub len: u64,
}

/// A request to an allocator that can do more than blocks. Its numbers are final, not picks.
#[derive(Debug, PartialEq, Eq)]
pub enum Ask<'a> {
    /// Allocate this many units.
    Units(u64),
    /// Allocate these units.
    At(Held),
    /// Allocate units in a range, at a multiple of `2^order`: from the beginning of the range, or from its end.
    Within(u64, u32, Range<u64>, bool),
    /// Free what is held.
    Free(Held),
    /// Shrink what is held to this length.
    Shrink(Held, u64),
    /// Grow what is held to this length.
    Grow(Held, u64),
    /// Cut what is held in two, after this many units.
    SplitOff(Held, u64),
    /// Cut what is held into blocks of an order.
    Split(Held, u32),
    /// Free a part of what is held.
    FreePart(Held, Range<u64>),
    /// Allocate as many blocks of an order as the list has room for.
    Batch(u32, &'a mut Vec<u64>),
    /// Free blocks of an order.
    FreeBatch(u32, &'a [u64]),
}

impl Ask<'_> {
    /// Returns whether the request could be met in an empty arena.
    #[must_use]
    pub fn has_place(&self) -> bool {
        let Self::Within(units, order, range, _) = self else { return true };
        has_place(*units, *order, range)
    }

    /// Returns what the caller holds before, if the request is about that.
    #[must_use]
    pub fn held(&self) -> Option<Held> {
        match *self {
            Self::Free(held)
            | Self::Shrink(held, _)
            | Self::Grow(held, _)
            | Self::SplitOff(held, _)
            | Self::Split(held, _)
            | Self::FreePart(held, _) => Some(held),
            _ => None,
        }
    }

    /// Returns how many units are asked for, if none is held before.
    #[must_use]
    pub fn wanted(&self) -> Option<u64> {
        match *self {
            Self::Units(len) | Self::At(Held { len, .. }) | Self::Within(len, ..) => Some(len),
            _ => None,
        }
    }

    /// Returns the parts of what is held before that are held after the request is granted.
    #[must_use]
    pub fn parts(&self) -> Vec<Held> {
        let between = |from: u64, to: u64| Held { index: from, len: to - from };
        match *self {
            Self::Shrink(Held { index, .. }, len) | Self::Grow(Held { index, .. }, len) => {
                vec![Held { index, len }]
            }
            Self::SplitOff(Held { index, len }, first) => {
                vec![between(index, index + first), between(index + first, index + len)]
            }
            Self::Split(Held { index, len }, order) => {
                let blocks = (index..index + len).step_by(1 << order);
                blocks.map(|index| Held { index, len: 1 << order }).collect()
            }
            Self::FreePart(Held { index, len }, Range { start, end }) => {
                let kept = [between(index, start), between(end, index + len)];
                kept.into_iter().filter(|part| part.len > 0).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The reason for a refusal, as far as it can be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum No {
    /// The allocator does not offer this.
    NotOffered,
    /// The range has no place for the request, whatever is free.
    Nowhere,
    /// Nothing suitable is free.
    Exhausted,
    /// A unit is in use.
    InUse(u64),
    /// Another operation's claim is in the way.
    Contended,
    /// Anything else: never expected here.
    Wrong,
}

/// Implements [`BackEnd::ask`](crate::BackEnd::ask) for this project's allocator. Returns the first unit, if one is
/// asked for.
///
/// # Errors
/// The reason for the refusal.
pub fn ask<W: Word>(buddy: &Buddy<'_, W>, lane: usize, ask: Ask<'_>) -> Result<u64, No> {
    let lane = buddy.on(lane);
    let resized = |result: Result<(), ResizeError>| result.map(|()| 0).map_err(No::from);
    match ask {
        Ask::Units(units) => lane.alloc_units(units).map_err(No::from),
        Ask::At(Held { index, len }) => lane.alloc_at(index, len).map_err(No::from),
        Ask::Within(units, order, range, top_down) => {
            lane.request(within(units, order, range, top_down)).map_err(No::from)
        }
        Ask::Free(Held { index, len }) => {
            if len % 2 == 0 {
                return lane.free_units(index, len).map(|()| 0).map_err(|_| No::Wrong);
            }
            let freed = lane.free(index);
            if freed == Ok(len) { Ok(0) } else { Err(No::Wrong) }
        }
        Ask::Shrink(held, units) => resized(lane.shrink(held.index, units)),
        Ask::Grow(held, units) => resized(lane.grow(held.index, units)),
        Ask::SplitOff(held, units) => lane.split_off(held.index, units).map_err(No::from),
        Ask::Split(held, order) => resized(lane.split(held.index, order)),
        Ask::FreePart(held, part) => resized(lane.free_part(held.index, part)),
        Ask::Batch(order, blocks) => match lane.alloc_batch(order, blocks) {
            Ok(count) => {
                blocks.truncate(count);
                Ok(0)
            }
            Err(AllocError::Exhausted { .. }) => {
                blocks.clear();
                Err(No::Exhausted)
            }
            Err(_) => Err(No::Wrong),
        },
        Ask::FreeBatch(order, blocks) => {
            lane.free_batch(order, blocks).map(|()| 0).map_err(|_| No::Wrong)
        }
    }
}

/// Returns whether a range has a place for so many units at a multiple of `2^order`, whatever is free.
#[must_use]
pub fn has_place(units: u64, order: u32, range: &Range<u64>) -> bool {
    range.start.next_multiple_of(1 << order) + units <= range.end
}

/// Returns the request of [`Ask::Within`].
pub fn within(units: u64, order: u32, range: Range<u64>, top_down: bool) -> Request {
    let request = Request::units(units).aligned(order).within(range);
    if top_down { request.top_down() } else { request }
}

impl From<RequestError> for No {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::NoPlace { .. } => Self::Nowhere,
            RequestError::Exhausted { .. } => Self::Exhausted,
            RequestError::InUse { unit } => Self::InUse(unit),
            _ => Self::Wrong,
        }
    }
}

impl From<ResizeError> for No {
    fn from(error: ResizeError) -> Self {
        match error {
            ResizeError::InUse { unit } | ResizeError::OutOfRange { units: unit, .. } => {
                Self::InUse(unit)
            }
            ResizeError::Contended { .. } => Self::Contended,
            _ => Self::Wrong,
        }
    }
}
