//! Attaching refuses words that an arena of this size never writes, and no others.

use std::sync::atomic::Ordering;

use nbbs::{Buddy, MetadataError, metadata_words};
use testkit::program::Arena;

use crate::tree::{Tree, slot_units, slots_of};

/// Returns the places of the words that pad a level; from level 2 on, each word has a cache line of its own.
fn padding(tree: &Tree, level: usize) -> std::ops::Range<usize> {
    let own = if level < 2 { 1 } else { 8 };
    let end = tree.places[level].last().unwrap() + own;
    let next = tree.places.get(level + 1).map_or(metadata_words(tree.units), |next| next[0]);
    end..next
}

/// Returns the bits of a level's last word that lie beyond the arena.
fn beyond(tree: &Tree, level: usize) -> u64 {
    let covered = tree.units.div_ceil(slot_units(level));
    let before = (tree.places[level].len() as u64 - 1) * u64::from(slots_of(level));
    let codes = if level == 0 { u64::MAX } else { u64::MAX >> 32 };
    codes & u64::MAX.checked_shl(2 * (covered - before) as u32).unwrap_or(0)
}

/// Every bit of every word.
#[test]
fn a_stray_bit_is_refused_where_it_can_be_told() {
    for units in [1, 8, 20, 31, 32, 33, 64, 100, 512, 545, 600, 1057] {
        let tree = Tree::of(units);
        let arena: Arena = Arena::new(units);
        let levels = 0..tree.places.len();
        let mut foreign = vec![0; arena.words().len()];
        for level in levels.clone() {
            foreign[padding(&tree, level)].fill(u64::MAX);
            foreign[*tree.places[level].last().unwrap()] = beyond(&tree, level);
        }
        assert!(levels.into_iter().all(|level| padding(&tree, level).len() >= 8));
        for (place, word) in arena.words().iter().enumerate() {
            for bit in 0..64 {
                word.store(1 << bit, Ordering::Relaxed);
                let refused = MetadataError::Foreign { units, word: place };
                let is_foreign = foreign[place] >> bit & 1 == 1;
                let expected = if is_foreign { Err(refused) } else { Ok(units) };
                let attached = Buddy::attach(arena.words(), units).map(|buddy| buddy.units());
                assert_eq!(attached, expected, "bit {bit} of word {place}, {units} units");
            }
            word.store(0, Ordering::Relaxed);
        }
    }
}

/// Whatever an arena does, another handle to it can be made.
#[test]
fn an_arena_in_use_is_never_foreign() {
    for units in [1, 20, 33, 545, 600, 8193] {
        let arena: Arena = Arena::new(units);
        let buddy = arena.buddy();
        for order in (0..=buddy.max_order()).rev() {
            let blocks: Vec<u64> =
                (0..70).filter_map(|lane| buddy.on(lane).alloc(order).ok()).collect();
            assert!(Buddy::attach(arena.words(), units).is_ok());
            blocks.into_iter().for_each(|block| _ = buddy.on(block as usize).free(block).unwrap());
            assert!(Buddy::attach(arena.words(), units).is_ok());
        }
        buddy.reserve(0..units).unwrap();
        assert!(Buddy::attach(arena.words(), units).is_ok());
    }
}
