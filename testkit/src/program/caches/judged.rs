//! Judges what caches answer while nothing else uses them.

use nbbs::AllocError;

use super::kinds::Kind;
use super::{CacheOp, CacheProgram, check_freed, check_refused};
use crate::{Block, Oracle, Spec, Violation, check_whole};

/// Caches that nothing else uses, and what is known about them.
pub(super) struct Judged<'p, K> {
    program: &'p CacheProgram,
    pub kind: K,
    pub oracle: Oracle,
    pub spec: Spec,
    pub held: Vec<Block>,
    /// Which CPUs were asked, and have made no operation since.
    pub asked: Vec<bool>,
}

impl<'p, K: Kind> Judged<'p, K> {
    pub fn new(program: &'p CacheProgram, kind: K) -> Self {
        let (oracle, spec) = (Oracle::new(program.units), Spec::new(program.units));
        Self { program, kind, oracle, spec, held: Vec::new(), asked: vec![false; program.cpus] }
    }

    /// Runs the program's steps, each judged.
    pub fn steps(&mut self) -> Result<(), Violation> {
        let program = self.program;
        program.steps.iter().try_for_each(|(cpu, op)| {
            self.step(*cpu, op)?;
            self.check_caps(*cpu)
        })
    }

    /// Frees all that is held, drains the caches, and checks that everything is whole.
    pub fn finish(mut self) -> Result<(), Violation> {
        while let Some(block) = self.held.pop() {
            let cpu = block.index as usize % self.program.cpus;
            self.free(cpu, block, block.index % 3 == 0)?;
        }
        self.inspect()?;
        (0..self.program.cpus).try_for_each(|cpu| self.drain(cpu))?;
        self.oracle.check_empty()?;
        self.inspect()?;
        check_whole(self.kind.buddy(), &self.oracle)
    }

    fn step(&mut self, cpu: usize, op: &CacheOp) -> Result<(), Violation> {
        match *op {
            CacheOp::Alloc { order } => self.alloc(cpu, order),
            CacheOp::Free { pick } | CacheOp::FreeSized { pick } => {
                if self.held.is_empty() {
                    return Ok(());
                }
                let block = self.held.swap_remove(pick % self.held.len());
                self.free(cpu, block, matches!(op, CacheOp::FreeSized { .. }))
            }
            CacheOp::FreeSizedAt { index, order } => self.free_wrongly(cpu, index, order),
            CacheOp::Drain => self.drain(cpu),
            CacheOp::Ask { cpu } => {
                if let Some(asked) = self.asked.get_mut(cpu) {
                    *asked = self.kind.ask(cpu);
                }
                Ok(())
            }
            CacheOp::DrainAll => {
                self.kind.drain_all();
                self.asked.fill(false);
                (0..self.program.cpus).try_for_each(|cpu| self.expect_empty(cpu, "drain_all()"))
            }
            CacheOp::Inspect => self.inspect(),
        }
    }

    pub fn alloc(&mut self, cpu: usize, order: u32) -> Result<(), Violation> {
        match self.kind.alloc(cpu, order) {
            Ok(index) => {
                self.held.push(self.oracle.take(cpu, index, order)?);
                self.spec.grant(index, order);
            }
            Err(AllocError::OrderTooLarge { order: named, max }) => {
                let expected = (order, self.spec.max_order());
                if order <= max || (named, max) != expected {
                    return Err(Violation::wrong("alloc(), too large,", expected, (named, max)));
                }
            }
            Err(AllocError::Exhausted { .. }) => {
                // The CPU has given back what it kept. If nobody else keeps anything, nothing suitable is free.
                self.expect_empty(cpu, "alloc(), refused,")?;
                self.answer(cpu);
                if self.kept() == 0 {
                    self.spec.check_refusal(order)?;
                }
            }
            Err(error) => return Err(Violation::wrong("alloc()", "a refusal", error)),
        }
        self.expect_answered(cpu)
    }

    fn free(&mut self, cpu: usize, block: Block, sized: bool) -> Result<(), Violation> {
        let Block { index, order } = block;
        self.oracle.give(block)?;
        self.spec.give_back(index);
        let answer = if sized {
            self.kind.free_sized(cpu, index, order).map(|()| block.len())
        } else {
            self.kind.free(cpu, index)
        };
        check_freed(block, answer)?;
        self.expect_answered(cpu)
    }

    /// Only checked frees of `Caches` look through all caches.
    fn free_wrongly(&mut self, cpu: usize, index: u64, order: u32) -> Result<(), Violation> {
        let block = Block { index, order };
        if self.program.owned || !self.program.checked || self.oracle.holds(block) {
            return Ok(());
        }
        match self.kind.free_sized(cpu, index, order) {
            Ok(()) => Err(Violation::FreeAccepted { block }),
            Err(_) => self.expect_answered(cpu),
        }
    }

    fn drain(&mut self, cpu: usize) -> Result<(), Violation> {
        self.kind.drain(cpu);
        self.answer(cpu);
        self.expect_empty(cpu, "drain()")
    }

    /// Notes that a CPU has answered all requests. Returns whether there was one.
    fn answer(&mut self, cpu: usize) -> bool {
        self.asked.get_mut(cpu).is_some_and(std::mem::take)
    }

    /// A CPU that was asked has given back after an operation, also one that was refused.
    fn expect_answered(&mut self, cpu: usize) -> Result<(), Violation> {
        if self.answer(cpu) {
            return self.expect_empty(cpu, "an operation after ask()");
        }
        Ok(())
    }

    fn expect_empty(&self, cpu: usize, question: &str) -> Result<(), Violation> {
        if cpu >= self.program.cpus || self.kind.cached(cpu).units == 0 {
            return Ok(());
        }
        Err(Violation::wrong(format!("{question} what is kept,"), 0, self.kind.cached(cpu)))
    }

    fn kept(&self) -> u64 {
        (0..self.program.cpus).map(|cpu| self.kind.cached(cpu).units).sum()
    }

    pub fn check_caps(&self, cpu: usize) -> Result<(), Violation> {
        if cpu >= self.program.cpus {
            return Ok(());
        }
        self.program.check_kept(&self.kind.cached(cpu), 1)
    }

    pub fn inspect(&self) -> Result<(), Violation> {
        self.kind.audit().map_err(Violation::Audit)?;
        let stats = self.kind.buddy().stats();
        let (expected, got) =
            (self.oracle.held_units(), stats.used_units.wrapping_sub(self.kept()));
        if got != expected {
            return Err(Violation::wrong("stats(), used but not cached,", expected, got));
        }
        check_refused(self.kind.refused())
    }
}
