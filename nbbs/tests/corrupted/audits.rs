//! The audit names a breach if and only if there is one.

use std::sync::atomic::Ordering;

use nbbs::{Buddy, Request};
use testkit::program::Arena;

use crate::tree::{
    FREE, HEAD, MARK, REST, SPLIT, Tree, slot_units, slots_of, with_bound, with_code,
};

/// One level, a cut word, two levels, a cut slot, and three levels.
const ARENAS: [u64; 6] = [8, 20, 64, 100, 545, 600];

/// Brings an arena into one of the states that matter to an audit.
fn states(buddy: &Buddy<'_>, number: usize) -> bool {
    let units = buddy.units();
    let last = units - 1;
    match number {
        0 => {}
        // Blocks of every order, as far as they fit.
        1 => (0..=buddy.max_order()).rev().for_each(|order| _ = buddy.on(0).alloc(order)),
        // A run that begins in the middle of a word and ends in the middle of another, and a reservation.
        2 => {
            _ = buddy.here().alloc_at(units / 5, units / 2);
            _ = buddy.reserve(last - 2..units);
        }
        // Whole words, and the beginning of one.
        3 => _ = buddy.here().alloc_units(units * 3 / 4),
        // Written in smaller slots, and cut.
        4 => {
            let block = buddy.alloc(buddy.max_order()).unwrap();
            _ = buddy.here().shrink(block, (1 << buddy.max_order()) - 5);
            _ = buddy.here().split_off(block, 3);
        }
        // The lane's own word stays split when it empties.
        5 => {
            let blocks: Vec<u64> = (0..40).filter_map(|_| buddy.on(0).alloc(0).ok()).collect();
            blocks.into_iter().for_each(|block| _ = buddy.on(0).free(block));
            _ = buddy.here().request(Request::units(1).top_down());
        }
        // Everything is in use, by units, and all at once.
        6 => while buddy.alloc(0).is_ok() {},
        7 => _ = buddy.reserve(0..units),
        _ => return false,
    }
    true
}

/// Calls `visit` for each state of each arena, with its tree.
fn each(visit: impl Fn(&Tree, &Arena, &Buddy<'_>)) {
    for units in ARENAS {
        let tree = Tree::of(units);
        for number in 0.. {
            let arena = Arena::new(units);
            let buddy = arena.buddy();
            if !states(&buddy, number) {
                break;
            }
            judge(&tree, &arena, &buddy);
            visit(&tree, &arena, &buddy);
        }
    }
}

/// Compares the audit's answer with everything that there is to find.
#[track_caller]
fn judge(tree: &Tree, arena: &Arena, buddy: &Buddy<'_>) -> bool {
    let (content, answer) = (tree.read(arena), buddy.audit());
    let breaches = content.breaches();
    match answer {
        Ok(audit) => {
            assert_eq!(breaches, [], "in order, says the audit");
            assert_eq!(audit.words, tree.words().count() as u64);
            assert_eq!(audit.waiting_merges, content.waiting_merges(tree.places.len() - 1, 0));
        }
        Err(broken) => {
            let named = (broken.invariant, broken.level, broken.word, broken.slot);
            assert!(breaches.contains(&named), "{broken}, but there are {breaches:?}");
            let first = broken.word * u64::from(slots_of(broken.level)) + u64::from(broken.slot);
            assert_eq!(broken.unit, first * slot_units(broken.level));
        }
    }
    answer.is_ok()
}

#[test]
fn every_code_in_every_slot() {
    each(|tree, arena, buddy| {
        for (level, _, place) in tree.words() {
            let word = &arena.words()[place];
            let before = word.load(Ordering::Relaxed);
            for slot in 0..slots_of(level) {
                for code in [FREE, SPLIT, REST, HEAD] {
                    word.store(with_code(before, slot, code), Ordering::Relaxed);
                    judge(tree, arena, buddy);
                }
            }
            word.store(before, Ordering::Relaxed);
        }
    });
}

/// Every bound from the lowest valid one on is valid, and none below it.
#[test]
fn every_bound_of_every_word() {
    each(|tree, arena, buddy| {
        for (_, _, place) in tree.words().filter(|&(level, ..)| level > 0) {
            let word = &arena.words()[place];
            let before = word.load(Ordering::Relaxed);
            let mut in_order = (0..64).map(|bound| {
                word.store(with_bound(before, bound), Ordering::Relaxed);
                judge(tree, arena, buddy)
            });
            assert!(in_order.any(|good| good), "not even unsettled is in order");
            assert!(in_order.all(|good| good), "a higher bound is not");
            word.store(before, Ordering::Relaxed);
        }
    });
}

#[test]
fn every_mark_is_counted() {
    each(|tree, arena, buddy| {
        let inner = tree.words().filter(|&(level, ..)| level > 0);
        for ((.., place), count) in inner.zip(1..) {
            let word = &arena.words()[place];
            word.store(word.load(Ordering::Relaxed) | MARK, Ordering::Relaxed);
            assert_eq!(buddy.audit().unwrap().stale_marks, count);
        }
    });
}

/// Several words at once, of any content.
#[test]
fn words_of_any_content() {
    each(|tree, arena, buddy| {
        let mut random = fastrand::Rng::with_seed(tree.units);
        let words: Vec<_> = tree.words().collect();
        let before: Vec<u64> =
            arena.words().iter().map(|word| word.load(Ordering::Relaxed)).collect();
        for _ in 0..200 {
            for _ in 0..random.usize(1..4) {
                let (level, _, place) = words[random.usize(..words.len())];
                let word = &arena.words()[place];
                let mut value = word.load(Ordering::Relaxed);
                for _ in 0..random.usize(1..6) {
                    value = with_code(value, random.u32(..slots_of(level)), random.u64(..4));
                }
                word.store(value, Ordering::Relaxed);
            }
            judge(tree, arena, buddy);
            for (word, &before) in arena.words().iter().zip(&before) {
                word.store(before, Ordering::Relaxed);
            }
        }
    });
}
