//! Slots go back and forth, by pointer and by local, while chunks come and go.

use std::sync::atomic::Ordering;

use nbbs_arena::ArenaBox;
use testkit::program::{Body, Race, race_plain};
use testkit::steered::{Culprit, all_schedules};

use crate::support::steps::Stepped;
use crate::support::{Bank, BankArena, Item, Locals, Pointers, config};
use crate::{ALLOC, FREE, must_pass, race, suite};

/// What goes on beside the lanes of a race.
type Side<'a> = &'a dyn for<'p> Fn(&'p Pointers<'_, Stepped>) -> Vec<Body<'p>>;

fn no_side<'p>(_: &'p Pointers<'_, Stepped>) -> Vec<Body<'p>> {
    Vec::new()
}

fn explore_pointers(
    preemptions: u32,
    race: &Race,
    (chunk_size, at_first): (usize, usize),
    side: Side<'_>,
) -> Result<u64, Box<Culprit>> {
    all_schedules(preemptions, |together| {
        let bank = Bank::new(chunk_size, race.setup.units as usize / chunk_size);
        let pool = Pointers::<Stepped>::new(&bank);
        pool.arena.reserve(at_first).expect("the bank has room");
        pool.traceless.store(true, Ordering::Relaxed);
        race_plain(race, &pool, |bodies| {
            pool.traceless.store(false, Ordering::Relaxed);
            let shorter = bodies.into_iter().map(|body| -> Body<'_> { Box::new(body) });
            together(shorter.chain(side(&pool)).collect())
        })
    })
}

fn explore_locals(
    preemptions: u32,
    race: &Race,
    chunk_size: usize,
    most: usize,
) -> Result<u64, Box<Culprit>> {
    all_schedules(preemptions, |together| {
        let bank = Bank::new(chunk_size, race.setup.units as usize / chunk_size);
        let arena = Pointers::<Stepped>::new(&bank).arena;
        arena.reserve(bank.slots()).expect("the bank has room");
        let pool = Locals::new(&bank, &arena, race.lanes.len().max(1), most);
        race_plain(race, &pool, |bodies| together(bodies))
    })
}

#[test]
fn pointers_under_every_schedule() {
    for (number, race) in suite(4).iter().enumerate() {
        must_pass(
            &format!("one chunk, race {number}"),
            explore_pointers(2, race, (4, 4), &no_side),
        );
    }
    let short = race(4, 3, &[&[ALLOC, FREE], &[ALLOC, FREE]]);
    must_pass("short", explore_pointers(2, &short, (4, 4), &no_side));
    must_pass("two chunks", explore_pointers(2, &suite(4)[2], (2, 4), &no_side));
}

#[test]
fn locals_under_every_schedule() {
    for (number, race) in suite(4).iter().enumerate() {
        must_pass(&format!("locals, race {number}"), explore_locals(2, race, 4, 1024));
    }
    must_pass("locals of few", explore_locals(2, &suite(4)[0], 4, 2));
    must_pass("locals, two chunks", explore_locals(2, &suite(4)[2], 2, 1024));
}

#[test]
fn growth_and_shrink_beside_allocation() {
    fn shrink<'p>(pool: &'p Pointers<'_, Stepped>) -> Vec<Body<'p>> {
        vec![Box::new(|| {
            pool.arena.shrink();
            Ok(())
        })]
    }
    fn grow_and_shrink<'p>(pool: &'p Pointers<'_, Stepped>) -> Vec<Body<'p>> {
        vec![Box::new(|| {
            // No room is an ordinary answer here.
            _ = pool.arena.grow();
            pool.arena.shrink();
            Ok(())
        })]
    }
    let shortest = race(2, 1, &[&[FREE, ALLOC]]);
    must_pass("shrink, two stalls", explore_pointers(2, &shortest, (2, 2), &shrink));
    let short = race(4, 0, &[&[ALLOC, FREE], &[ALLOC]]);
    must_pass("shrink beside free and alloc", explore_pointers(2, &short, (2, 4), &shrink));
    let held = race(4, 3, &[&[FREE, ALLOC], &[ALLOC]]);
    must_pass("shrink beside a chunk in use", explore_pointers(2, &held, (2, 4), &shrink));
    let one = race(4, 1, &[&[FREE, ALLOC]]);
    must_pass("grow and shrink", explore_pointers(2, &one, (2, 0), &grow_and_shrink));
}

/// What a lane does with an arena of three chunks of which one or two are there.
type Lane = fn(&BankArena<'_, Stepped>, &Bank);

const ITEM: Item = Item([1, 0, 0, !1]);

/// Takes a slot of the only chunk, and gives it back.
fn pass_through(arena: &BankArena<'_, Stepped>, _: &Bank) {
    drop(arena.alloc_box(ITEM));
}

fn keep(arena: &BankArena<'_, Stepped>, _: &Bank) {
    let mut local = arena.local();
    local.alloc(ITEM).into_iter().for_each(|each| local.free(each));
}

/// Takes a slot, and does not give it back.
fn take(arena: &BankArena<'_, Stepped>, _: &Bank) {
    arena.alloc(ITEM).unwrap();
}

/// Gives back the slot that was taken before the race.
fn give_back(arena: &BankArena<'_, Stepped>, bank: &Bank) {
    arena.free(bank.object(0)).unwrap();
}

/// Gives back the first slot of the second chunk of two slots.
fn give_back_third(arena: &BankArena<'_, Stepped>, bank: &Bank) {
    arena.free(bank.object(2)).unwrap();
}

/// What is given back while others take the last slots of its word, or of its chunk, is found again before the arena
/// grows.
#[test]
fn room_is_not_forgotten() {
    // A name, the slots of a chunk, how many are held before, and what the lanes do.
    let races: [(&str, usize, usize, &[Lane]); 5] = [
        ("the last slot", 2, 1, &[pass_through, give_back]),
        ("the last slot, kept", 2, 1, &[take, give_back]),
        ("the last slot of a later chunk, kept", 2, 3, &[take, give_back_third]),
        ("the last word", 65, 1, &[keep, give_back]),
        ("slots and a local", 2, 1, &[pass_through, keep]),
    ];
    for (name, slots, busy, lanes) in races {
        let explored = all_schedules(2, |together| {
            let bank = Bank::new(slots, 3);
            let arena = BankArena::<Stepped>::with_words(&bank, config(&bank));
            arena.reserve(busy + 1).unwrap();
            // By a local, which leaves no cursor behind: see `Pointers`.
            {
                let mut local = arena.local_of(2);
                (0..busy).for_each(|_| _ = ArenaBox::leak(local.alloc(ITEM).unwrap()));
            }
            let bodies = lanes.iter().map(|lane| -> Body<'_> {
                Box::new(|| {
                    lane(&arena, &bank);
                    Ok(())
                })
            });
            together(bodies.collect())?;
            let capacity = arena.capacity();
            let free = capacity - arena.len();
            let all: Vec<_> = (0..free).map(|_| arena.alloc_box(ITEM).unwrap()).collect();
            assert_eq!(arena.capacity(), capacity, "grows while there is room");
            drop(all);
            (0..capacity as u64).for_each(|slot| _ = arena.free(bank.object(slot)));
            assert!(arena.is_empty());
            Ok(())
        });
        must_pass(name, explored);
    }
}
