//! Tests which cache lines the lanes' operations write, in the steady state: only a lane's own, if nothing is shared.
//!
//! Lanes can only meet on a line that one writes and another touches, on any number of cores, so no cores are needed to
//! check this.

use std::cell::RefCell;

use nbbs::{Buddy, Cache, MetadataBox, lane_words, metadata_words};
use testkit::touched::{Lanes, Touched};

/// 1 GiB in pages.
const UNITS: u64 = 1 << 18;

/// The lanes of such an arena, and as many as 64 CPUs have.
const OWN_LANES: usize = 16;
const MORE_LANES: usize = 64;

/// The number of rounds until the state is steady, and of those that count.
const WARM_UP: usize = 256;
const ROUNDS: usize = 1024;

/// The step that a lane repeats.
type Step<'a> = Box<dyn FnMut(usize) + 'a>;

/// An operation of so many lanes, and how often a round of it may write a line that another lane touches: in an arena
/// of which nothing else is in use, in one where each lane has blocks in use here and there, and in either with more
/// lanes.
struct Bound {
    name: &'static str,
    step: fn(Buddy<'_, Touched>, usize) -> Step<'_>,
    alone: f64,
    in_use: f64,
    more_lanes: f64,
}

const fn bound(
    name: &'static str,
    step: fn(Buddy<'_, Touched>, usize) -> Step<'_>,
    [alone, in_use, more_lanes]: [f64; 3],
) -> Bound {
    Bound { name, step, alone, in_use, more_lanes }
}

/// What an operation may cost others, on any number of cores. A block that another lane frees takes two writes of its
/// word's line. When a run leaves its word empty, the word is merged up to the top, and the next run splits it again
/// from there. The words below a run of more than 512 units are merged when it is freed, which ends the epoch. With 64
/// lanes two share each word of 8192 units, which holds the blocks of order 9, and into which such a run is merged.
static BOUNDS: &[Bound] = &[
    bound("pairs of order 0", |buddy, _| pairs(buddy, 0), [0.0, 0.0, 0.0]),
    bound("pairs of order 4", |buddy, _| pairs(buddy, 4), [0.0, 0.0, 0.0]),
    bound("pairs of order 5", |buddy, _| pairs(buddy, 5), [0.0, 0.0, 0.0]),
    bound("pairs of order 9", |buddy, _| pairs(buddy, 9), [0.0, 0.0, 2.0]),
    bound("bulk", bulk, [0.0, 0.0, 0.0]),
    bound("churn, 60 % full", churn, [0.0, 0.0, 0.001]),
    bound("batches of 8", |buddy, _| batches(buddy, 8), [0.0, 0.0, 0.0]),
    bound("batches of 48", |buddy, _| batches(buddy, 48), [0.0, 0.0, 0.0]),
    bound("runs of 13 units", |buddy, _| runs(buddy, 13), [9.0, 0.0, 12.0]),
    bound("runs of 32 units", |buddy, _| runs(buddy, 32), [0.0, 0.0, 0.0]),
    bound("runs of 70 units", |buddy, _| runs(buddy, 70), [9.0, 0.0, 12.0]),
    bound("runs of 96 units", |buddy, _| runs(buddy, 96), [9.0, 0.0, 12.0]),
    bound("runs of 1000 units", |buddy, _| runs(buddy, 1000), [10.0, 1.0, 32.0]),
    bound("cache hits", cache_hits, [0.0, 0.0, 0.0]),
    bound("freed by the next lane", handed, [2.0, 2.0, 2.0]),
];

fn pairs(buddy: Buddy<'_, Touched>, order: u32) -> Step<'_> {
    Box::new(move |lane| {
        let block = buddy.on(lane).alloc(order).unwrap();
        buddy.on(lane).free(block).unwrap();
    })
}

/// Allocates 64 blocks, and frees the last one first.
fn bulk(buddy: Buddy<'_, Touched>, _: usize) -> Step<'_> {
    Box::new(move |lane| {
        let blocks = [0; 64].map(|_: u64| buddy.on(lane).alloc(0).unwrap());
        blocks.into_iter().rev().for_each(|block| _ = buddy.on(lane).free(block).unwrap());
    })
}

/// Replaces a random one of 32 blocks of orders 0 to 3; five eighths of the rest are in use.
fn churn(buddy: Buddy<'_, Touched>, lanes: usize) -> Step<'_> {
    let mut random = fastrand::Rng::with_seed(15);
    let filler: Vec<u64> = std::iter::from_fn(|| buddy.on(0).alloc(7).ok()).collect();
    for block in filler {
        if random.u32(0..8) >= 5 {
            buddy.on(0).free(block).unwrap();
        }
    }
    let mut held: Vec<Vec<u64>> = vec![Vec::new(); lanes];
    Box::new(move |lane| {
        let held = &mut held[lane];
        if held.len() == 32 {
            buddy.on(lane).free(held.swap_remove(random.usize(0..32))).unwrap();
        }
        held.push(buddy.on(lane).alloc(random.u32(0..4)).unwrap());
    })
}

fn batches(buddy: Buddy<'_, Touched>, number: usize) -> Step<'_> {
    Box::new(move |lane| {
        let mut blocks = vec![0; number];
        let got = buddy.on(lane).alloc_batch(0, &mut blocks).unwrap();
        buddy.on(lane).free_batch(0, &blocks[..got]).unwrap();
    })
}

fn runs(buddy: Buddy<'_, Touched>, units: u64) -> Step<'_> {
    Box::new(move |lane| {
        let run = buddy.on(lane).alloc_units(units).unwrap();
        buddy.on(lane).free(run).unwrap();
    })
}

/// Runs pairs for which the lane's own cache has blocks.
fn cache_hits(buddy: Buddy<'_, Touched>, lanes: usize) -> Step<'_> {
    let caches: Vec<RefCell<Cache<'_, Touched>>> =
        (0..lanes).map(|lane| RefCell::new(buddy.cache(lane))).collect();
    Box::new(move |lane| {
        let mut cache = caches[lane].borrow_mut();
        let block = cache.alloc(0).unwrap();
        cache.free_sized(block, 0).unwrap();
    })
}

/// Frees a block of the next lane, and allocates one.
fn handed(buddy: Buddy<'_, Touched>, lanes: usize) -> Step<'_> {
    let mut held: Vec<Option<u64>> = vec![None; lanes];
    Box::new(move |lane| {
        if let Some(block) = held[(lane + 1) % lanes].take() {
            buddy.on(lane).free(block).unwrap();
        }
        held[lane] = Some(buddy.on(lane).alloc(0).unwrap());
    })
}

/// Keeps every second one of 256 units of each lane in use.
fn keep_every_second(buddy: Buddy<'_, Touched>, lanes: usize) {
    for lane in 0..lanes {
        let units = [0; 256].map(|_: u64| buddy.on(lane).alloc(0).unwrap());
        units.into_iter().step_by(2).for_each(|unit| _ = buddy.on(lane).free(unit).unwrap());
    }
}

/// Returns how often a round writes a line that another lane touches.
fn shared_writes(
    step: fn(Buddy<'_, Touched>, usize) -> Step<'_>,
    lanes: usize,
    in_use: bool,
) -> f64 {
    let words = metadata_words(UNITS) + lane_words(MORE_LANES);
    let metadata: MetadataBox<Touched> = MetadataBox::zeroed(words).unwrap();
    let (words, more) = metadata.words().split_at(metadata_words(UNITS));
    let mut buddy = Buddy::new(words, UNITS).unwrap();
    if lanes > OWN_LANES {
        buddy = buddy.with_lanes(more).unwrap();
    }
    if in_use {
        keep_every_second(buddy, lanes);
    }
    let rounds = Lanes::in_turn(lanes, WARM_UP, ROUNDS, step(buddy, lanes));
    rounds.shared_writes() as f64 / (lanes * ROUNDS) as f64
}

#[test]
fn lanes_write_no_lines_of_each_other() {
    let mut wrong = Vec::new();
    for &Bound { name, step, alone, in_use, more_lanes } in BOUNDS {
        for (lanes, bounds) in [(OWN_LANES, [alone, in_use]), (MORE_LANES, [more_lanes; 2])] {
            for (in_use, most) in [(false, bounds[0]), (true, bounds[1])] {
                let shared = shared_writes(step, lanes, in_use);
                let state = if in_use { "more in use" } else { "nothing else in use" };
                let found =
                    format!("{name}, {lanes} lanes, {state}: {shared:.4} shared writes a round");
                println!("{found}");
                if shared > most {
                    wrong.push(format!("{found}, of which {most} are stated"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
