//! Tests caches that others empty, in the middle of anything, under every schedule with few preemptions. When lanes
//! take turns, all see accesses in order, so no barrier is needed.

use nbbs::{Caches, Caps, cache_words};
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, all_schedules};
use testkit::{Oracle, Violation, check_whole, preemptions};

const UNITS: u64 = 64;

struct World {
    arena: Arena<Steered>,
    words: Vec<Steered>,
    oracle: Oracle,
}

impl World {
    fn caches(&self) -> Caches<'_, Steered> {
        let caps = Caps::new().units(0, 4).checked(false);
        Caches::new(self.arena.buddy(), &self.words).with_caps(caps)
    }

    /// Allocates some units on a CPU and frees them.
    fn work(&self, cpu: usize, count: usize) -> Result<(), Violation> {
        let mut held = Vec::new();
        for _ in 0..count {
            if let Ok(index) = self.caches().alloc(cpu, 0) {
                held.push(self.oracle.take(cpu, index, 0)?);
            }
        }
        held.into_iter().try_for_each(|block| {
            self.oracle.give(block)?;
            let freed = self.caches().free_sized(cpu, block.index, 0);
            freed.map_err(|error| Violation::FreeRefused { block, reason: error.to_string() })
        })
    }
}

/// Runs the bodies, after some work on both CPUs, under every schedule.
fn check(bodies: impl for<'a> Fn(&'a World) -> Vec<Body<'a>>) {
    let schedules = all_schedules(preemptions(), |together| {
        let words = (0..cache_words(2)).map(|_| Steered::default()).collect();
        let world = World { arena: Arena::new(UNITS), words, oracle: Oracle::new(UNITS) };
        world.work(0, 3)?;
        world.work(1, 3)?;
        together(bodies(&world))?;
        world.oracle.check_empty()?;
        world.caches().audit().unwrap();
        // Nothing stays taken.
        world.caches().drain(0);
        world.caches().drain(1);
        assert_eq!((world.caches().cached().units, world.caches().refused()), (0, 0));
        check_whole(&world.arena.buddy(), &world.oracle)
    });
    let schedules = schedules.unwrap_or_else(|culprit| panic!("{culprit}"));
    assert!(schedules > 100, "{schedules} schedules are no race");
}

fn drain(world: &World) -> Body<'_> {
    Box::new(|| {
        world.caches().drain_all(|| {});
        Ok(())
    })
}

#[test]
fn a_cpu_at_work_and_one_that_empties_its_cache() {
    check(|world| vec![Box::new(|| world.work(1, 2)), drain(world)]);
    check(|world| vec![Box::new(|| world.work(0, 3)), drain(world)]);
}

#[test]
fn two_that_empty_caches() {
    check(|world| vec![drain(world), drain(world)]);
    check(|world| {
        let ask = || {
            world.caches().ask_all();
            world.work(1, 1)
        };
        vec![drain(world), Box::new(ask)]
    });
}
