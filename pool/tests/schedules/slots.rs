//! Tests slots that go back and forth, by pointer and by local, while chunks come and go.

use std::sync::atomic::Ordering;

use nbbs_pool::PoolBox;
use testkit::program::{Body, Race, race_plain};
use testkit::steered::{Culprit, all_schedules};

use crate::support::steps::Stepped;
use crate::support::{Bank, BankPool, Item, Locals, Pointers, config};
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
        let back_end = Pointers::<Stepped>::new(&bank);
        back_end.pool.reserve(at_first).expect("the bank has room");
        back_end.traceless.store(true, Ordering::Relaxed);
        race_plain(race, &back_end, |bodies| {
            back_end.traceless.store(false, Ordering::Relaxed);
            let shorter = bodies.into_iter().map(|body| -> Body<'_> { Box::new(body) });
            together(shorter.chain(side(&back_end)).collect())
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
        let pool = Pointers::<Stepped>::new(&bank).pool;
        pool.reserve(bank.slots()).expect("the bank has room");
        let back_end = Locals::new(&bank, &pool, race.lanes.len().max(1), most);
        race_plain(race, &back_end, |bodies| together(bodies))
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
    fn shrink<'p>(back_end: &'p Pointers<'_, Stepped>) -> Vec<Body<'p>> {
        vec![Box::new(|| {
            back_end.pool.shrink();
            Ok(())
        })]
    }
    fn grow_and_shrink<'p>(back_end: &'p Pointers<'_, Stepped>) -> Vec<Body<'p>> {
        vec![Box::new(|| {
            // No room is an ordinary answer here.
            _ = back_end.pool.grow();
            back_end.pool.shrink();
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

/// The part of a lane, on a pool of three chunks of which one or two exist.
type Lane = fn(&BankPool<'_, Stepped>, &Bank);

const ITEM: Item = Item([1, 0, 0, !1]);

/// Takes a slot of the only chunk, and gives it back.
fn pass_through(pool: &BankPool<'_, Stepped>, _: &Bank) {
    drop(pool.alloc_box(ITEM));
}

fn keep(pool: &BankPool<'_, Stepped>, _: &Bank) {
    let mut local = pool.local();
    local.alloc(ITEM).into_iter().for_each(|each| local.free(each));
}

/// Takes a slot, and does not give it back.
fn take(pool: &BankPool<'_, Stepped>, _: &Bank) {
    pool.alloc(ITEM).unwrap();
}

/// Gives back the slot that was taken before the race.
fn give_back(pool: &BankPool<'_, Stepped>, bank: &Bank) {
    pool.free(bank.object(0)).unwrap();
}

/// Gives back the first slot of the second chunk of two slots.
fn give_back_third(pool: &BankPool<'_, Stepped>, bank: &Bank) {
    pool.free(bank.object(2)).unwrap();
}

/// A slot that is given back while others take the last slots of its word, or of its chunk, is found again before the
/// pool grows.
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
            let pool = BankPool::<Stepped>::with_words(&bank, config(&bank));
            pool.reserve(busy + 1).unwrap();
            // By a local, which leaves no cursor behind: see `Pointers`.
            {
                let mut local = pool.local_of(2);
                (0..busy).for_each(|_| _ = PoolBox::leak(local.alloc(ITEM).unwrap()));
            }
            let bodies = lanes.iter().map(|lane| -> Body<'_> {
                Box::new(|| {
                    lane(&pool, &bank);
                    Ok(())
                })
            });
            together(bodies.collect())?;
            let capacity = pool.capacity();
            let free = capacity - pool.len();
            let all: Vec<_> = (0..free).map(|_| pool.alloc_box(ITEM).unwrap()).collect();
            assert_eq!(pool.capacity(), capacity, "grows while there is room");
            drop(all);
            (0..capacity as u64).for_each(|slot| _ = pool.free(bank.object(slot)));
            assert!(pool.is_empty());
            Ok(())
        });
        must_pass(name, explored);
    }
}
