//! Tests everything at once on deep trees: lanes make any calls under random schedules, and some may die.
//!
//! ```text
//! world     who holds what, since when units are free, and what calls may have in hand
//! calls     the calls that a lane draws; those on blocks
//! deaths    what the dead may cost
//! runs      those on runs, parts and ranges
//! ```
//!
//! The owner map judges what is granted. A block must not be refused while more of its size are free throughout the
//! call than others may have in hand. A run, a range, growth or a cut must not be refused without need if no other call
//! claims anything meanwhile. The races of `schedules.rs` have fewer levels and kinds of call, and judge refusals only
//! where a race is made for that.

mod calls;
mod deaths;
mod runs;
mod world;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use calls::{ALL, Caller, Kind};
use fastrand::Rng;
use nbbs::Buddy;
use nbbs::sync::Word;
use testkit::depth;
use testkit::program::{Arena, Body, inspect};
use testkit::steered::{Schedule, SteeredIn, die_within};
use world::{World, range};

/// Runs a race of two to four lanes, of which so many may die, in calls of any kind.
fn race<W: Word>(buddy: Buddy<'_, W>, seed: u64, random: &mut Rng, deaths: usize) -> World {
    let (lanes, kinds) = (random.usize(deaths.max(1) + 1..6), kinds(random));
    // One list more is for what nobody of the race holds.
    let world = Mutex::new(World::new(buddy.units(), lanes + 1));
    let caller = |number, kinds, random: &mut Rng| {
        let random = random.fork();
        Caller { world: &world, buddy, number, random, kinds }
    };
    (0..random.u32(..20)).for_each(|_| caller(random.usize(..=lanes), ALL, random).act());
    let (calls, steps) = (random.u32(1..7), random.u64(60..900));
    let mut bodies = Vec::new();
    for lane in 0..lanes {
        let death = (lane < deaths).then(|| random.u64(..steps / 2));
        let calls = if death.is_some() { calls + 5 } else { calls };
        bodies.push(body(caller(lane, &kinds, random), calls, death));
    }
    let most = [3, 12, 12, steps as u32 / 3][random.usize(..4)];
    let ran = Schedule { seed, stalls: random.u32(..most), steps }.run(bodies);
    ran.unwrap_or_else(|violation| panic!("{violation}"));
    world.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what a lane does: so many calls, in which it dies before the step `death`, if that comes.
fn body<W: Word>(mut caller: Caller<'_, W>, calls: u32, death: Option<u64>) -> Body<'_> {
    Box::new(move || {
        let (lane, world) = (caller.number, caller.world);
        let mut act = || (0..calls).for_each(|_| caller.act());
        match death {
            Some(step) => {
                if die_within(lane, step, act).is_none() {
                    world.lock().unwrap_or_else(PoisonError::into_inner).dies(lane);
                }
            }
            None => act(),
        }
        Ok(())
    })
}

/// Draws what kinds of call the lanes make: all, or a few that then meet often.
fn kinds(random: &mut Rng) -> Vec<Kind> {
    let count = random.usize(2..7);
    let often = ALL[random.usize(..3)];
    let mut few: Vec<Kind> = (0..count).map(|_| ALL[random.usize(..ALL.len())]).collect();
    few.push(often);
    if random.bool() { few } else { ALL.to_vec() }
}

/// Checks that the arena is as the callers know it, and returns everything, in two parts now and then: nobody is at
/// work, so nothing is in the way of a cut.
fn return_all<W: Word>(buddy: &Buddy<'_, W>, mut world: World, random: &mut Rng) {
    inspect(buddy, &world.spec()).unwrap_or_else(|violation| panic!("{violation}"));
    for held in world.held.iter_mut().flat_map(std::mem::take) {
        let (lane, mut len) = (buddy.on(random.usize(..4)), held.len);
        if len > 1 && random.bool() {
            len = random.u64(1..len);
            let second = lane.split_off(held.index, len);
            assert_eq!(second, Ok(held.index + len), "{held:?} is cut after {len} units");
            assert_eq!(lane.free(held.index + len), Ok(held.len - len));
        }
        assert_eq!(lane.free(held.index), Ok(len), "{:?}", range(held));
    }
    world.reserved.into_iter().flatten().for_each(|range| buddy.release(range).unwrap());
}

/// Checks that everything is free, and can be had as one.
fn check_whole<W: Word>(buddy: &Buddy<'_, W>) {
    assert_eq!(buddy.count_free(), buddy.units());
    buddy.audit().unwrap();
    let largest = buddy.alloc(buddy.max_order()).expect("a block of the largest order");
    buddy.free(largest).unwrap();
    let all = buddy.here().alloc_units(buddy.units()).expect("all units");
    assert_eq!(buddy.free(all), Ok(buddy.units()));
    buddy.audit().unwrap();
}

/// Names the race in which the test fails.
struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.0);
        }
    }
}

/// Runs the races of some seeds on arenas of these sizes; in each, from one lane to `deaths` lanes may die. Returns how
/// many calls were granted memory, and how many refusals could be judged.
fn races<const LEAF: u32, const FAN: u32>(
    seeds: Range<u64>,
    sizes: Range<u64>,
    deaths: usize,
) -> [u64; 2] {
    let mut counts = [0; 2];
    for seed in seeds {
        let mut random = Rng::with_seed(seed);
        let arena = Arena::<SteeredIn<LEAF, FAN>>::new(random.u64(sizes.clone()));
        let words = (0..nbbs::lane_words(8)).map(|_| SteeredIn::default());
        let words: Vec<SteeredIn<LEAF, FAN>> = words.collect();
        let own = arena.buddy();
        let buddy = if random.bool() { own.with_lanes(&words).unwrap() } else { own };
        let units = buddy.units();
        let _named =
            Named(format!("shape {LEAF}, {FAN}, {units} units, seed {seed}, {deaths} die"));
        let deaths = if deaths == 0 { 0 } else { 1 + seed as usize % deaths };
        let world = race(buddy, seed, &mut random, deaths);
        counts[0] += world.granted;
        counts[1] += world.judged;
        if deaths > 0 {
            deaths::judge(&buddy, world, &mut random);
        } else {
            return_all(&buddy, world, &mut random);
            check_whole(&buddy);
        }
    }
    counts
}

fn seeds() -> Range<u64> {
    0..2000 * depth()
}

/// Checks that the races showed something: most calls for memory can be granted, and some refusals judged.
fn check_counts(counts: &[[u64; 2]]) {
    let is_low = |&[granted, judged]: &[u64; 2]| granted < seeds().end || judged < seeds().end / 10;
    assert!(!counts.iter().any(is_low), "granted and judged: {counts:?}");
}

#[test]
fn on_deep_trees() {
    check_counts(&[
        races::<1, 1>(seeds(), 6..40, 0),
        races::<1, 1>(seeds(), 20..150, 0),
        races::<1, 1>(seeds(), 500..1000, 0),
        races::<1, 2>(seeds(), 6..80, 0),
        races::<2, 1>(seeds(), 20..150, 0),
        races::<2, 2>(seeds(), 64..600, 0),
    ]);
}

#[test]
fn on_words_of_the_standard_shape() {
    check_counts(&[races::<5, 4>(seeds(), 33..3000, 0)]);
}

#[test]
fn beside_some_that_die() {
    races::<1, 1>(seeds(), 6..40, 3);
    races::<1, 1>(seeds(), 20..150, 3);
    races::<1, 1>(seeds(), 500..1000, 3);
    races::<1, 2>(seeds(), 6..80, 3);
    races::<2, 1>(seeds(), 20..150, 3);
    races::<2, 2>(seeds(), 64..600, 3);
    races::<5, 4>(seeds(), 33..3000, 3);
}
