//! Makes requests to a subject, and judges every answer by the owner map and the specification.

use std::fmt::Debug;
use std::ops::Range;

use nbbs::AllocError;

use super::runs::Player;
use super::{Held, RunOp, Subject, truth};
use crate::{Block, Oracle, Spec, Unit, Violation};

/// What a program did, so that a test can see that it did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of blocks allocated.
    pub granted: u64,
    /// Allocations that were honestly refused, because nothing suitable was free.
    pub exhausted: u64,
    /// Other requests that were rightly refused.
    pub refused: u64,
}

/// Arenas up to this size are inspected after every refusal, since nothing may have changed.
const SMALL: u64 = 1100;

/// The most blocks of an order that clearing up allocates after a program.
pub(super) const MANY_BLOCKS: u64 = 1 << 12;

/// The most blocks of an order that clearing up allocates after each of the thousands of schedules of a race.
pub(super) const FEW_BLOCKS: u64 = 64;

/// A subject that nothing else uses, and what is known about it.
pub(super) struct Judged<'a, S: ?Sized> {
    pub subject: &'a S,
    pub spec: Spec,
    pub oracle: Oracle,
    pub held: Vec<Block>,
    pub runs: Vec<Held>,
    pub last_freed: Option<Block>,
    pub summary: Summary,
    /// Whether an inspection follows each refusal.
    watchful: bool,
}

impl<'a, S: Subject + ?Sized> Judged<'a, S> {
    /// Wraps a fresh subject, with all units free or, if `reserved`, all reserved.
    pub fn new(subject: &'a S, units: u64, reserved: bool) -> Self {
        let oracle = Oracle::new(units);
        let spec = if reserved { Spec::new_reserved(units) } else { Spec::new(units) };
        if reserved {
            oracle.reserve(0..units).expect("a new map has no holders");
        }
        let summary = Summary::default();
        let watchful = units <= SMALL;
        Self {
            subject,
            spec,
            oracle,
            held: vec![],
            runs: vec![],
            last_freed: None,
            summary,
            watchful,
        }
    }

    /// Allocates a block. Returns it if it was granted; the caller must keep it in `held`, or free it.
    pub fn alloc(&mut self, lane: usize, order: u32) -> Result<Option<Block>, Violation> {
        let max = self.spec.max_order();
        let error = match self.subject.try_alloc(lane, order) {
            Ok(index) => {
                let block = self.oracle.take(lane, index, order)?;
                self.spec.grant(index, order);
                self.summary.granted += 1;
                return Ok(Some(block));
            }
            Err(error) => error,
        };
        let expected = if order > max {
            self.summary.refused += 1;
            AllocError::OrderTooLarge { order, max }
        } else {
            self.spec.check_refusal(order)?;
            self.summary.exhausted += 1;
            AllocError::Exhausted { units: 1 << order }
        };
        if error != expected {
            return Err(Violation::wrong(format!("alloc({order})"), expected, error));
        }
        self.unchanged().map(|()| None)
    }

    /// Frees what is at `index`, if anything, without or with its order.
    pub fn free(&mut self, lane: usize, index: u64, order: Option<u32>) -> Result<(), Violation> {
        let block = self.spec.block_at(index);
        let block = block.filter(|block| order.is_none_or(|order| block.order == order));
        if let Some(block) = block {
            self.oracle.give(block)?;
        }
        let answer = match order {
            None => self.subject.free_unsized(lane, index),
            Some(order) => {
                self.subject.free_sized(lane, index, order).map(|()| 1_u64.unbounded_shl(order))
            }
        };
        match (block, answer) {
            // A run is freed as a whole: it was found by its index, not by a pick.
            (None, Ok(freed)) if order.is_none() && self.spec.len_at(index) == Some(freed) => {
                self.player(lane).forget_run(index)
            }
            (Some(block), Ok(freed)) if freed == block.len() => {
                self.spec.give_back(index);
                if let Some(place) = self.held.iter().position(|&held| held == block) {
                    self.held.remove(place);
                }
                self.last_freed = Some(block);
                Ok(())
            }
            (None, Err(error)) if truth::of_free(&self.spec, index, order, error) => {
                self.summary.refused += 1;
                self.unchanged()
            }
            _ => Err(self.wrong(&format!("free({index}), order {order:?},"), index, answer)),
        }
    }

    /// Carries out an operation on runs, parts or many blocks.
    pub fn run_op(&mut self, lane: usize, op: &RunOp) -> Result<(), Violation> {
        if self.player(lane).step(op)? {
            self.summary.granted += 1;
            return Ok(());
        }
        self.summary.refused += 1;
        self.unchanged()
    }

    fn player(&mut self, lane: usize) -> Player<'_, S> {
        let Self { subject, oracle, held, runs, spec, .. } = self;
        Player { subject: *subject, oracle, lane, told: lane, held, runs, spec: Some(spec) }
    }

    pub fn order_of(&mut self, index: u64) -> Result<(), Violation> {
        let answer = self.subject.order_of(index);
        let block = self.spec.block_at(index);
        let right = match answer {
            Ok(order) if block.is_none() => self.order_of_run(index) == Some(order),
            Ok(order) => block == Some(Block { index, order }),
            Err(error) => block.is_none() && truth::of_free(&self.spec, index, None, error),
        };
        if right { Ok(()) } else { Err(self.wrong(&format!("order_of({index})"), index, answer)) }
    }

    /// Returns the order of a block that would hold the run at `index`.
    fn order_of_run(&self, index: u64) -> Option<u32> {
        Some(self.spec.len_at(index)?.next_power_of_two().trailing_zeros())
    }

    pub fn reserve(&mut self, range: Range<u64>) -> Result<(), Violation> {
        match self.subject.reserve(range.clone()) {
            Ok(()) if self.spec.reserve(range.clone()) => self.oracle.reserve(range),
            Err(error) if truth::of_reserve(&self.spec, &range, error) => {
                self.summary.refused += 1;
                self.unchanged()
            }
            answer => Err(self.wrong(&format!("reserve({range:?})"), range.start, answer)),
        }
    }

    pub fn release(&mut self, range: Range<u64>) -> Result<(), Violation> {
        let possible = self.spec.all(&range, Unit::Reserved);
        if possible {
            self.oracle.release(range.clone())?;
        }
        match self.subject.release(range.clone()) {
            Ok(()) if possible => {
                self.spec.release(range);
                Ok(())
            }
            Err(error) if truth::of_release(&self.spec, &range, error) => {
                self.summary.refused += 1;
                self.unchanged()
            }
            answer => Err(self.wrong(&format!("release({range:?})"), range.start, answer)),
        }
    }

    pub fn drain(&mut self, lane: usize, order: u32) -> Result<(), Violation> {
        let mut blocks = Vec::new();
        while let Some(block) = self.alloc(lane, order)? {
            blocks.push(block);
        }
        blocks.into_iter().try_for_each(|block| self.free(lane, block.index, Some(block.order)))
    }

    /// Drains what is free at every order of up to `most` blocks, returns everything, and does it again.
    pub fn clear_up(&mut self, most: u64) -> Result<(), Violation> {
        self.subject.inspect(&self.spec)?;
        self.watchful = false;
        self.drain_orders(most)?;
        for block in self.held.clone() {
            self.free(0, block.index, None)?;
        }
        for run in self.runs.clone() {
            self.player(0).free(run)?;
        }
        let mut unit = 0;
        while unit < self.spec.units() {
            let is_reserved = |&unit: &u64| self.spec.unit(unit) == Some(Unit::Reserved);
            let end = unit + (unit..self.spec.units()).take_while(is_reserved).count() as u64;
            if end > unit {
                self.release(unit..end)?;
            }
            unit = end + 1;
        }
        self.drain_orders(most)?;
        self.subject.inspect(&self.spec)
    }

    fn drain_orders(&mut self, most: u64) -> Result<(), Violation> {
        let few_blocks = |order: &u32| self.spec.units() >> order <= most;
        let orders: Vec<u32> = (0..=self.spec.max_order()).rev().filter(few_blocks).collect();
        orders.into_iter().try_for_each(|order| self.drain(0, order))
    }

    /// Checks after a refusal that nothing has changed.
    fn unchanged(&self) -> Result<(), Violation> {
        if self.watchful { self.subject.inspect(&self.spec) } else { Ok(()) }
    }

    fn wrong(&self, question: &str, index: u64, got: impl Debug) -> Violation {
        Violation::wrong(format!("{question} where it is"), self.spec.unit(index), got)
    }
}
