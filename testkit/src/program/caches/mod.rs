//! Programs on caches: allocations and frees by several CPUs, one after the other, and the requests to give back.

mod judged;
mod kinds;
mod race;

use arbitrary::{Result as Drawn, Unstructured};
use nbbs::sync::{AtomicU64, Word};
use nbbs::{Buddy, Cache, Cached, Caches, Caps, FreeError, cache_words};

use super::Arena;
use crate::{Block, Violation};
use judged::Judged;
use kinds::{ByCpu, Kind, Owned};

pub use race::{CacheRace, race_caches};

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
    /// Returns the program that the bytes stand for: up to 200 steps on up to 3 caches, in an arena of up to 1200
    /// units.
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
        if self.owned {
            let cache = |cpu| Cache::new(buddy, cpu, self.caps());
            return self.run_on(Owned { buddy, caches: (0..self.cpus).map(cache).collect() });
        }
        let words = self.words::<AtomicU64>();
        self.run_on(self.by_cpu(buddy, &words))
    }

    fn run_on(&self, kind: impl Kind) -> Result<(), Violation> {
        let mut judged = Judged::new(self, kind);
        judged.steps()?;
        judged.finish()
    }

    fn caps(&self) -> Caps {
        let caps = (0..)
            .zip(self.limits)
            .fold(Caps::new().large(LARGE), |caps, (order, units)| caps.units(order, units));
        caps.checked(self.checked)
    }

    /// Checks that so many CPUs keep no more of any order than they may.
    fn check_kept(&self, kept: &Cached, cpus: usize) -> Result<(), Violation> {
        for (order, limit) in self.limits.into_iter().enumerate() {
            let limit = limit * cpus as u64;
            if kept.blocks[order] << order > limit {
                return Err(Violation::wrong(format!("cached(), order {order},"), limit, kept));
            }
        }
        Ok(())
    }

    fn words<W: Default>(&self) -> Vec<W> {
        (0..cache_words(self.cpus)).map(|_| W::default()).collect()
    }

    fn by_cpu<'a, W: Word>(&self, buddy: Buddy<'a, W>, words: &'a [W]) -> ByCpu<'a, W> {
        let caps = self.caps();
        ByCpu { caches: Caches::new(buddy, words).with_caps(caps), words, caps }
    }
}

/// Judges the answer to a free of a block in use.
fn check_freed(block: Block, answer: Result<u64, FreeError>) -> Result<(), Violation> {
    match answer {
        Ok(units) if units == block.len() => Ok(()),
        Ok(units) => Err(Violation::wrong("free(), its units,", block.len(), units)),
        Err(error) => Err(Violation::FreeRefused { block, reason: error.to_string() }),
    }
}

/// Judges the number of blocks that the buddy did not take back from the caches.
fn check_refused(refused: u64) -> Result<(), Violation> {
    if refused > 0 { Err(Violation::wrong("refused()", 0, refused)) } else { Ok(()) }
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
