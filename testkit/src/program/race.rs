//! Runs several sequences of operations at once.

use std::ops::Range;

use super::judged::{FEW_BLOCKS, Judged};
use super::runs::Player;
use super::sequential::pick_from;
use super::{Held, Op, Program, Subject};
use crate::{Block, Oracle, Spec, Unit, Violation};

/// The number of units of a leaf word, in the standard shape.
const UNITS_OF_A_LEAF: u64 = 32;

/// A race: a program that runs first, and then the operations of each lane, all lanes at once.
///
/// A lane begins with the blocks that the program's steps on that lane left. It frees what it holds,
/// releases what it has reserved, and asks only for refusals that are certain whatever the others do;
/// a request that is not of this kind is skipped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Race {
    /// The arena, and what happens before the race.
    pub setup: Program,
    /// The operations of each lane.
    pub lanes: Vec<Vec<Op>>,
    /// Whether all lanes pass the same lane to the allocator: allowed, but no allocator is made for it.
    pub shared: bool,
}

/// What happened on a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneReport {
    /// Allocations that succeeded.
    pub granted: u64,
    /// Allocations that were refused.
    pub refused: u64,
}

/// What a lane does: a function to call on a thread.
pub type Body<'a> = Box<dyn FnOnce() -> Result<(), Violation> + Send + 'a>;

/// Runs a race on a fresh subject. `together` calls each body, all on different threads, and returns when all have
/// returned; see [`steered::at_once`](crate::steered::at_once) and [`Schedule`](crate::steered::Schedule). Afterwards
/// the arena is compared with the specification and drained at every order; then everything is returned, and the arena
/// must be whole.
///
/// # Errors
/// The first violation.
pub fn race<S: Subject>(
    race: &Race,
    subject: &S,
    together: impl FnOnce(Vec<Body<'_>>) -> Result<(), Violation>,
) -> Result<Vec<LaneReport>, Violation> {
    let setup = &race.setup;
    let mut judged = Judged::new(subject, setup.units, setup.reserved);
    judged.steps(&setup.steps).map_err(|failure| failure.violation)?;

    let of_others = |index: u64| lane_of(&judged.oracle, index) >= race.lanes.len();
    let blocks = judged.held.iter().copied().filter(|block| of_others(block.index));
    let runs = judged.runs.iter().copied().filter(|run| of_others(run.index));
    let of_others: (Vec<Block>, Vec<Held>) = (blocks.collect(), runs.collect());
    let told = |lane| if race.shared { 0 } else { lane };
    let mut lanes: Vec<_> =
        (0..race.lanes.len()).map(|lane| Lane::new(&judged, lane, told(lane))).collect();
    let bodies = lanes.iter_mut().zip(&race.lanes).map(|(lane, ops)| -> Body<'_> {
        Box::new(move || ops.iter().try_for_each(|op| lane.step(op)))
    });
    together(bodies.collect())?;

    let left = lanes.into_iter().map(|lane| (lane.held, lane.runs, lane.reserved, lane.report));
    let left: Vec<_> = left.collect();
    (judged.held, judged.runs) = of_others;
    judged.held.extend(left.iter().flat_map(|(held, ..)| held));
    judged.runs.extend(left.iter().flat_map(|(_, runs, ..)| runs));
    judged.spec = Spec::new(setup.units);
    judged.held.iter().for_each(|block| judged.spec.grant(block.index, block.order));
    judged.runs.iter().for_each(|run| judged.spec.grant_run(run.index, run.len));
    for &unit in left.iter().flat_map(|(_, _, reserved, _)| reserved) {
        assert!(judged.spec.reserve(unit..unit + 1), "the owner map has seen this reservation");
    }
    judged.clear_up(FEW_BLOCKS)?;
    Ok(left.into_iter().map(|(.., report)| report).collect())
}

fn lane_of(oracle: &Oracle, index: u64) -> usize {
    oracle.holder_of(index).map_or(usize::MAX, |holder| holder.lane)
}

struct Lane<'a, S> {
    subject: &'a S,
    oracle: &'a Oracle,
    lane: usize,
    /// The lane that is passed to the allocator.
    told: usize,
    held: Vec<Block>,
    runs: Vec<Held>,
    /// The reserved units, one by one.
    reserved: Vec<u64>,
    report: LaneReport,
}

impl<'a, S: Subject> Lane<'a, S> {
    /// Creates a lane with the blocks that the setup left on it; lane 0 has the reserved units.
    fn new(judged: &'a Judged<'a, S>, lane: usize, told: usize) -> Self {
        let Judged { subject, oracle, spec, held, runs, .. } = judged;
        let own = |index: u64| lane_of(oracle, index) == lane;
        let held = held.iter().copied().filter(|block| own(block.index)).collect();
        let runs = runs.iter().copied().filter(|run| own(run.index)).collect();
        let is_reserved = |unit| spec.unit(unit) == Some(Unit::Reserved);
        let reserved = (0..spec.units()).filter(|&unit| lane == 0 && is_reserved(unit)).collect();
        Self { subject, oracle, lane, told, held, runs, reserved, report: LaneReport::default() }
    }

    fn step(&mut self, op: &Op) -> Result<(), Violation> {
        match *op {
            Op::Alloc { order } => self.alloc(order).map(|_| ()),
            Op::Free { pick } => match pick_from(&self.held, pick) {
                Some(block) => self.free(block, false),
                None => Ok(()),
            },
            Op::FreeSized { pick } => match pick_from(&self.held, pick) {
                Some(block) => self.free(block, true),
                None => Ok(()),
            },
            Op::FreeAt { index } => self.bad_free(index, None),
            Op::FreeSizedAt { index, order } => self.bad_free(index, Some(order)),
            Op::OrderOf { index } => self.order_of(index),
            Op::Reserve { start, end } => self.reserve(start..end),
            Op::Release { start, end } => self.release(start..end),
            Op::Drain { order } => self.drain(order),
            Op::Inspect => self.subject.observe(&self.held),
            Op::Run(ref op) => {
                let Self { subject, oracle, lane, told, held, runs, .. } = self;
                let (lane, told) = (*lane, *told);
                Player { subject: *subject, oracle, lane, told, held, runs, spec: None }
                    .step(op)?;
                Ok(())
            }
            // Another lane may hold it by now.
            Op::FreeAgain => Ok(()),
            Op::Cache(_) => Ok(()),
        }
    }

    fn alloc(&mut self, order: u32) -> Result<Option<Block>, Violation> {
        let Ok(index) = self.subject.try_alloc(self.told, order) else {
            self.report.refused += 1;
            return Ok(None);
        };
        let block = self.oracle.take(self.lane, index, order)?;
        self.held.push(block);
        self.report.granted += 1;
        Ok(Some(block))
    }

    fn free(&mut self, block: Block, sized: bool) -> Result<(), Violation> {
        self.oracle.give(block)?;
        self.held.retain(|&held| held != block);
        let answer = if sized {
            self.subject.free_sized(self.told, block.index, block.order).map(|()| block.len())
        } else {
            self.subject.free_unsized(self.told, block.index)
        };
        match answer {
            Ok(units) if units == block.len() => Ok(()),
            answer => Err(Violation::wrong(format!("free of the {block}"), block.len(), answer)),
        }
    }

    /// Tries a free that is certainly refused: inside a block of this lane, or with the wrong order. A smaller order in
    /// a block of a leaf word or more is not certain: it names words below the block, where another lane's claim may
    /// stand until it is undone, and `free_sized` trusts the order.
    fn bad_free(&mut self, index: u64, order: Option<u32>) -> Result<(), Violation> {
        let held = self.held.iter().find(|block| block.units().contains(&index));
        let Some(&block) = held.filter(|block| block.index != index || order.is_some()) else {
            return Ok(());
        };
        let answer = match order {
            None => self.subject.free_unsized(self.told, index).map(|_| ()),
            Some(order) if (index, order) == (block.index, block.order) => return Ok(()),
            Some(order) if order < block.order && block.len() >= UNITS_OF_A_LEAF => return Ok(()),
            Some(order) => self.subject.free_sized(self.told, index, order),
        };
        match answer {
            Ok(()) => Err(Violation::FreeAccepted { block: Block { index, order: 0 } }),
            Err(_) => Ok(()),
        }
    }

    fn order_of(&self, index: u64) -> Result<(), Violation> {
        let answer = self.subject.order_of(index);
        let held = self.held.iter().find(|block| block.units().contains(&index));
        let right = match held {
            Some(block) if block.index == index => answer == Ok(block.order),
            Some(_) => answer.is_err(),
            None => true,
        };
        if right {
            Ok(())
        } else {
            Err(Violation::wrong(format!("order_of({index})"), held, answer))
        }
    }

    fn reserve(&mut self, range: Range<u64>) -> Result<(), Violation> {
        if self.subject.reserve(range.clone()).is_err() {
            return Ok(());
        }
        self.oracle.reserve(range.clone())?;
        self.reserved.extend(range);
        Ok(())
    }

    fn release(&mut self, range: Range<u64>) -> Result<(), Violation> {
        let own = |unit| self.reserved.contains(&unit);
        if range.is_empty() || range.end > self.oracle.units() || !range.clone().all(own) {
            return Ok(());
        }
        self.reserved.retain(|unit| !range.contains(unit));
        self.oracle.release(range.clone())?;
        let question = format!("release({range:?})");
        self.subject.release(range).map_err(|error| Violation::wrong(question, "done", error))
    }

    fn drain(&mut self, order: u32) -> Result<(), Violation> {
        let mut blocks = Vec::new();
        while let Some(block) = self.alloc(order)? {
            blocks.push(block);
        }
        blocks.into_iter().try_for_each(|block| self.free(block, true))
    }
}
