//! Runs operations on runs of any number of units, on parts of what is held, and on many blocks at once.
//!
//! It is one interpreter for both kinds of program and for stress. The owner map always judges; the specification
//! judges if operations run one at a time.

use super::sequential::pick_from;
use super::{Ask, Held, No, RunOp};
use crate::{BackEnd, Block, Oracle, Spec, Unit, Violation};

/// The player of an operation: its lane, and what is known.
pub(crate) struct Player<'a, S: ?Sized> {
    pub subject: &'a S,
    pub oracle: &'a Oracle,
    /// The lane, for the owner map, and the one that is passed to the allocator.
    pub lane: usize,
    pub told: usize,
    pub held: &'a mut Vec<Block>,
    pub runs: &'a mut Vec<Held>,
    /// Present if operations run one at a time.
    pub spec: Option<&'a mut Spec>,
}

impl<S: BackEnd + ?Sized> Player<'_, S> {
    /// Carries out an operation. Returns `true` if it was granted, and `false` if it was refused, or there was nothing
    /// to do.
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
            RunOp::Shrink { pick, units } => self
                .with(pick, |player, held| player.change(Ask::Shrink(held, 1 + units % held.len))),
            RunOp::Grow { pick, units } => self.with(pick, |player, held| player.grow(held, units)),
            RunOp::SplitOff { pick, units } => self.with(pick, |player, held| {
                let first = 1 + units % held.len;
                if first == held.len {
                    Ok(false)
                } else {
                    player.change(Ask::SplitOff(held, first))
                }
            }),
            RunOp::Split { pick, order } => self.with(pick, |player, held| {
                let order = order.min((held.index | held.len).trailing_zeros());
                player.change(Ask::Split(held, order))
            }),
            RunOp::FreePart { pick, skip, units } => self.with(pick, |player, held| {
                let start = held.index + skip % held.len;
                let end = start + 1 + units % (held.index + held.len - start);
                player.change(Ask::FreePart(held, start..end))
            }),
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
        let has_place = ask.has_place();
        let answer = self.subject.ask(self.told, ask);
        let says_so = answer == Err(No::Nowhere);
        if has_place && says_so {
            return Err(Violation::wrong(question, "a place, or none now", answer));
        }
        if !has_place && !says_so && self.spec.is_some() {
            return Err(Violation::wrong(question, "that there is no place", answer));
        }
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

    /// Forgets a run that was freed by its index.
    pub fn forget_run(&mut self, index: u64) -> Result<(), Violation> {
        let run = self.runs.iter().find(|run| run.index == index).copied();
        run.map_or(Ok(()), |run| self.give(run))
    }

    /// Changes what is held into parts. The owner map is told first, as units become free.
    fn change(&mut self, ask: Ask<'_>) -> Result<bool, Violation> {
        let (question, held, parts) = (format!("{ask:?}"), ask.held(), ask.parts());
        held.map_or(Ok(()), |held| self.give(held))?;
        for &part in &parts {
            self.take(part)?;
        }
        match self.subject.ask(self.told, ask) {
            Ok(_) => Ok(true),
            Err(no) => {
                for &part in &parts {
                    self.give(part)?;
                }
                held.map_or(Ok(()), |held| self.take(held))?;
                match no {
                    No::Contended if self.spec.is_none() => Ok(false),
                    _ => Err(Violation::wrong(question, "done", no)),
                }
            }
        }
    }

    fn grow(&mut self, held: Held, units: u64) -> Result<bool, Violation> {
        let grown = Held { index: held.index, len: held.len + units };
        let end = held.index + held.len;
        let answer = self.subject.ask(self.told, Ask::Grow(held, grown.len));
        let possible = self.spec.as_ref().map(|spec| {
            let more = end..end + units;
            units == 0 || spec.all(&more, Unit::Free)
        });
        match answer {
            Ok(_) if possible != Some(false) => {
                self.give(held)?;
                self.take(grown).map(|()| true)
            }
            Err(No::InUse(_)) if possible != Some(true) => Ok(false),
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
