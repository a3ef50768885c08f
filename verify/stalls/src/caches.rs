//! CPUs with caches in front of nbbs: each of the three lanes has one, and the last, which checks what is left, has
//! none.

use std::collections::BTreeSet;
use std::ops::Range;

use nbbs::sync::{Ordering, Word};
use nbbs::{Caches, Caps, cache_words};
use testkit::program::{Arena, Ask, CacheOp, No, Op};
use testkit::{BackEnd, Block, InHand, Oracle, Violation};

use crate::call::{Answer, Call, Cost};
use crate::system::{Ours, System, freed};
use crate::word::{Past, Stepped, alone};

/// CPUs that have a cache.
const CPUS: usize = 3;
/// The most units that a cache keeps of each order: up to four blocks.
const LIMITS: [u64; 10] = [4, 4, 8, 8, 16, 0, 0, 0, 0, 0];
/// The most steps of a call that empties all caches: no more than this if it waits for nobody.
const TO_EMPTY: u64 = 1_000;

/// Caches in front of an arena.
pub struct Behind<'a> {
    ours: Ours<'a>,
    words: &'a [Stepped],
    caches: Caches<'a, Stepped>,
}

impl<'a> Behind<'a> {
    /// Returns words for empty caches.
    pub fn words() -> Vec<Stepped> {
        (0..cache_words(CPUS)).map(|_| Stepped::default()).collect()
    }

    /// Creates a handle to caches in these words.
    pub fn new(arena: &'a Arena<Stepped>, words: &'a [Stepped]) -> Self {
        let ours = Ours::of(arena);
        let caches = Caches::new(ours.buddy, words).with_caps(caps());
        Self { ours, words, caches }
    }

    /// Returns how many blocks of each order a CPU keeps.
    fn cached(&self, cpu: usize) -> [u64; LIMITS.len()] {
        let cached = self.of(self.words_of(cpu)).cached();
        std::array::from_fn(|order| cached.blocks[order])
    }

    /// Returns the blocks that a CPU keeps: takes them, by the library's own means, from a copy of its cache that
    /// nobody is in the middle of using.
    fn blocks_of(&self, cpu: usize) -> Vec<Block> {
        let counts = self.cached(cpu);
        if counts == [0; LIMITS.len()] {
            return Vec::new();
        }
        let copy: Vec<Stepped> = (0..cache_words(1)).map(|_| Stepped::default()).collect();
        for (to, from) in copy.iter().zip(self.words_of(cpu)) {
            match from.load(Ordering::Relaxed) {
                0 => {}
                value => to.store(value, Ordering::Relaxed),
            }
        }
        let caches = self.of(&copy);
        caches.recover(0);
        // The copy is not to give anything back, whatever was requested of its original, and of the dead.
        copy[self.place_of_requests()].store(0, Ordering::Relaxed);
        let hits = |(order, count): (u32, u64)| {
            let taken = (0..count).filter_map(move |_| caches.alloc(0, order).ok());
            taken.map(move |index| Block { index, order })
        };
        (0..).zip(counts).flat_map(hits).collect()
    }

    /// Returns which word of a cache says what was requested of it.
    fn place_of_requests(&self) -> usize {
        let words: Vec<Stepped> = (0..cache_words(1)).map(|_| Stepped::default()).collect();
        self.of(&words).ask(0);
        words.iter().position(|word| word.load(Ordering::Relaxed) != 0).expect("it was asked")
    }

    /// The words of one CPU are a cache for that CPU.
    fn words_of(&self, cpu: usize) -> &[Stepped] {
        &self.words[cache_words(cpu)..][..cache_words(1)]
    }

    /// Returns the caches in these words.
    fn of<'w>(&'w self, words: &'w [Stepped]) -> Caches<'w, Stepped> {
        Caches::new(self.ours.buddy, words).with_caps(caps())
    }

    /// Checks that no cache keeps more than it may, and none anything unless it is excused.
    fn check_kept(&self, is_excused: impl Fn(usize) -> bool) -> Result<(), Violation> {
        for cpu in 0..CPUS {
            for (order, (kept, limit)) in self.cached(cpu).into_iter().zip(LIMITS).enumerate() {
                let limit = if is_excused(cpu) { limit >> order } else { 0 };
                if kept > limit {
                    let what = format!("what CPU {cpu} keeps of order {order}");
                    return Err(Violation::wrong(what, limit, kept));
                }
            }
        }
        // Whatever stopped where, each block is where its count says.
        self.caches.audit().map_err(|broken| Violation::Audit(broken.to_string()))?;
        match self.caches.refused() {
            0 => Ok(()),
            refused => Err(Violation::wrong("refused()", 0, refused)),
        }
    }
}

fn caps() -> Caps {
    let limits = (0..).zip(LIMITS);
    limits.fold(Caps::new(), |caps, (order, units)| caps.units(order, units)).checked(false)
}

/// Returns whether a call may keep all caches from their CPUs if it never goes on.
fn takes_all(call: &Call) -> bool {
    matches!(call, Call::Look(Op::Cache(CacheOp::DrainAll)))
}

/// Returns whether an operation may have claimed these units, for itself and for its cache: half of what that keeps.
fn may_claim(call: &Call, claimed: &BTreeSet<u64>) -> bool {
    let most = match *call {
        Call::Alloc(order) => {
            let limit = LIMITS.get(order as usize).map_or(0, |limit| limit >> order);
            (limit / 2).max(1) << order
        }
        _ => 0,
    };
    claimed.len() as u64 <= most
}

impl BackEnd for Behind<'_> {
    fn units(&self) -> u64 {
        self.ours.units()
    }

    fn max_order(&self) -> u32 {
        self.ours.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.caches.metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        BackEnd::alloc(&self.caches, lane, order)
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        BackEnd::free(&self.caches, lane, index, order)
    }

    fn offers_runs(&self) -> bool {
        true
    }

    fn ask(&self, lane: usize, ask: Ask<'_>) -> Result<u64, No> {
        self.ours.ask(lane, ask)
    }
}

impl System for Behind<'_> {
    fn extra(&self, lane: usize, call: &Call) -> Answer {
        match *call {
            Call::Free(held) => return freed(held, self.caches.free(lane, held.index)),
            Call::Look(Op::Cache(CacheOp::Drain)) => self.caches.drain(lane),
            // Here all lanes see all accesses in one order: there is nothing for a barrier to do.
            Call::Look(Op::Cache(CacheOp::DrainAll)) => self.caches.drain_all(|| {}),
            Call::Look(Op::Cache(CacheOp::Ask { cpu })) => self.caches.ask(cpu),
            _ => return self.ours.extra(lane, call),
        }
        Answer::Yes(0)
    }

    /// Once the others have emptied what they can: what is still cached, and what was in hand. In hand are blocks that
    /// were claimed for the cache, the block to be freed, and one block, or all of one order, that left the cache.
    fn cost(&self, oracle: &Oracle, call: &Call, past: &Past) -> Cost {
        let ledger = self.ours.ledger(past);
        let cached: Vec<Block> = (0..CPUS).flat_map(|cpu| self.blocks_of(cpu)).collect();
        let is_in_hand = |block: &&Block| {
            let is_free = block.units().all(|unit| oracle.is_free(unit));
            is_free
                && !cached.contains(block)
                && self.ours.buddy.order_of(block.index) == Ok(block.order)
        };
        let mut moving: Vec<Block> = past.kept.iter().filter(is_in_hand).copied().collect();
        if moving.iter().any(|block| block.order != moving[0].order) {
            // No operation moves two orders at once: all of that is lost without an excuse.
            moving.clear();
        }
        let given = call.given().into_iter().filter_map(|held| Block::of(held.index, held.len));
        moving.extend(given.filter(|block| is_in_hand(&block)));
        let units = |blocks: &[Block]| blocks.iter().flat_map(|block| block.units()).collect();
        let cached: BTreeSet<u64> = units(&cached);
        let mut least: BTreeSet<u64> = units(&moving);
        least.extend(&cached);
        let mut most: BTreeSet<u64> = least.iter().chain(&ledger.untold).copied().collect();
        let claimed: BTreeSet<u64> = ledger.claimed.difference(&cached).copied().collect();
        if may_claim(call, &claimed) {
            most.extend(claimed);
        }
        let (least, most) = (Vec::from_iter(least), Vec::from_iter(most));
        Cost { in_hand: InHand::Between { least, most }, run: None }
    }

    fn reserves(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), (Violation, Range<u64>)> {
        self.ours.check()
    }

    fn kept(&self, lane: usize, call: &Call) -> Vec<Block> {
        let cpus = (0..CPUS).filter(|&cpu| cpu == lane || takes_all(call));
        cpus.flat_map(|cpu| self.blocks_of(cpu)).collect()
    }

    fn settle(&self, stopped: Option<(usize, &Call)>) -> Result<(), Violation> {
        let lane = stopped.map(|(lane, _)| lane);
        if stopped.is_some() {
            let emptied = alone(TO_EMPTY, || self.caches.drain_all(|| {}));
            emptied.ok_or(Violation::Stuck { lane: CPUS, steps: TO_EMPTY })?;
        }
        (0..CPUS).filter(|&cpu| lane != Some(cpu)).for_each(|cpu| self.caches.drain(cpu));
        let all = stopped.is_some_and(|(_, call)| takes_all(call));
        self.check_kept(|cpu| all || lane == Some(cpu))
    }

    fn recover(&self, lane: usize, call: &Call) -> Result<bool, Violation> {
        let recovered = (0..CPUS).filter(|&cpu| cpu == lane || takes_all(call));
        recovered.for_each(|cpu| self.caches.recover(cpu));
        (0..CPUS).for_each(|cpu| self.caches.drain(cpu));
        self.check_kept(|_| false).map(|()| true)
    }
}
