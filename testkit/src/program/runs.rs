//! Operations on runs of any number of units, on parts of what is held, and on many blocks at once.
//!
//! One interpreter for both kinds of program: the owner map judges always, the specification where
//! operations run one at a time.

use std::ops::Range;

use nbbs::sync::Word;
use nbbs::{AllocError, Buddy, RequestError, ResizeError};

use super::sequential::pick_from;
use super::{RunOp, Subject};
use crate::{Block, Oracle, Spec, Unit, Violation};

/// Units that are held together, block or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// First unit.
    pub index: u64,
    /// Units.
    pub len: u64,
}

/// What is asked of a back-end that can do more than blocks. Numbers are what they say, not yet picked.
#[derive(Debug, PartialEq, Eq)]
pub enum Ask<'a> {
    /// So many units.
    Units(u64),
    /// So many units at this unit.
    At(Held),
    /// So many units, a multiple of `2^order`, in a range, from its beginning or its end.
    Within(u64, u32, Range<u64>, bool),
    /// To free what is held.
    Free(Held),
    /// To make what is held at the index this long.
    Shrink(Held),
    /// To make what is held at the index this long.
    Grow(Held),
    /// To cut what is held at the index after so many units.
    SplitOff(Held),
    /// To cut what is held at the index into blocks of an order.
    Split(u64, u32),
    /// To give back a part of what is held at the index.
    FreePart(u64, Range<u64>),
    /// As many blocks of an order as there is room for.
    Batch(u32, &'a mut Vec<u64>),
    /// To free blocks of an order.
    FreeBatch(u32, &'a [u64]),
}

/// Why not, as far as it can be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum No {
    /// The back-end does not offer this.
    NotOffered,
    /// Nothing suitable is free.
    Exhausted,
    /// A unit is in use.
    InUse(u64),
    /// A run across words would begin at the last unit of one.
    LastOfWord,
    /// Somebody's claim is in the way.
    Contended,
    /// Anything else: never expected here.
    Wrong,
}

/// [`Subject::ask`] for this project's back-end. Returns the first unit where one is asked for.
///
/// # Errors
/// Why not.
pub fn ask<W: Word>(buddy: &Buddy<'_, W>, lane: usize, ask: Ask<'_>) -> Result<u64, No> {
    let resized = |result: Result<(), ResizeError>| result.map(|()| 0).map_err(of_resize);
    match ask {
        Ask::Units(units) => buddy.alloc_units_on(lane, units).map_err(of_request),
        Ask::At(Held { index, len }) => buddy.alloc_at_on(lane, index, len).map_err(of_request),
        Ask::Within(units, order, range, top_down) => {
            let request = nbbs::Request::units(units).aligned(order).within(range);
            let request = if top_down { request.top_down() } else { request };
            buddy.request_on(lane, request).map_err(of_request)
        }
        Ask::Free(Held { index, len }) => {
            if len % 2 == 0 {
                return buddy.free_units_on(lane, index, len).map(|()| 0).map_err(|_| No::Wrong);
            }
            let order = len.next_power_of_two().trailing_zeros();
            let freed = buddy.free_on(lane, index);
            if freed == Ok(order) { Ok(0) } else { Err(No::Wrong) }
        }
        Ask::Shrink(Held { index, len }) => resized(buddy.shrink_on(lane, index, len)),
        Ask::Grow(Held { index, len }) => resized(buddy.grow_on(lane, index, len)),
        Ask::SplitOff(Held { index, len }) => {
            buddy.split_off_on(lane, index, len).map_err(of_resize)
        }
        Ask::Split(index, order) => resized(buddy.split_on(lane, index, order)),
        Ask::FreePart(index, part) => resized(buddy.free_part_on(lane, index, part)),
        Ask::Batch(order, blocks) => match buddy.alloc_batch_on(lane, order, blocks) {
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
            buddy.free_batch_on(lane, order, blocks).map(|()| 0).map_err(|_| No::Wrong)
        }
    }
}

fn of_request(error: RequestError) -> No {
    match error {
        RequestError::Exhausted { .. } => No::Exhausted,
        RequestError::InUse { unit } => No::InUse(unit),
        RequestError::LastOfWord { .. } => No::LastOfWord,
        _ => No::Wrong,
    }
}

fn of_resize(error: ResizeError) -> No {
    match error {
        ResizeError::InUse { unit } => No::InUse(unit),
        ResizeError::LastOfWord { .. } => No::LastOfWord,
        ResizeError::Contended { .. } => No::Contended,
        _ => No::Wrong,
    }
}

/// Whose operation it is, and what is known.
pub(super) struct Player<'a, S: ?Sized> {
    pub subject: &'a S,
    pub oracle: &'a Oracle,
    /// The lane, for the owner map, and the one that the allocator is told.
    pub lane: usize,
    pub told: usize,
    pub held: &'a mut Vec<Block>,
    pub runs: &'a mut Vec<Held>,
    /// Present if operations run one at a time.
    pub spec: Option<&'a mut Spec>,
}

impl<S: Subject + ?Sized> Player<'_, S> {
    /// Carries out an operation. `true`: it was granted; `false`: refused, or there was nothing to do.
    pub fn step(&mut self, op: &RunOp) -> Result<bool, Violation> {
        if !self.subject.offers_runs() {
            return Ok(false);
        }
        let units = self.oracle.units();
        match *op {
            RunOp::Alloc { units: len } => {
                self.alloc(Ask::Units(len), len, |spec| spec.place(len, 0, &(0..units), false))
            }
            RunOp::At { index, units: len } if index + len <= units => {
                let at = Held { index, len };
                self.alloc(Ask::At(at), len, |spec| {
                    spec.place(len, 0, &(index..index + len), false)
                })
            }
            RunOp::Within { units: len, order, start, end, top_down }
                if start < end && end <= units =>
            {
                let ask = Ask::Within(len, order, start..end, top_down);
                self.alloc(ask, len, |spec| spec.place(len, order, &(start..end), top_down))
            }
            RunOp::At { .. } | RunOp::Within { .. } => Ok(false),
            RunOp::Free { pick } => self.with(pick, |player, held| player.free(held)),
            RunOp::Shrink { pick, units } => self.with(pick, |player, Held { index, len }| {
                let kept = Held { index, len: 1 + units % len };
                player.change(Ask::Shrink(kept), Held { index, len }, &[kept])
            }),
            RunOp::Grow { pick, units } => self.with(pick, |player, held| player.grow(held, units)),
            RunOp::SplitOff { pick, units } => self.with(pick, |player, Held { index, len }| {
                let first = Held { index, len: 1 + units % len };
                let second = Held { index: index + first.len, len: len - first.len };
                match second.len {
                    0 => Ok(false),
                    _ => player.change(Ask::SplitOff(first), Held { index, len }, &[first, second]),
                }
            }),
            RunOp::Split { pick, order } => self.with(pick, |player, Held { index, len }| {
                let order = order.min((index | len).trailing_zeros());
                let blocks = (index..index + len).step_by(1 << order);
                let parts: Vec<_> = blocks.map(|index| Held { index, len: 1 << order }).collect();
                player.change(Ask::Split(index, order), Held { index, len }, &parts)
            }),
            RunOp::FreePart { pick, skip, units } => {
                self.with(pick, |player, Held { index, len }| {
                    let start = index + skip % len;
                    let end = start + 1 + units % (index + len - start);
                    let kept = [(index, start), (end, index + len)];
                    let kept = kept.map(|(from, to)| Held { index: from, len: to - from });
                    let kept: Vec<_> = kept.into_iter().filter(|part| part.len > 0).collect();
                    player.change(Ask::FreePart(index, start..end), Held { index, len }, &kept)
                })
            }
            RunOp::Batch { order, count } => self.batch(order, count),
            RunOp::FreeBatch { order } => self.free_batch(order),
        }
    }

    fn with(
        &mut self,
        pick: usize,
        act: impl FnOnce(&mut Self, Held) -> Result<bool, Violation>,
    ) -> Result<bool, Violation> {
        let blocks = self.held.iter().map(|block| Held { index: block.index, len: block.len() });
        let all: Vec<Held> = blocks.chain(self.runs.iter().copied()).collect();
        pick_from(&all, pick).map_or(Ok(false), |held| act(self, held))
    }

    fn alloc(
        &mut self,
        ask: Ask<'_>,
        len: u64,
        place: impl FnOnce(&Spec) -> Option<u64>,
    ) -> Result<bool, Violation> {
        let question = format!("{ask:?}");
        let exact = matches!(ask, Ask::Within(..));
        let answer = self.subject.ask(self.told, ask);
        if let Some(spec) = &self.spec {
            let expected = place(spec);
            let right = match answer {
                Ok(index) => expected.is_some() && (!exact || expected == Some(index)),
                Err(_) => expected.is_none(),
            };
            if !right {
                return Err(Violation::wrong(question, expected, answer));
            }
        }
        match answer {
            Ok(index) => self.take(Held { index, len }).map(|()| true),
            Err(No::Wrong) => Err(Violation::wrong(question, "a place, or none", answer)),
            Err(_) => Ok(false),
        }
    }

    pub fn free(&mut self, held: Held) -> Result<bool, Violation> {
        self.give(held)?;
        self.subject
            .ask(self.told, Ask::Free(held))
            .map(|_| true)
            .map_err(|no| Violation::wrong(format!("free of {held:?}"), "done", no))
    }

    /// A run that was freed by its index.
    pub fn forget_run(&mut self, index: u64) -> Result<(), Violation> {
        let run = self.runs.iter().find(|run| run.index == index).copied();
        run.map_or(Ok(()), |run| self.give(run))
    }

    /// A change of what is held into `parts`: the owner map learns of it first, as units come free.
    fn change(&mut self, ask: Ask<'_>, held: Held, parts: &[Held]) -> Result<bool, Violation> {
        let question = format!("{ask:?} of {held:?}");
        self.give(held)?;
        for &part in parts {
            self.take(part)?;
        }
        match self.subject.ask(self.told, ask) {
            Ok(_) => Ok(true),
            Err(no) => {
                for &part in parts {
                    self.give(part)?;
                }
                self.take(held)?;
                let crosses = |part: &Held| part.index & 31 == 31 && part.len > 1;
                match no {
                    No::LastOfWord if parts.iter().any(crosses) => Ok(false),
                    No::Contended if self.spec.is_none() => Ok(false),
                    _ => Err(Violation::wrong(question, "done", no)),
                }
            }
        }
    }

    fn grow(&mut self, held: Held, units: u64) -> Result<bool, Violation> {
        let grown = Held { index: held.index, len: held.len + units };
        let end = held.index + held.len;
        let answer = self.subject.ask(self.told, Ask::Grow(grown));
        let possible = self.spec.as_ref().map(|spec| {
            let more = end..end + units;
            (units == 0 || spec.all(&more, Unit::Free))
                && (held.len > 1 || held.index & 31 != 31 || units == 0)
        });
        match answer {
            Ok(_) if possible != Some(false) => {
                self.give(held)?;
                self.take(grown).map(|()| true)
            }
            Err(No::InUse(_) | No::LastOfWord) if possible != Some(true) => Ok(false),
            Err(No::Contended) if possible.is_none() => Ok(false),
            answer => {
                Err(Violation::wrong(format!("grow of {held:?} by {units}"), possible, answer))
            }
        }
    }

    fn batch(&mut self, order: u32, count: usize) -> Result<bool, Violation> {
        let mut blocks = vec![0; count];
        let answer = self.subject.ask(self.told, Ask::Batch(order, &mut blocks));
        if answer == Err(No::Wrong) || answer.is_err() && !blocks.is_empty() {
            return Err(Violation::wrong(format!("a batch of order {order}"), "blocks", answer));
        }
        for &index in &blocks {
            self.take(Held { index, len: 1 << order })?;
        }
        match &self.spec {
            Some(spec) if blocks.len() < count => spec.check_refusal(order)?,
            _ => {}
        }
        Ok(answer.is_ok())
    }

    fn free_batch(&mut self, order: u32) -> Result<bool, Violation> {
        let of_order = |block: &&Block| block.order == order;
        let blocks: Vec<Block> = self.held.iter().filter(of_order).copied().collect();
        for block in &blocks {
            self.give(Held { index: block.index, len: block.len() })?;
        }
        let indices: Vec<u64> = blocks.iter().map(|block| block.index).collect();
        self.subject
            .ask(self.told, Ask::FreeBatch(order, &indices))
            .map(|_| true)
            .map_err(|no| Violation::wrong(format!("free of {blocks:?}"), "done", no))
    }

    fn take(&mut self, held: Held) -> Result<(), Violation> {
        match Block::of(held.index, held.len) {
            Some(block) => {
                self.oracle.take(self.lane, block.index, block.order)?;
                self.held.push(block);
            }
            None => {
                for unit in held.index..held.index + held.len {
                    self.oracle.take(self.lane, unit, 0)?;
                }
                self.runs.push(held);
            }
        }
        if let Some(spec) = &mut self.spec {
            spec.grant_run(held.index, held.len);
        }
        Ok(())
    }

    fn give(&mut self, held: Held) -> Result<(), Violation> {
        match Block::of(held.index, held.len) {
            Some(block) => {
                self.oracle.give(block)?;
                self.held.retain(|&other| other != block);
            }
            None => {
                for index in held.index..held.index + held.len {
                    self.oracle.give(Block { index, order: 0 })?;
                }
                self.runs.retain(|&other| other != held);
            }
        }
        if let Some(spec) = &mut self.spec {
            spec.give_back_run(held.index);
        }
        Ok(())
    }
}
