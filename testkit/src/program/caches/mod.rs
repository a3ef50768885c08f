//! Programs on caches: allocations and frees by several CPUs, one after the other, and the requests to give back.

mod kinds;

use arbitrary::{Result as Drawn, Unstructured};
use nbbs::sync::AtomicU64;
use nbbs::{AllocError, Cache, Caches, Caps, cache_words};

use super::Arena;
use crate::{Block, Oracle, Spec, Violation, check_whole};
use kinds::{ByCpu, Kind, Owned};

/// The orders of a cache's classes, if the large one is [`LARGE`].
const ORDERS: u32 = 10;
/// The large order.
const LARGE: u32 = 9;
/// The most steps of a program.
const STEPS: usize = 200;

/// One operation of a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CacheOp {
    /// Allocates a block.
    Alloc {
        /// Its order; may be above the largest.
        order: u32,
    },
    /// Frees a block that is held, whoever allocated it, without naming its order.
    Free {
        /// Which block, modulo the number held. Does nothing if none is held.
        pick: usize,
    },
    /// Frees a block that is held by its order.
    FreeSized {
        /// As in `Free`.
        pick: usize,
    },
    /// Frees, by an order, whatever is at a unit. This is left out unless it is certain to be refused.
    FreeSizedAt {
        /// The unit; may be outside the arena.
        index: u64,
        /// The order; may be above the largest.
        order: u32,
    },
    /// Gives back everything that the CPU keeps.
    Drain,
    /// Asks a CPU to give back.
    Ask {
        /// Its number; may be above the largest.
        cpu: usize,
    },
    /// Gives back everything that all CPUs keep.
    DrainAll,
    /// Compares counts with the specification, and runs the audits.
    Inspect,
}

/// Caches of several CPUs in front of an arena, and what happens to them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheProgram {
    /// Units of the arena.
    pub units: u64,
    /// The number of caches. The next CPU has none.
    pub cpus: usize,
    /// Whether each is a [`Cache`], instead of a part of [`Caches`].
    pub owned: bool,
    /// Whether frees are checked.
    pub checked: bool,
    /// The most units that a cache keeps, of each order from 0 to 9.
    pub limits: [u64; ORDERS as usize],
    /// The operations, in order, with the number of the CPU.
    pub steps: Vec<(usize, CacheOp)>,
}

impl CacheProgram {
    /// Returns the program that the bytes stand for: up to 200 steps on up to 3 caches, in an arena of up to 1200 units.
    ///
    /// ```
    /// use testkit::program::CacheProgram;
    ///
    /// let program = CacheProgram::from_bytes(&[1, 40, 0, 0, 2, 2, 3, 3]);
    /// assert_eq!(program.run(), Ok(()));
    /// ```
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut bytes = Unstructured::new(bytes);
        let units = super::bytes::units(&mut bytes).min(1200);
        let kind = bytes.arbitrary::<u8>().unwrap_or(0);
        let cpus = 1 + usize::from(kind >> 2) % 3;
        // A nibble is a number of blocks, so that each order has its own.
        let blocks = bytes.arbitrary::<[u8; 5]>().unwrap_or([0x42; 5]);
        let nibble = |order: usize| u64::from(blocks[order / 2] >> (order % 2 * 4) & 15);
        let limits = std::array::from_fn(|order| nibble(order) << order);
        let mut steps = Vec::new();
        while steps.len() < STEPS {
            let Ok(step) = step(&mut bytes, cpus) else { break };
            steps.push(step);
        }
        Self { units, cpus, owned: kind & 1 != 0, checked: kind & 2 != 0, limits, steps }
    }

    /// Runs the program on new caches, then frees all that is held, drains the caches, and checks that everything is
    /// whole. Every answer is judged by the owner map, and refusals, where all is known, by the specification.
    ///
    /// # Errors
    /// The first violation.
    pub fn run(&self) -> Result<(), Violation> {
        let arena = Arena::<AtomicU64>::new(self.units);
        let buddy = arena.buddy();
        let caps = (0..)
            .zip(self.limits)
            .fold(Caps::new().large(LARGE), |caps, (order, units)| caps.units(order, units));
        let caps = caps.checked(self.checked);
        if self.owned {
            let caches = (0..self.cpus).map(|cpu| Cache::new(buddy, cpu, caps)).collect();
            return Judged::new(self, Owned { buddy, caches }).run();
        }
        let words: Vec<AtomicU64> =
            (0..cache_words(self.cpus)).map(|_| AtomicU64::new(0)).collect();
        let caches = Caches::new(buddy, &words).with_caps(caps);
        Judged::new(self, ByCpu { caches, words: &words, caps }).run()
    }
}

fn step(bytes: &mut Unstructured<'_>, cpus: usize) -> Drawn<(usize, CacheOp)> {
    if bytes.is_empty() {
        return Err(arbitrary::Error::NotEnoughData);
    }
    let [kind, number] = bytes.arbitrary::<[u8; 2]>()?;
    let (cpu, pick) = (usize::from(kind >> 4) % (cpus + 1), usize::from(number));
    let op = match kind & 15 {
        0..=3 => CacheOp::Alloc { order: u32::from(number) % 4 },
        4 | 5 => CacheOp::Alloc { order: u32::from(number) % (ORDERS + 2) },
        6 | 7 => CacheOp::Free { pick },
        8..=10 => CacheOp::FreeSized { pick },
        11 => {
            let order = bytes.arbitrary::<u8>()?;
            CacheOp::FreeSizedAt { index: number.into(), order: u32::from(order) % (ORDERS + 2) }
        }
        12 => CacheOp::Drain,
        13 => CacheOp::Ask { cpu: pick % (cpus + 1) },
        14 => CacheOp::DrainAll,
        _ => CacheOp::Inspect,
    };
    Ok((cpu, op))
}

/// Caches that nothing else uses, and what is known about them.
struct Judged<'p, K> {
    program: &'p CacheProgram,
    kind: K,
    oracle: Oracle,
    spec: Spec,
    held: Vec<Block>,
    /// Which CPUs were asked, and have not used their caches since.
    asked: Vec<bool>,
}

impl<'p, K: Kind> Judged<'p, K> {
    fn new(program: &'p CacheProgram, kind: K) -> Self {
        let (oracle, spec) = (Oracle::new(program.units), Spec::new(program.units));
        Self { program, kind, oracle, spec, held: Vec::new(), asked: vec![false; program.cpus] }
    }

    fn run(mut self) -> Result<(), Violation> {
        for (cpu, op) in &self.program.steps {
            self.step(*cpu, op)?;
            self.check_caps(*cpu)?;
        }
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

    fn alloc(&mut self, cpu: usize, order: u32) -> Result<(), Violation> {
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
        self.expect_answered(cpu, order)
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
        match answer {
            Err(error) => Err(Violation::FreeRefused { block, reason: error.to_string() }),
            Ok(units) if units != block.len() => {
                Err(Violation::wrong("free(), its units,", block.len(), units))
            }
            Ok(_) => self.expect_answered(cpu, order),
        }
    }

    /// Only checked frees of `Caches` look through all caches.
    fn free_wrongly(&mut self, cpu: usize, index: u64, order: u32) -> Result<(), Violation> {
        let block = Block { index, order };
        if self.program.owned || !self.program.checked || self.oracle.holds(block) {
            return Ok(());
        }
        match self.kind.free_sized(cpu, index, order) {
            Ok(()) => Err(Violation::FreeAccepted { block }),
            Err(_) => self.expect_answered(cpu, order),
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

    /// A CPU that was asked has given back after an operation on its cache, also one that was refused.
    fn expect_answered(&mut self, cpu: usize, order: u32) -> Result<(), Violation> {
        if order <= LARGE && self.answer(cpu) {
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

    fn check_caps(&self, cpu: usize) -> Result<(), Violation> {
        if cpu >= self.program.cpus {
            return Ok(());
        }
        let kept = self.kind.cached(cpu);
        for (order, limit) in self.program.limits.into_iter().enumerate() {
            if kept.blocks[order] << order > limit {
                return Err(Violation::wrong(format!("cached(), order {order},"), limit, kept));
            }
        }
        Ok(())
    }

    fn inspect(&self) -> Result<(), Violation> {
        self.kind.audit().map_err(Violation::Audit)?;
        let stats = self.kind.buddy().stats();
        let (expected, got) =
            (self.oracle.held_units(), stats.used_units.wrapping_sub(self.kept()));
        if got != expected {
            return Err(Violation::wrong("stats(), used but not cached,", expected, got));
        }
        match self.kind.refused() {
            0 => Ok(()),
            refused => Err(Violation::wrong("refused()", 0, refused)),
        }
    }
}
