//! What all callers together know: who holds what, since when each unit is free, and what calls may have in hand.

use std::ops::Range;

use testkit::program::Held;
use testkit::{Block, Oracle, Spec, Violation};

/// What is known of a unit, from the callers' side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    InUse,
    /// The lane's call that frees it is under way.
    Leaving(usize),
    /// The call that freed it returned at this time, or it was never in use.
    FreeSince(u64),
}

/// What a call may claim on its way, whether it keeps it or not.
#[derive(Clone, Copy)]
pub enum Claims {
    Nothing,
    /// So many blocks of an order.
    Blocks(u64, u32),
    /// A run of at most so many units.
    Run(u64),
}

impl Claims {
    /// Returns the number of aligned blocks of `size` units in which claims may lie.
    pub fn spoils(self, size: u64) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Blocks(count, order) => count * (1_u64 << order).div_ceil(size),
            Self::Run(units) => units.div_ceil(size) + 1,
        }
    }
}

/// A call, from its beginning to its end, which is `u64::MAX` while it is under way, or if its lane has died in it.
struct Call {
    lane: usize,
    claims: Claims,
    /// The units that the caller frees, changes, reserves or releases, or by which it grows what it holds.
    hands: Vec<Range<u64>>,
    began: u64,
    ended: u64,
    has_died: bool,
}

/// A call that has returned.
#[derive(Clone, Copy)]
pub struct Ended(usize);

/// The callers' knowledge. Its clock ticks at the beginning and the end of each call.
pub struct World {
    /// What each lane holds.
    pub held: Vec<Vec<Held>>,
    /// What each lane has reserved.
    pub reserved: Vec<Vec<Range<u64>>>,
    /// The number of calls that were granted memory.
    pub granted: u64,
    /// The number of refusals that could have been wrong: something was free throughout, or nobody else claimed.
    pub judged: u64,
    /// Knows each unit that is in use as a block of its own, as what is held is cut anywhere.
    oracle: Oracle,
    units: Vec<Unit>,
    calls: Vec<Call>,
    now: u64,
}

impl World {
    pub fn new(units: u64, lanes: usize) -> Self {
        Self {
            held: vec![Vec::new(); lanes],
            reserved: vec![Vec::new(); lanes],
            granted: 0,
            judged: 0,
            oracle: Oracle::new(units),
            units: vec![Unit::FreeSince(0); units as usize],
            calls: Vec::new(),
            now: 0,
        }
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Notes that a call begins. Must be called before it.
    pub fn begin(&mut self, lane: usize, claims: Claims, hands: Vec<Range<u64>>) -> usize {
        let began = self.tick();
        self.calls.push(Call { lane, claims, hands, began, ended: u64::MAX, has_died: false });
        self.calls.len() - 1
    }

    /// Notes that the lane has died.
    pub fn dies(&mut self, lane: usize) {
        let last = self.calls.iter_mut().rfind(|call| call.lane == lane);
        if let Some(call) = last.filter(|call| call.ended == u64::MAX) {
            call.has_died = true;
        }
    }

    /// Returns what the calls of the dead may have claimed, at unknown places.
    pub fn claims_of_the_dead(&self) -> impl Iterator<Item = Claims> {
        self.dead().map(|call| call.claims)
    }

    /// Returns the units that the dead had in hand, as far as the callers know them.
    pub fn hands_of_the_dead(&self) -> impl Iterator<Item = Range<u64>> {
        self.dead().flat_map(|call| call.hands.iter().cloned())
    }

    fn dead(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.has_died)
    }

    /// Notes that the call has returned.
    pub fn end(&mut self, call: usize) -> Ended {
        self.calls[call].ended = self.tick();
        Ended(call)
    }

    /// Notes that units were handed out to `lane`.
    pub fn take(&mut self, lane: usize, units: Range<u64>) {
        for unit in units {
            checked(self.oracle.take(lane, unit, 0));
            self.units[unit as usize] = Unit::InUse;
        }
    }

    /// Notes that `lane` received a block or run.
    pub fn receive(&mut self, lane: usize, held: Held) {
        self.take(lane, range(held));
        self.granted += 1;
        self.held[lane].push(held);
    }

    /// Notes that `lane` is about to free units. Must be called before.
    pub fn leave(&mut self, lane: usize, units: Range<u64>) {
        for unit in units {
            checked(self.oracle.give(Block { index: unit, order: 0 }));
            self.units[unit as usize] = Unit::Leaving(lane);
        }
    }

    /// Notes that `lane` has freed them. Others may have them by now, or may have freed them, too.
    pub fn left(&mut self, lane: usize, units: Range<u64>) {
        let now = self.tick();
        for unit in &mut self.units[units.start as usize..units.end as usize] {
            if *unit == Unit::Leaving(lane) {
                *unit = Unit::FreeSince(now);
            }
        }
    }

    /// Returns whether all these units were free from the beginning of the call to its end.
    pub fn free_throughout(&self, Ended(call): Ended, units: Range<u64>) -> bool {
        let began = self.calls[call].began;
        let is_free = |unit: &Unit| matches!(*unit, Unit::FreeSince(since) if since <= began);
        self.units[units.start as usize..units.end as usize].iter().all(is_free)
    }

    /// Returns whether no other call claimed anything beside this one.
    pub fn alone(&self, ended: Ended) -> bool {
        self.spoilt_by_others(ended, 1) == 0
    }

    /// Returns whether nobody has died while it changed something: a cut may fail for that.
    pub fn no_change_died(&self) -> bool {
        self.hands_of_the_dead().next().is_none()
    }

    /// Returns whether the unit is free, while no call is under way.
    pub fn is_free(&self, unit: u64) -> bool {
        matches!(self.units[unit as usize], Unit::FreeSince(_))
    }

    /// Judges a refusal of a block: others must have had as many in hand as were free throughout.
    pub fn judge_block(&mut self, ended: Ended, order: u32) {
        let blocks = self.oracle.units() >> order;
        let is_free = |&at: &u64| self.free_throughout(ended, at << order..(at + 1) << order);
        let free = (0..blocks).filter(is_free).count() as u64;
        let spoilt = self.spoilt_by_others(ended, 1 << order);
        assert!(free <= spoilt, "order {order} refused: {free} free, {spoilt} in other hands");
        self.judged += u64::from(free > 0);
    }

    /// Judges a refusal of `len` units at a multiple of `2^order` in `within`: alone, it must not overlook a place.
    pub fn judge_run(&mut self, ended: Ended, len: u64, order: u32, within: Range<u64>) {
        if self.alone(ended) {
            let mut places = within.start..(within.end + 1).saturating_sub(len);
            let is_free = |place: u64| self.free_throughout(ended, place..place + len);
            let place = places.find(|&place| place.is_multiple_of(1 << order) && is_free(place));
            assert_eq!(place, None, "{len} units, order {order} within {within:?} refused");
            self.judged += 1;
        }
    }

    /// Returns how many blocks of `size` units claims of other calls may have spoilt meanwhile.
    fn spoilt_by_others(&self, Ended(call): Ended, size: u64) -> u64 {
        let (began, calls) = (self.calls[call].began, self.calls.iter().enumerate());
        let beside = calls.filter(|&(other, of)| other != call && of.ended >= began);
        beside.map(|(_, other)| other.claims.spoils(size)).sum()
    }

    /// Returns what must be in the arena, if no call is under way.
    pub fn spec(&self) -> Spec {
        let mut spec = Spec::new(self.oracle.units());
        self.held.iter().flatten().for_each(|held| spec.grant_run(held.index, held.len));
        for range in self.reserved.iter().flatten() {
            assert!(spec.reserve(range.clone()), "{range:?} is reserved and in use");
        }
        spec
    }
}

fn checked<T>(result: Result<T, Violation>) {
    result.map_or_else(|violation| panic!("{violation}"), drop);
}

/// Returns the units of a block or run.
pub fn range(held: Held) -> Range<u64> {
    held.index..held.index + held.len
}
