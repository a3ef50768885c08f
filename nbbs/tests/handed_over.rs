//! Tests blocks that are freed by another lane than the one that allocated them: what that costs, and that nothing is
//! kept.

use std::collections::{BTreeSet, VecDeque};

use nbbs::{Buddy, MetadataError, lane_words};
use testkit::counting::{Counted, count};
use testkit::program::Arena;
use testkit::{Block, Oracle, check_whole};

const UNITS: u64 = 1 << 18;

/// Each of `lanes` allocates a block in turn and frees the one that the lane before it allocated `held` turns ago.
/// Returns the compare-and-swaps of a pair in the second thousand of turns.
fn ring(buddy: &Buddy<'_, Counted>, lanes: usize, held: usize, order: u32) -> f64 {
    const TURNS: usize = 1000;
    let mut queues = vec![VecDeque::new(); lanes];
    let mut turns = || {
        for lane in (0..TURNS).flat_map(|_| 0..lanes) {
            queues[lane].push_back(buddy.on(lane).alloc(order).unwrap());
            let before = &mut queues[(lane + lanes - 1) % lanes];
            if before.len() > held {
                buddy.on(lane).free_sized(before.pop_front().unwrap(), order).unwrap();
            }
        }
    };
    turns();
    let (_, counts) = count(turns);
    for block in queues.into_iter().flatten() {
        buddy.on(0).free_sized(block, order).unwrap();
    }
    counts.swaps as f64 / (TURNS * lanes) as f64
}

#[test]
fn a_pair_takes_at_most_one_swap_more_than_on_one_lane() {
    for (lanes, held) in
        [2, 5, 16].into_iter().flat_map(|lanes| [0, 1, 8, 30].map(|held| (lanes, held)))
    {
        for order in [0, 3, 5, 9] {
            let arena = Arena::<Counted>::new(UNITS);
            let buddy = arena.buddy();
            let swaps = ring(&buddy, lanes, held, order);
            let case = format!("{lanes} lanes, {held} held, order {order}");
            assert!(swaps <= 3.2, "{swaps} compare-and-swaps a pair: {case}");
            // What stayed split for its lane is merged when another lane needs it.
            assert_eq!(buddy.on(lanes).alloc(18), Ok(0), "{case}");
            buddy.on(0).free(0).unwrap();
            buddy.audit().unwrap();
        }
    }
}

/// Lane 0 allocates, and lane 1 frees what it allocated `held` blocks ago. Returns the compare-and-swaps of a pair, and
/// the number of leaf words in which blocks were.
fn produced(buddy: &Buddy<'_, Counted>, held: usize, order: u32) -> (f64, usize) {
    const PAIRS: usize = 10_000;
    let (mut queue, mut words) = (VecDeque::new(), BTreeSet::new());
    let (_, counts) = count(|| {
        for _ in 0..PAIRS {
            let block = buddy.on(0).alloc(order).unwrap();
            words.insert(block / 32);
            queue.push_back(block);
            if queue.len() > held {
                buddy.on(1).free_sized(queue.pop_front().unwrap(), order).unwrap();
            }
        }
    });
    for block in queue {
        buddy.on(1).free_sized(block, order).unwrap();
    }
    (counts.swaps as f64 / PAIRS as f64, words.len())
}

/// A claim fails once when who frees has followed who allocates to its word, and not for each block.
#[test]
fn who_allocates_goes_ahead_of_who_frees() {
    for (held, order) in [4, 6, 8].into_iter().flat_map(|held| [0, 1].map(|order| (held, order))) {
        let arena = Arena::<Counted>::new(UNITS);
        let buddy = arena.buddy();
        let (swaps, words) = produced(&buddy, held, order);
        let case = format!("{held} held, order {order}");
        assert!(swaps <= 2.5, "{swaps} compare-and-swaps a pair: {case}");
        assert_eq!(words, 2, "{case}");
        assert_eq!(buddy.on(2).alloc(18), Ok(0), "{case}");
        buddy.audit().unwrap();
    }
}

/// To go costs more than it saves if little is on the way, or if the word across may be another lane's whole frame.
#[test]
fn who_allocates_stays_where_little_is_freed_and_with_large_blocks() {
    for (held, order, most) in [(0, 0, 1), (1, 0, 1), (2, 0, 1), (2, 1, 1), (6, 5, 7), (8, 5, 9)] {
        let arena = Arena::<Counted>::new(UNITS);
        let (_, words) = produced(&arena.buddy(), held, order);
        assert!(words <= most, "{words} words: {held} held, order {order}");
    }
}

/// The caller's lanes work like those in the metadata, beside them and beside each other.
#[test]
fn lanes_may_be_the_callers() {
    const LANES: usize = 64;
    let arena = Arena::<Counted>::new(UNITS);
    // Their previous contents do not matter.
    let words: Vec<Counted> =
        (0..lane_words(LANES) as u64).map(|word| Counted::from(word << 13)).collect();
    let (few, many) = (arena.buddy(), arena.buddy().with_lanes(&words).unwrap());
    let oracle = Oracle::new(UNITS);
    let take =
        |buddy: &Buddy<'_, Counted>, lane| oracle.take(lane, buddy.on(lane).alloc(0).unwrap(), 0);
    let blocks: Vec<Block> = (0..LANES).map(|lane| take(&many, lane).unwrap()).collect();
    let mut leaves: Vec<u64> = blocks.iter().map(|block| block.index / 32).collect();
    leaves.sort_unstable();
    leaves.dedup();
    assert_eq!(leaves.len(), LANES, "each lane begins in a word of its own");
    let more: Vec<Block> = (0..LANES).map(|lane| take(&few, lane).unwrap()).collect();
    for block in blocks.into_iter().chain(more) {
        oracle.give(block).unwrap();
        many.on(1).free(block.index).unwrap();
    }
    check_whole(&few, &oracle).unwrap();
}

#[test]
fn too_few_words_are_no_lane() {
    let arena = Arena::<Counted>::new(64);
    let words: Vec<Counted> = (0..lane_words(1)).map(|_| Counted::default()).collect();
    let refused = arena.buddy().with_lanes(&words[1..]).unwrap_err();
    assert_eq!(refused, MetadataError::LanesTooShort { words: 31, needed: 32 });
    assert!(arena.buddy().with_lanes(&words).is_ok());
    assert!(arena.buddy().with_lanes(&[]).is_ok());
}
