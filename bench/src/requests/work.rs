//! The cases that are measured.

use nbbs::sync::Word;
use nbbs::{Buddy, Request};

use super::judge::Judge;

/// A case: what is done, and by which allocator.
#[derive(Clone, Copy, Debug)]
pub struct RequestCase {
    pub case: &'static str,
    pub asked: &'static str,
    pub allocator: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Exact,
    Rounded,
    Batch,
    Single,
    FreeBatch,
    FreeSingle,
    Grow,
    Move,
    Below,
    TopDown,
    At,
}

/// All cases.
pub const CASES: &[RequestCase] = &[
    case("exact", "size mix", "nbbs exact", Kind::Exact),
    case("exact", "size mix", "nbbs rounded", Kind::Rounded),
    case("batch", "alloc 256 of order 0", "nbbs batch", Kind::Batch),
    case("batch", "alloc 256 of order 0", "nbbs single", Kind::Single),
    case("batch", "free 256 of order 0", "nbbs batch", Kind::FreeBatch),
    case("batch", "free 256 of order 0", "nbbs single", Kind::FreeSingle),
    case("grow", "by half, every second run freed", "nbbs in place", Kind::Grow),
    case("grow", "by half, every second run freed", "nbbs alloc and free", Kind::Move),
    case("placement", "in the lowest quarter", "nbbs", Kind::Below),
    case("placement", "top-down", "nbbs", Kind::TopDown),
    case("placement", "at a random unit", "nbbs", Kind::At),
];

const fn case(
    case: &'static str,
    asked: &'static str,
    allocator: &'static str,
    kind: Kind,
) -> RequestCase {
    RequestCase { case, asked, allocator, kind }
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// The number of timed operations.
    pub ops: u64,
    /// At the fullest: the units asked for in the requests that are held, and the units in use, if there is a judge.
    pub requested: u64,
    pub held: u64,
    /// The units that all operations together allocated or freed.
    pub moved: u64,
    /// The number of requests, and of those granted.
    pub asked: u64,
    pub granted: u64,
}

/// The blocks held beforehand: first units and numbers of units.
pub type Setup = Vec<(u64, u64)>;

/// The number of runs of the mix that are held at the same time.
const RUNS: usize = 2000;
/// The blocks of a batch, and the number of batches.
const BATCH: usize = 256;
const BATCHES: usize = 200;

impl RequestCase {
    /// Fills the arena as the case needs it.
    pub fn prepare<W: Word>(&self, buddy: Buddy<'_, W>, seed: u64, judge: &Judge) -> Setup {
        let mut random = fastrand::Rng::with_seed(seed);
        match self.kind {
            Kind::FreeBatch | Kind::FreeSingle => {
                let mut blocks = vec![0; BATCH * BATCHES];
                let got = buddy.on(0).alloc_batch(0, &mut blocks);
                judge.expect(got == Ok(blocks.len()));
                blocks.iter().for_each(|&block| judge.take(block, 1));
                blocks.into_iter().map(|block| (block, 1)).collect()
            }
            Kind::Grow | Kind::Move => {
                let mut runs = Vec::new();
                for _ in 0..2 * RUNS {
                    let len = random.u64(1..=64);
                    let index = buddy.on(0).alloc_units(len).expect("most of the arena is free");
                    judge.take(index, len);
                    runs.push((index, len));
                }
                random.shuffle(&mut runs);
                for (index, len) in runs.split_off(RUNS) {
                    judge.give(index, len);
                    judge.expect(buddy.on(0).free_units(index, len).is_ok());
                }
                runs
            }
            // The requests to make; nothing is held.
            _ => (0..RUNS).map(|_| (random.u64(0..buddy.units()), size(&mut random))).collect(),
        }
    }

    /// Runs the case.
    pub fn run<W: Word>(&self, buddy: Buddy<'_, W>, setup: Setup, judge: &Judge) -> Tally {
        let quarter = 0..buddy.units() / 4;
        let block = |len: u64| len.next_power_of_two();
        match self.kind {
            Kind::Exact => {
                mix(buddy, &setup, judge, |_, len| buddy.on(0).alloc_units(len).ok(), |len| len)
            }
            Kind::Rounded => {
                let alloc = |_, len| buddy.on(0).alloc(block(len).trailing_zeros()).ok();
                mix(buddy, &setup, judge, alloc, block)
            }
            Kind::Below => {
                let low =
                    |_, len| buddy.on(0).request(Request::units(len).within(quarter.clone())).ok();
                mix(buddy, &setup, judge, low, |len| len)
            }
            Kind::TopDown => {
                let high = |_, len| buddy.on(0).request(Request::units(len).top_down()).ok();
                mix(buddy, &setup, judge, high, |len| len)
            }
            Kind::At => {
                mix(buddy, &setup, judge, |at, len| buddy.on(0).alloc_at(at, len).ok(), |len| len)
            }
            Kind::Batch | Kind::Single => allocate(buddy, judge, self.kind == Kind::Batch),
            Kind::FreeBatch | Kind::FreeSingle => {
                free(buddy, &setup, judge, self.kind == Kind::FreeBatch)
            }
            Kind::Grow | Kind::Move => grow(buddy, setup, judge, self.kind == Kind::Grow),
        }
    }
}

/// Draws the size of a run: six in ten have fewer than 32 units, and one in ten has up to 999.
fn size(random: &mut fastrand::Rng) -> u64 {
    match random.u8(0..10) {
        0..6 => random.u64(1..32),
        6..9 => random.u64(32..200),
        _ => random.u64(200..1000),
    }
}

/// Allocates all, frees a half and allocates it again, then frees all.
fn mix<W: Word>(
    buddy: Buddy<'_, W>,
    asked: &[(u64, u64)],
    judge: &Judge,
    alloc: impl Fn(u64, u64) -> Option<u64>,
    held_for: impl Fn(u64) -> u64,
) -> Tally {
    let mut tally = Tally::default();
    let mut held = Vec::with_capacity(asked.len());
    let take = |held: &mut Vec<(u64, u64)>, tally: &mut Tally, (at, len): (u64, u64)| {
        tally.asked += 1;
        tally.ops += 1;
        if let Some(index) = alloc(at, len) {
            judge.take(index, held_for(len));
            held.push((index, len));
            tally.granted += 1;
            tally.moved += len;
        }
    };
    let give = |tally: &mut Tally, (index, len): (u64, u64)| {
        judge.give(index, held_for(len));
        judge.expect(buddy.on(0).free_units(index, held_for(len)).is_ok());
        tally.ops += 1;
        tally.moved += len;
    };
    asked.iter().for_each(|&ask| take(&mut held, &mut tally, ask));
    for _ in 0..held.len() / 2 {
        let place = held.len() / 3;
        let (index, len) = held.swap_remove(place);
        give(&mut tally, (index, len));
        take(&mut held, &mut tally, (index, len));
    }
    tally.requested = held.iter().map(|(_, len)| len).sum();
    tally.held = judge.used_units(buddy);
    held.into_iter().for_each(|run| give(&mut tally, run));
    tally
}

fn allocate<W: Word>(buddy: Buddy<'_, W>, judge: &Judge, batch: bool) -> Tally {
    let blocks = (BATCH * BATCHES) as u64;
    let mut buffer = [0; BATCH];
    for _ in 0..BATCHES {
        if batch {
            judge.expect(buddy.on(0).alloc_batch(0, &mut buffer) == Ok(BATCH));
        } else {
            buffer.fill_with(|| buddy.on(0).alloc(0).expect("most of the arena is free"));
        }
        buffer.iter().for_each(|&block| judge.take(block, 1));
    }
    let held = judge.used_units(buddy);
    Tally { ops: blocks, requested: blocks, held, moved: blocks, asked: blocks, granted: blocks }
}

fn free<W: Word>(buddy: Buddy<'_, W>, setup: &Setup, judge: &Judge, batch: bool) -> Tally {
    let blocks: Vec<u64> = setup.iter().map(|&(block, _)| block).collect();
    for batch_of in blocks.chunks(BATCH) {
        batch_of.iter().for_each(|&block| judge.give(block, 1));
        if batch {
            judge.expect(buddy.on(0).free_batch(0, batch_of).is_ok());
        } else {
            for &block in batch_of {
                judge.expect(buddy.on(0).free_sized(block, 0).is_ok());
            }
        }
    }
    let len = blocks.len() as u64;
    Tally {
        ops: len,
        requested: 0,
        held: judge.used_units(buddy),
        moved: len,
        asked: len,
        granted: len,
    }
}

/// Makes each run half as long again: in place, or with a new run.
fn grow<W: Word>(buddy: Buddy<'_, W>, setup: Setup, judge: &Judge, in_place: bool) -> Tally {
    let mut tally = Tally::default();
    for (index, len) in setup {
        let grown = len + len.div_ceil(2);
        tally.asked += 1;
        tally.ops += 1;
        tally.moved += grown - len;
        let granted = if in_place {
            let granted = buddy.on(0).grow(index, grown).is_ok();
            if granted {
                judge.take(index + len, grown - len);
            }
            granted
        } else if let Ok(new) = buddy.on(0).alloc_units(grown) {
            judge.take(new, grown);
            judge.give(index, len);
            judge.expect(buddy.on(0).free_units(index, len).is_ok());
            true
        } else {
            false
        };
        tally.granted += u64::from(granted);
        tally.requested += if granted { grown } else { len };
    }
    tally.held = judge.used_units(buddy);
    tally
}

#[cfg(test)]
mod tests {
    use super::{CASES, Kind};
    use crate::limit::arena::Arena;
    use crate::requests::judge::Judge;

    /// To count them takes as long as hundreds of operations.
    #[test]
    fn units_in_use_are_counted_only_where_nothing_is_timed() {
        let arena = Arena::new(1 << 18);
        for case in CASES.iter().filter(|case| matches!(case.kind, Kind::Exact | Kind::Batch)) {
            let held = [Judge::new(1 << 18), Judge::off()].map(|judge| {
                arena.empty();
                let setup = case.prepare(arena.buddy(), 0, &judge);
                let tally = case.run(arena.buddy(), setup, &judge);
                assert!(judge.is_content());
                (tally.held == tally.requested, tally.held == 0)
            });
            assert_eq!(held, [(true, false), (false, true)], "{case:?}");
        }
    }
}
