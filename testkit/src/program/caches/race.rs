//! Races on caches: a thread for each CPU, and others without a cache that empty those of the CPUs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nbbs::AllocError;
use nbbs::sync::Word;

use super::judged::Judged;
use super::kinds::{ByCpu, Kind};
use super::{CacheOp, CacheProgram, LARGE, check_freed, check_refused};
use crate::program::sequential::pick_from;
use crate::program::{Arena, Body, LaneReport, observe};
use crate::{Block, Oracle, Spec, Violation};

/// A race on caches: a program that runs first, and then the operations of each lane, all lanes at once.
///
/// Blocks belong to all lanes together: a lane frees what any other has allocated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheRace {
    /// The caches, of which there is one for each CPU, and what happens before the race. They are a
    /// [`Caches`](nbbs::Caches), whether or not they are to be owned.
    pub setup: CacheProgram,
    /// The operations of each lane. A lane is the CPU of its number; those beyond the last cache have none.
    pub lanes: Vec<Vec<CacheOp>>,
}

/// Runs a race on fresh caches. `together` is as in [`race`](crate::program::race()), and must let all lanes see all
/// accesses in one order, since nothing stands for the barrier of `drain_all`. The owner map judges every answer.
///
/// Afterwards a CPU that was asked gives back what it keeps with its next operation; then everything is freed, the
/// caches are drained, and the arena must be whole.
///
/// # Errors
/// The first violation.
pub fn race_caches<W: Word + Default + Sync>(
    race: &CacheRace,
    together: impl FnOnce(Vec<Body<'_>>) -> Result<(), Violation>,
) -> Result<LaneReport, Violation> {
    let setup = &race.setup;
    let (arena, words) = (Arena::<W>::new(setup.units), setup.words::<W>());
    let mut judged = Judged::new(setup, setup.by_cpu(arena.buddy(), &words));
    judged.steps()?;
    let table = Table::new(race, &judged);
    let bodies = race.lanes.iter().enumerate().map(|(lane, ops)| -> Body<'_> {
        let table = &table;
        Box::new(move || ops.iter().try_for_each(|op| table.step(lane, op)))
    });
    together(bodies.collect())?;

    let Table { held, cpus, report, .. } = table;
    judged.held = held.into_inner().unwrap_or_else(PoisonError::into_inner);
    judged.spec = Spec::new(setup.units);
    judged.held.iter().for_each(|block| judged.spec.grant(block.index, block.order));
    judged.inspect()?;
    for (cpu, seen) in cpus.into_iter().enumerate() {
        judged.check_caps(cpu)?;
        let keeps = judged.kind.cached(cpu).units > 0;
        judged.asked[cpu] = keeps && seen.asked.into_inner() > 0;
        judged.alloc(cpu, 0)?;
    }
    judged.finish()?;
    Ok(report.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// What is known about a CPU. Only accesses to the allocator's words are steps of the race, so these never are.
struct Seen {
    /// Operations that have begun or ended: odd in the middle of one.
    turns: AtomicU64,
    /// 0, or 1 more than the calls that had emptied all caches, if it was asked to give back after those, and has begun
    /// no operation since.
    asked: AtomicU64,
}

impl Seen {
    fn of(asked: bool) -> Self {
        Self { turns: AtomicU64::new(0), asked: AtomicU64::new(asked.into()) }
    }
}

/// What had happened before a call.
struct Before {
    /// The turns of each CPU.
    turns: Vec<u64>,
    /// How many calls that empty all caches had ended.
    emptied: u64,
}

/// What the lanes of a race share.
struct Table<'a, W> {
    setup: &'a CacheProgram,
    kind: &'a ByCpu<'a, W>,
    oracle: &'a Oracle,
    /// The blocks that no lane is just then freeing or looking at.
    held: Mutex<Vec<Block>>,
    cpus: Vec<Seen>,
    /// How many calls that empty all caches have begun, and how many have ended.
    emptying: AtomicU64,
    emptied: AtomicU64,
    report: Mutex<LaneReport>,
}

impl<'a, W: Word + Sync> Table<'a, W> {
    fn new(race: &'a CacheRace, judged: &'a Judged<'a, ByCpu<'a, W>>) -> Self {
        Self {
            setup: &race.setup,
            kind: &judged.kind,
            oracle: &judged.oracle,
            held: Mutex::new(judged.held.clone()),
            cpus: judged.asked.iter().map(|&asked| Seen::of(asked)).collect(),
            emptying: AtomicU64::new(0),
            emptied: AtomicU64::new(0),
            report: Mutex::default(),
        }
    }

    fn step(&self, cpu: usize, op: &CacheOp) -> Result<(), Violation> {
        match *op {
            CacheOp::Alloc { order } => self.in_turn(cpu, || self.alloc(cpu, order)),
            CacheOp::Free { pick } | CacheOp::FreeSized { pick } => {
                let sized = matches!(op, CacheOp::FreeSized { .. });
                let Some(block) = self.take(|held| pick_from(held, pick)) else { return Ok(()) };
                self.in_turn(cpu, || self.free(cpu, block, sized))
            }
            CacheOp::FreeSizedAt { index, order } => self.free_wrongly(cpu, index, order),
            CacheOp::Drain => self.in_turn(cpu, || {
                let emptied = self.emptied();
                self.kind.caches.drain(cpu);
                self.expect_left_or_taken(cpu, emptied, "drain()")
            }),
            CacheOp::Ask { cpu: other } => {
                let before = self.before();
                self.kind.caches.ask(other);
                self.note_unless_turned([other], &before, before.emptied);
                Ok(())
            }
            CacheOp::DrainAll => {
                self.drain_all();
                Ok(())
            }
            CacheOp::Inspect => self.look(),
        }
    }

    /// Makes an operation under a CPU's number. At its end the CPU has answered whoever asked before.
    fn in_turn<T>(
        &self,
        cpu: usize,
        operation: impl FnOnce() -> Result<T, Violation>,
    ) -> Result<T, Violation> {
        let Some(seen) = self.cpus.get(cpu) else { return operation() };
        seen.turns.fetch_add(1, Ordering::Relaxed);
        let asked = seen.asked.swap(0, Ordering::Relaxed);
        let answer = operation()?;
        seen.turns.fetch_add(1, Ordering::Relaxed);
        if self.kind.cached(cpu).units == 0 {
            // If it was asked meanwhile, it may have answered.
            seen.asked.store(0, Ordering::Relaxed);
        }
        // Whoever has emptied the cache since may have answered before this operation, which then need not.
        if let Some(emptied) = asked.checked_sub(1)
            && self.nobody_emptied(emptied)
        {
            self.expect_left_or_taken(cpu, emptied, "an operation after ask()")?;
        }
        Ok(answer)
    }

    /// Checks that a CPU, between its operations, keeps nothing. Whoever has emptied caches since so many had may have
    /// had this one: then it gives back what is there, or leaves it to the CPU's next operation.
    fn expect_left_or_taken(
        &self,
        cpu: usize,
        emptied: u64,
        question: &str,
    ) -> Result<(), Violation> {
        if cpu >= self.cpus.len() {
            return Ok(());
        }
        let kept = self.kind.cached(cpu);
        if kept.units > 0 && self.nobody_emptied(emptied) {
            return Err(Violation::wrong(format!("{question}, what is kept,"), 0, kept));
        }
        if kept.units > 0 {
            self.note_asked(cpu, self.emptied());
        }
        Ok(())
    }

    /// Notes that a CPU was asked after so many calls had emptied all caches.
    fn note_asked(&self, cpu: usize, emptied: u64) {
        if let Some(seen) = self.cpus.get(cpu) {
            seen.asked.store(1 + emptied, Ordering::Relaxed);
        }
    }

    /// Returns how many calls have emptied all caches.
    fn emptied(&self) -> u64 {
        self.emptied.load(Ordering::Relaxed)
    }

    /// Returns whether no call that empties all caches has been under way since so many had ended.
    fn nobody_emptied(&self, ended: u64) -> bool {
        self.emptying.load(Ordering::Relaxed) == ended
    }

    fn alloc(&self, cpu: usize, order: u32) -> Result<(), Violation> {
        let before = self.before();
        match self.kind.caches.alloc(cpu, order) {
            Ok(index) => {
                let block = self.oracle.take(cpu, index, order)?;
                self.held().push(block);
                self.report().granted += 1;
                Ok(())
            }
            Err(AllocError::OrderTooLarge { max, .. }) if order > max => Ok(()),
            Err(AllocError::Exhausted { .. }) => {
                self.report().refused += 1;
                // It has asked all others, and given back what it kept.
                let others = (0..self.cpus.len()).filter(|&other| other != cpu);
                self.note_unless_turned(others, &before, before.emptied);
                self.expect_left_or_taken(cpu, before.emptied, "alloc(), refused")
            }
            Err(error) => Err(Violation::wrong("alloc()", "a refusal", error)),
        }
    }

    fn free(&self, cpu: usize, block: Block, sized: bool) -> Result<(), Violation> {
        self.oracle.give(block)?;
        let answer = if sized {
            self.kind.caches.free_sized(cpu, block.index, block.order).map(|()| block.len())
        } else {
            self.kind.caches.free(cpu, block.index)
        };
        check_freed(block, answer)
    }

    /// Tries a free that is certainly refused: with another order, where a block begins, if frees are checked.
    fn free_wrongly(&self, cpu: usize, index: u64, order: u32) -> Result<(), Violation> {
        let begins_there = |held: &[Block]| held.iter().find(|block| block.index == index).copied();
        let Some(block) = self.take(begins_there) else { return Ok(()) };
        let wrong = self.setup.checked && order <= LARGE && order != block.order;
        let free = || Ok(self.kind.caches.free_sized(cpu, index, order).is_ok());
        let freed = wrong && self.in_turn(cpu, free)?;
        self.held().push(block);
        if freed { Err(Violation::FreeAccepted { block: Block { index, order } }) } else { Ok(()) }
    }

    /// Empties all caches. CPUs that were in no operation meanwhile have been emptied, or asked.
    fn drain_all(&self) {
        let before = self.before();
        self.emptying.fetch_add(1, Ordering::Relaxed);
        // Of a CPU in the middle of an operation it may answer the request, before that keeps anything.
        for (seen, turns) in self.cpus.iter().zip(&before.turns) {
            if !turns.is_multiple_of(2) {
                seen.asked.store(0, Ordering::Relaxed);
            }
        }
        self.kind.caches.drain_all(|| {});
        let emptied = 1 + self.emptied.fetch_add(1, Ordering::Relaxed);
        let keeps = |&cpu: &usize| self.kind.cached(cpu).units > 0;
        let keeping: Vec<usize> = (0..self.cpus.len()).filter(keeps).collect();
        self.note_unless_turned(keeping, &before, emptied);
    }

    fn before(&self) -> Before {
        Before { turns: self.turns(), emptied: self.emptied() }
    }

    fn turns(&self) -> Vec<u64> {
        self.cpus.iter().map(|seen| seen.turns.load(Ordering::Relaxed)).collect()
    }

    /// Notes that CPUs were asked during a call, after so many calls had emptied all caches. Except those that have
    /// begun or ended an operation since it began: they may have answered. The same holds for one in the middle of an
    /// operation, if somebody was emptying its cache meanwhile.
    fn note_unless_turned(
        &self,
        cpus: impl IntoIterator<Item = usize>,
        before: &Before,
        emptied: u64,
    ) {
        let now = self.turns();
        let is_alone = self.nobody_emptied(before.emptied);
        let stayed =
            |cpu: usize| now[cpu] == before.turns[cpu] && (is_alone || now[cpu].is_multiple_of(2));
        let asked = cpus.into_iter().filter(|&cpu| cpu < now.len() && stayed(cpu));
        asked.for_each(|cpu| self.note_asked(cpu, emptied));
    }

    /// Looks at the arena and the caches while others use them, with a block in hand that must be seen.
    fn look(&self) -> Result<(), Violation> {
        let block = self.take(|held| held.first().copied());
        observe(self.kind.buddy(), block.as_slice())?;
        self.held().extend(block);
        self.setup.check_kept(&self.kind.caches.cached(), self.setup.cpus)?;
        let stats = self.kind.caches.stats();
        let sum = stats.free_units + stats.used_units + stats.cached_units + stats.reserved_units;
        if sum != stats.units {
            return Err(Violation::wrong("stats(), the sum of its counts,", stats.units, &stats));
        }
        check_refused(self.kind.refused())
    }

    /// Takes a block from those that are held, for this lane alone.
    fn take(&self, choose: impl FnOnce(&[Block]) -> Option<Block>) -> Option<Block> {
        let mut held = self.held();
        let block = choose(&held)?;
        held.retain(|&other| other != block);
        Some(block)
    }

    fn held(&self) -> MutexGuard<'_, Vec<Block>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) -> MutexGuard<'_, LaneReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
