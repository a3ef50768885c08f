//! Random operations of several threads on one row, which stop at random steps while others go on: claims, also aligned
//! ones, growth and shrinking beside neighbours who free, and looks by address. No unit has two holders, whoever holds a
//! run sees its length, and in the end nothing is lost.

use core::ops::Range;
use core::sync::atomic::Ordering;
use std::boxed::Box;
use std::sync::Mutex;
use std::vec::Vec;

use fastrand::Rng;
use testkit::Violation;
use testkit::program::Body;
use testkit::steered::{Schedule, SteeredIn};

use super::super::find::Wanted;
use super::super::word::Word;
use super::Memory;

/// A word of `UNITS` units, before each access to which the thread may stop.
#[derive(Debug, Default)]
struct Stopping<const UNITS: u32>(SteeredIn<5, 4>);

impl<const UNITS: u32> Word for Stopping<UNITS> {
    const UNITS: u32 = UNITS;

    fn load(&self, order: Ordering) -> usize {
        nbbs::sync::Word::load(&self.0, order) as usize
    }

    fn compare_exchange(
        &self,
        current: usize,
        new: usize,
        success: Ordering,
        failure: Ordering,
    ) -> Result<usize, usize> {
        let (current, new) = (current as u64, new as u64);
        let found = nbbs::sync::Word::compare_exchange(&self.0, current, new, success, failure);
        found.map(|old| old as usize).map_err(|old| old as usize)
    }
}

/// A lane, and what it holds.
struct Lane<'a, const UNITS: u32> {
    number: usize,
    memory: &'a Memory<Stopping<UNITS>>,
    /// Whose each unit is.
    owners: &'a Mutex<Vec<Option<usize>>>,
    random: Rng,
    held: Vec<Range<usize>>,
}

impl<const UNITS: u32> Lane<'_, UNITS> {
    fn take(&self, units: Range<usize>) {
        for owner in &mut self.owners.lock().unwrap()[units.clone()] {
            assert_eq!(*owner, None, "{units:?} is granted to {}", self.number);
            *owner = Some(self.number);
        }
    }

    fn give(&self, units: Range<usize>) {
        for owner in &mut self.owners.lock().unwrap()[units.clone()] {
            assert_eq!(*owner, Some(self.number), "{units:?}");
            *owner = None;
        }
    }

    fn act(&mut self, most: usize) {
        let row = self.memory.row();
        let choice = self.random.u32(..8);
        if choice < 3 || self.held.is_empty() {
            let units = self.random.usize(1..=most);
            let align = 1 << self.random.u32(..3);
            let offset = self.random.usize(..4);
            if let Some(start) = row.alloc(Wanted { units, align, offset }) {
                assert_eq!((start + offset) % align, 0);
                self.take(start..start + units);
                self.held.push(start..start + units);
            }
            return;
        }
        let run = self.held.swap_remove(self.random.usize(..self.held.len()));
        assert_eq!(row.run_at(run.start), Ok(run.len()), "{run:?} of {}", self.number);
        match choice {
            3 | 4 => {
                let to = run.len() + self.random.usize(1..=most);
                if row.grow(run.start, run.len(), to) {
                    self.take(run.end..run.start + to);
                    return self.held.push(run.start..run.start + to);
                }
                self.held.push(run);
            }
            5 if run.len() > 1 => {
                let to = self.random.usize(1..run.len());
                self.give(run.start + to..run.end);
                assert!(row.cut(run.start, run.len(), to), "{run:?} to {to}");
                self.held.push(run.start..run.start + to);
            }
            6 => {
                let stats = super::super::look::SmallStats::of(&row, 1);
                assert!(stats.free + run.len() <= row.units, "{stats:?}");
                self.held.push(run);
            }
            _ => {
                self.give(run.clone());
                assert!(row.cut(run.start, run.len(), 0), "{run:?}");
            }
        }
    }
}

fn races<const UNITS: u32>(seeds: Range<u64>) {
    for seed in seeds {
        let mut random = Rng::with_seed(seed);
        let units = random.usize(UNITS as usize..UNITS as usize * 20);
        let memory = Memory::<Stopping<UNITS>>::new(units);
        let owners = Mutex::new(std::vec![None; units]);
        let lanes = random.usize(2..=4);
        let most = (units / lanes).max(1).min(random.usize(1..40));
        let mut lanes: Vec<_> = (0..lanes)
            .map(|number| {
                let random = random.fork();
                Lane { number, memory: &memory, owners: &owners, random, held: Vec::new() }
            })
            .collect();
        let calls = random.u32(1..20);
        let bodies = lanes.iter_mut().map(|lane| -> Body<'_> {
            Box::new(move || {
                (0..calls).for_each(|_| lane.act(most));
                Ok(())
            })
        });
        let steps = u64::from(calls) * 40;
        let schedule = Schedule { seed, stalls: random.u32(..20), steps };
        let ran: Result<_, Violation> = schedule.run(bodies.collect());
        ran.unwrap_or_else(|violation| panic!("seed {seed}, {UNITS} units: {violation}"));
        let row = memory.row();
        let in_use = owners.lock().unwrap().iter().flatten().count();
        assert_eq!(row.free_units(), units - in_use, "seed {seed}");
        for lane in &mut lanes {
            for run in std::mem::take(&mut lane.held) {
                assert!(row.cut(run.start, run.len(), 0), "{run:?}, seed {seed}");
            }
        }
        let all = Wanted { units, align: 1, offset: 0 };
        assert_eq!(row.alloc(all), Some(0), "seed {seed}");
    }
}

#[test]
fn neighbours_grow_shrink_and_come_free() {
    let seeds = || 0..2000 * testkit::depth();
    races::<2>(seeds());
    races::<4>(seeds());
    races::<16>(seeds());
    races::<{ usize::BITS / 2 }>(seeds());
}
