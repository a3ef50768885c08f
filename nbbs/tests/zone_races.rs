//! Lanes that allocate from several zones at once, free and resize what they hold there, and of which one may die in any
//! call. No unit has two owners, and the dead cost no more than they had in hand.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fastrand::Rng;
use nbbs::{Request, Zone, Zones};
use testkit::depth;
use testkit::program::{Arena, Body};
use testkit::steered::{Schedule, SteeredIn, die_within};

type Words = SteeredIn<2, 2>;

/// Who holds what, in the numbers among all zones.
#[derive(Default)]
struct World {
    /// What each lane holds, and what is in hand of the call that it is making.
    held: Vec<Vec<Range<u64>>>,
    in_hand: Vec<Vec<Range<u64>>>,
}

struct Lane<'a> {
    zones: Zones<'a, Words>,
    world: &'a Mutex<World>,
    number: usize,
    random: Rng,
}

impl Lane<'_> {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, units: Range<u64>) {
        let mut world = self.world();
        assert_eq!(self.zones.zone_of(units.start), self.zones.zone_of(units.end - 1));
        for other in world.held.iter().flatten() {
            assert!(other.end <= units.start || units.end <= other.start, "{other:?}, {units:?}");
        }
        world.held[self.number].push(units);
    }

    /// Zones in any order, some of them twice, and one that there is not.
    fn preference(&mut self) -> Vec<usize> {
        let count = self.zones.zones().len();
        (0..=count).map(|_| self.random.usize(..=count)).collect()
    }

    fn act(&mut self) {
        let (zones, preference) = (self.zones.on(self.number), self.preference());
        let order = self.random.u32(..5);
        match self.random.u32(..9) {
            0 | 1 => {
                if let Ok(index) = zones.alloc(&preference, order) {
                    self.receive(index..index + (1 << order));
                }
            }
            2 => {
                let mut blocks = [0; 6];
                let order = order / 2;
                let count = zones.alloc_batch(&preference, order, &mut blocks).unwrap_or(0);
                for &index in &blocks[..count] {
                    self.receive(index..index + (1 << order));
                }
            }
            3 => {
                let units = self.random.u64(1..40);
                let from = self.random.u64(..1000);
                let request = Request::units(units).within(from..from + 300);
                let request = if self.random.bool() { request.top_down() } else { request };
                let answer = if self.random.bool() {
                    zones.request(&preference, request)
                } else {
                    zones.alloc_units(&preference, units)
                };
                if let Ok(index) = answer {
                    self.receive(index..index + units);
                }
            }
            4 => self.free_blocks(zones),
            _ => self.change(zones),
        }
    }

    /// Takes something that the lane holds in hand.
    fn take(&mut self) -> Option<Range<u64>> {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let count = world.held[self.number].len();
        let chosen = self.random.usize(..count.max(1));
        let run = (count > 0).then(|| world.held[self.number].swap_remove(chosen))?;
        world.in_hand[self.number].push(run.clone());
        Some(run)
    }

    /// Frees all blocks of one order, whichever zones they lie in.
    fn free_blocks(&mut self, zones: Zones<'_, Words>) {
        let units = 1 << self.random.u32(..3);
        // What it holds is its own to look at: no lane steps while the world is locked.
        let held = std::mem::take(&mut self.world().held[self.number]);
        let (blocks, rest): (Vec<_>, Vec<_>) = held.into_iter().partition(|run| {
            run.end - run.start == units && {
                let zone = zones.zones()[zones.zone_of(run.start).unwrap()];
                (run.start - zone.base).is_multiple_of(units)
            }
        });
        {
            let mut world = self.world();
            world.held[self.number] = rest;
            world.in_hand[self.number].clone_from(&blocks);
        }
        let blocks: Vec<u64> = blocks.into_iter().map(|run| run.start).collect();
        zones.free_batch(units.ilog2(), &blocks).unwrap_or_else(|error| panic!("{error}"));
        self.world().in_hand[self.number].clear();
    }

    /// Frees, cuts or grows something that the lane holds.
    fn change(&mut self, zones: Zones<'_, Words>) {
        let Some(run) = self.take() else { return };
        let len = run.end - run.start;
        assert_eq!(zones.len_of(run.start), Ok(len));
        let first = self.random.u64(1..=len);
        let cut = run.start + first;
        let left = match self.random.u32(..5) {
            0 if first < len => match zones.split_off(run.start, first) {
                Ok(second) => {
                    assert_eq!(second, cut);
                    [Some(run.start..cut), Some(cut..run.end)]
                }
                Err(_) => [Some(run), None],
            },
            1 => match zones.shrink(run.start, first) {
                Ok(()) => [Some(run.start..cut), None],
                Err(_) => [Some(run), None],
            },
            2 => match zones.grow(run.start, len + first) {
                Ok(()) => [Some(run.start..run.end + first), None],
                Err(_) => [Some(run), None],
            },
            3 => {
                zones.free_units(run.start, len).unwrap();
                [None, None]
            }
            _ => {
                assert_eq!(zones.free(run.start), Ok(len));
                [None, None]
            }
        };
        self.world().in_hand[self.number].clear();
        left.into_iter().flatten().for_each(|run| self.receive(run));
    }
}

fn race(seed: u64, dies: bool) {
    let mut random = Rng::with_seed(seed);
    let arenas: Vec<_> =
        (0..random.usize(1..4)).map(|_| Arena::<Words>::new(random.u64(1..200))).collect();
    let mut base = random.u64(..100);
    let list: Vec<_> = arenas
        .iter()
        .map(|arena| {
            let zone = Zone { base, buddy: arena.buddy() };
            base += zone.buddy.units() + [0, 1, 100][random.usize(..3)];
            zone
        })
        .collect();
    let zones = Zones::new(&list).unwrap();
    let lanes = random.usize(2..5);
    let none = || vec![Vec::new(); lanes];
    let world = Mutex::new(World { held: none(), in_hand: none() });
    let (calls, steps) = (random.u32(1..12), random.u64(60..900));
    let bodies = (0..lanes).map(|number| -> Body<'_> {
        let mut lane = Lane { zones, world: &world, number, random: random.fork() };
        let death = (dies && number == 0).then(|| random.u64(..steps / 2));
        Box::new(move || {
            let mut act = || (0..calls).for_each(|_| lane.act());
            match death {
                Some(step) => _ = die_within(number, step, act),
                None => act(),
            }
            Ok(())
        })
    });
    let bodies = bodies.collect();
    let ran = Schedule { seed, stalls: random.u32(..12), steps }.run(bodies);
    ran.unwrap_or_else(|violation| panic!("seed {seed}, one dies: {dies}: {violation}"));
    let world = world.into_inner().unwrap_or_else(PoisonError::into_inner);
    for run in world.held.into_iter().flatten() {
        assert_eq!(zones.free(run.start), Ok(run.end - run.start), "seed {seed}: {run:?}");
    }
    // A batch has six blocks of four units in hand, a request 39 units, growth as many as the run has.
    let in_hand: u64 = world.in_hand[0].iter().map(|run| 2 * (run.end - run.start)).sum();
    let lost: u64 = list.iter().map(|zone| zone.buddy.units() - zone.buddy.count_free()).sum();
    assert!(lost <= if dies { in_hand.max(39) } else { 0 }, "seed {seed}: {lost} are lost");
    for zone in list.iter().filter(|_| !dies) {
        zone.buddy.audit().unwrap();
        assert!(zone.buddy.alloc(zone.buddy.max_order()).is_ok());
    }
}

#[test]
fn lanes_share_zones_and_may_die() {
    for seed in 0..3000 * depth() {
        race(seed, false);
        race(seed, true);
    }
}
