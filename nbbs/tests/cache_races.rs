//! Caches under random schedules: CPUs at work, handlers in the middle of their operations, lanes without a cache, all
//! caches emptied by any of them, and one that dies, whose cache is put to use again while the others go on.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fastrand::Rng;
use nbbs::{AllocError, Caches, Caps, Shape, cache_words};
use testkit::depth;
use testkit::hooked::{Hook, Hooked};
use testkit::program::{Arena, Body};
use testkit::steered::{Schedule, Steering, die_within};

/// The most handlers in each other.
const DEEP: u32 = 2;

type Act = &'static (dyn Fn(usize) + Sync);

thread_local! {
    /// The running lane, how many handlers have interrupted it, and what a handler does.
    static RUNNING: Cell<Option<(usize, u32, Act)>> = const { Cell::new(None) };
    /// Before one of how many accesses a handler comes, or 0.
    static ONE_IN: Cell<u32> = const { Cell::new(0) };
    static RANDOM: RefCell<Rng> = const { RefCell::new(Rng::with_seed(0)) };
}

/// Words before whose accesses other lanes and handlers come.
#[derive(Debug, Default)]
struct Interrupted<const LEAF: u32, const FAN: u32>;

impl<const LEAF: u32, const FAN: u32> Hook for Interrupted<LEAF, FAN> {
    const SHAPE: Shape = <Steering<LEAF, FAN> as Hook>::SHAPE;

    fn before_access() {
        let Some((lane, deep, act)) = RUNNING.get() else { return };
        <Steering<LEAF, FAN> as Hook>::before_access();
        let may = ONE_IN.get() > 0 && deep < DEEP;
        if may && RANDOM.with_borrow_mut(|random| random.u32(..ONE_IN.get()) == 0) {
            RUNNING.set(Some((lane, deep + 1, act)));
            act(lane);
        }
        RUNNING.set(Some((lane, deep, act)));
    }
}

/// What lanes hold, and how many of each are in `drain_all`.
#[derive(Default)]
struct World {
    held: [Vec<(u64, u32)>; 4],
    owned: Vec<bool>,
    draining: [usize; 4],
    is_recovering: bool,
}

impl World {
    fn mark(&mut self, (index, order): (u64, u32), is_owned: bool) {
        for unit in index..index + (1 << order) {
            let was = std::mem::replace(&mut self.owned[unit as usize], is_owned);
            assert_ne!(was, is_owned, "unit {unit} is handed out twice, or freed twice");
        }
    }
}

struct Scene<const LEAF: u32, const FAN: u32> {
    caches: Caches<'static, Hooked<Interrupted<LEAF, FAN>>>,
    orders: u32,
    world: Mutex<World>,
}

impl<const LEAF: u32, const FAN: u32> Scene<LEAF, FAN> {
    /// Never locked while another lane may go on.
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn act(&self, cpu: usize) {
        let draw =
            |random: &mut Rng| (random.u32(..16), random.u32(..self.orders), random.usize(..));
        let (kind, order, pick) = RANDOM.with_borrow_mut(draw);
        let caches = &self.caches;
        match kind {
            0..6 => match caches.alloc(cpu, order) {
                Ok(index) => {
                    self.world().mark((index, order), true);
                    let holder = if pick % 4 == 0 { pick / 4 % 4 } else { cpu };
                    self.world().held[holder].push((index, order));
                }
                Err(AllocError::Exhausted { .. } | AllocError::OrderTooLarge { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            6..12 if self.world().held[cpu].is_empty() => {}
            6..12 => {
                let count = self.world().held[cpu].len();
                let block = self.world().held[cpu].swap_remove(pick % count);
                self.world().mark(block, false);
                self.free(cpu, block, kind < 9);
            }
            12 => caches.drain(cpu),
            13 => caches.ask(pick % 5),
            14 if self.world().is_recovering => {}
            14 => {
                self.world().draining[cpu] += 1;
                caches.drain_all(|| {});
                self.world().draining[cpu] -= 1;
            }
            _ => _ = (caches.cached(), caches.stats()),
        }
    }

    fn free(&self, cpu: usize, (index, order): (u64, u32), is_sized: bool) {
        let sized = || self.caches.free_sized(cpu, index, order).map(|()| 1 << order);
        let freed = if is_sized { sized() } else { self.caches.free(cpu, index) };
        assert_eq!(freed, Ok(1 << order));
    }

    /// Puts the cache of a CPU that has died to use again, unless somebody is just then in `drain_all`.
    fn recover(&self, cpu: usize) {
        self.world().draining[cpu] = 0;
        if self.world().draining == [0; 4] {
            self.world().is_recovering = true;
            let one_in = ONE_IN.replace(0);
            self.caches.recover(cpu);
            ONE_IN.set(one_in);
            self.world().is_recovering = false;
            (0..4).for_each(|_| self.act(cpu));
        }
    }

    /// Frees all that is held, and checks that all is free then, but for what the dead had in hand: at most `lost`.
    fn finish(&self, cpus: usize, lost: u64) {
        let (caches, buddy) = (&self.caches, self.caches.buddy());
        if lost > 0 {
            (0..cpus).for_each(|cpu| caches.recover(cpu));
            buddy.mend();
        }
        caches.audit().unwrap();
        let held: Vec<_> = self.world().held.iter_mut().flat_map(std::mem::take).collect();
        held.into_iter().for_each(|block| self.free(block.0 as usize % 4, block, true));
        (0..cpus).for_each(|cpu| caches.drain(cpu));
        assert_eq!((caches.cached().units, caches.refused()), (0, 0));
        let missing = buddy.units() - buddy.count_free();
        assert!(missing <= lost, "{missing} units are lost");
        if lost == 0 {
            buddy.audit().unwrap();
            assert!(buddy.on(0).alloc(buddy.max_order()).is_ok(), "not whole");
        }
    }
}

/// Runs a race, in which one lane dies if `dies`.
fn race<const LEAF: u32, const FAN: u32>(seed: u64, sizes: Range<u64>, dies: bool) {
    let mut random = Rng::with_seed(seed);
    let (units, cpus, steps) = (random.u64(sizes), random.usize(1..4), random.u64(20..600));
    let lanes = cpus + random.usize(..2);
    // Leaked, as handlers may outlive any scope.
    let arena = Box::leak(Box::new(Arena::new(units)));
    let words = (0..cache_words(cpus)).map(|_| Hooked::default()).collect::<Vec<_>>().leak();
    let caps = Caps::new().checked(random.bool());
    let caps = (0..10).fold(caps, |caps, order| caps.units(order, random.u64(..5) << order));
    let caches = Caches::new(arena.buddy(), words).with_caps(caps);
    let world = World { owned: vec![false; units as usize], ..World::default() };
    let orders = random.u32(1..=units.ilog2().min(4) + 1);
    let world = Mutex::new(world);
    let scene: &'static _ = Box::leak(Box::new(Scene::<LEAF, FAN> { caches, orders, world }));
    RANDOM.set(Rng::with_seed(random.u64(..)));
    (0..random.u32(..40)).for_each(|_| scene.act(random.usize(..lanes)));
    ONE_IN.set([0, 6, 30][random.usize(..3)]);
    let (ops, death) = (random.u32(1..8), random.u64(..steps.min(200)));
    let dying = if dies { random.usize(..lanes) } else { lanes };
    let handler: Act = Box::leak(Box::new(|lane| scene.act(lane)));
    let bodies = (0..lanes).map(|lane| -> Body<'_> {
        Box::new(move || {
            RUNNING.set(Some((lane, 0, handler)));
            let act = || (0..ops).for_each(|_| scene.act(lane));
            if lane != dying {
                act();
            } else if die_within(lane, death, act).is_none() {
                RUNNING.set(Some((lane, 0, handler)));
                scene.recover(lane);
            }
            RUNNING.set(None);
            Ok(())
        })
    });
    let stalls = [random.u32(..12), random.u32(..(steps / 3) as u32)][random.usize(..2)];
    let ran = Schedule { seed, stalls, steps }.run(bodies.collect());
    RUNNING.set(None);
    println!("seed {seed}: {units} units, {cpus} CPUs, {lanes} lanes, one dies: {dies}");
    ran.unwrap_or_else(|violation| panic!("{violation}"));
    let most = (0..10).map(|order| caps.blocks(order).max(1) << order).max();
    scene.finish(cpus, if dies { u64::from(1 + DEEP) * most.unwrap() } else { 0 });
}

#[test]
fn cpus_handlers_drains_and_deaths() {
    for (seed, dies) in (0..400 * depth()).flat_map(|seed| [(seed, false), (seed, true)]) {
        race::<2, 1>(seed, 4..64, dies);
        race::<5, 4>(seed, 16..700, dies);
    }
}
