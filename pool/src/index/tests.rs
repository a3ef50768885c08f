//! Chunks that find their bucket full, and callers that list, strike out, look up and die beside each other.

use super::{Bucket, ENTRIES, Index, Stretch, buckets};
use crate::sync::{AtomicU64, Ordering, Word};
use std::vec::Vec;

// The words of checkers, as the tests of pools have them.
#[cfg(all(not(miri), target_pointer_width = "64"))]
#[path = "../../tests/loom/words.rs"]
mod loom_words;
#[cfg(all(not(miri), target_pointer_width = "64"))]
#[path = "../../tests/support/steps.rs"]
mod steps;

/// The index of a segment.
struct Whole<W>(Vec<Bucket<W>>);

impl<W: Word> Whole<W> {
    fn new(chunks: usize) -> Self {
        Self((0..buckets(chunks)).map(|_| Bucket::new()).collect())
    }

    fn index(&self) -> Index<'_, W> {
        Index { buckets: &self.0 }
    }

    fn finds(&self, place: usize, stretch: Stretch) -> bool {
        self.index().find(stretch, |at| (at == place).then_some(())).is_some()
    }

    /// Returns, for each bucket, how many chunks are listed, and how many have passed.
    fn counts(&self) -> Vec<(usize, u64)> {
        let load = |word: &W| word.load(Ordering::Relaxed);
        let of = |bucket: &Bucket<W>| {
            let listed = bucket.entries.iter().filter(|&entry| load(entry) != 0).count();
            (listed, load(&bucket.passed))
        };
        self.0.iter().map(of).collect()
    }

    fn is_empty(&self) -> bool {
        self.counts().iter().all(|&counts| counts == (0, 0))
    }
}

/// Returns a stretch whose chunks ask the last bucket first.
fn last(tag: usize) -> Stretch {
    Stretch { tag: 1 << 31 | tag as u32, hash: u32::MAX }
}

#[test]
fn what_is_listed_is_found() {
    let whole = Whole::<AtomicU64>::new(16);
    let bytes = 3000;
    let begin = |place: usize| 0x10_0000 + place * 5000;
    let found = |place, offset| {
        let stretches = Stretch::around(begin(place) + offset, bytes);
        stretches.into_iter().any(|stretch| whole.finds(place, stretch))
    };
    (0..16).for_each(|place| whole.index().enlist(place, Stretch::of(begin(place), bytes)));
    for place in 0..16 {
        assert!(found(place, 0) && found(place, 1) && found(place, bytes - 1));
        whole.index().strike(place, Stretch::of(begin(place), bytes));
        assert!(!found(place, 0));
    }
    assert!(whole.is_empty());
}

/// A chunk that begins in one stretch is found by an address in the next, and by none further.
#[test]
fn a_chunk_may_begin_anywhere_in_its_stretch() {
    let whole = Whole::<AtomicU64>::new(32);
    for bytes in [1_usize, 32, 1 << 12, (1 << 12) + 1] {
        let stretch = bytes.next_power_of_two();
        let places = if cfg!(miri) { 3 } else { 16 };
        for begin in (0..stretch).step_by(stretch.div_ceil(places)).map(|at| 100 * stretch + at) {
            whole.index().enlist(5, Stretch::of(begin, bytes));
            let found = |address| {
                Stretch::around(address, bytes).into_iter().any(|stretch| whole.finds(5, stretch))
            };
            assert!(found(begin) && found(begin + bytes - 1), "{bytes} from {begin}");
            assert!(!(2..40).any(|n| found(begin + n * stretch)), "{bytes} from {begin}");
            whole.index().strike(5, Stretch::of(begin, bytes));
        }
    }
    assert!(whole.is_empty());
}

/// The way goes from the last bucket to the first. What is struck out makes room where it was.
#[test]
fn a_full_bucket_is_passed_and_counts_who_did() {
    let whole = Whole::<AtomicU64>::new(16);
    let list = |place| whole.index().enlist(place, last(place));
    let strike = |place| whole.index().strike(place, last(place));
    (0..16).for_each(list);
    assert_eq!(whole.counts(), [(ENTRIES, 2), (2, 0), (0, 0), (ENTRIES, 9)]);
    // In the last bucket, in the first, and in the second.
    for (place, first, second, last_one) in [
        (3, (ENTRIES, 2), (2, 0), (ENTRIES - 1, 9)),
        (9, (ENTRIES - 1, 2), (2, 0), (ENTRIES, 8)),
        (15, (ENTRIES, 1), (1, 0), (ENTRIES, 8)),
    ] {
        strike(place);
        assert_eq!(whole.counts(), [first, second, (0, 0), last_one]);
        (0..16).for_each(|at| assert_eq!(whole.finds(at, last(at)), at != place));
        list(place);
        assert_eq!(whole.counts(), [(ENTRIES, 2), (2, 0), (0, 0), (ENTRIES, 9)]);
    }
    // Those that passed a bucket are found although it has room now, and one that is new takes that.
    (0..ENTRIES).for_each(strike);
    assert_eq!(whole.counts(), [(ENTRIES, 2), (2, 0), (0, 0), (0, 9)]);
    (ENTRIES..16).for_each(|place| assert!(whole.finds(place, last(place))));
    list(0);
    assert_eq!(whole.counts(), [(ENTRIES, 2), (2, 0), (0, 0), (1, 9)]);
    strike(0);
    (ENTRIES..16).for_each(strike);
    assert!(whole.is_empty());
}

/// Chunks at equal distances, whatever the distance, are spread over the buckets.
#[test]
fn no_distance_leads_to_a_long_way() {
    let near = if cfg!(miri) { 1..4 } else { 1..1200 };
    let far = (8..24).map(|bits| 1 << bits).chain([10_946, 17_711, 28_657, 46_368]);
    for distance in near.chain(far) {
        let whole = Whole::<AtomicU64>::new(256);
        let begins = (0..256).map(|place| 0x7f12_3456_usize.wrapping_add(place * distance));
        begins.enumerate().for_each(|(at, begin)| whole.index().enlist(at, Stretch::of(begin, 1)));
        let counts = whole.counts();
        let ways = counts.split(|&(_, passed)| passed == 0).map(|passed| passed.len() + 1);
        let longest = ways.max().unwrap();
        assert!(longest < 16, "distance {distance}: {longest} buckets");
    }
}

/// Checkers' words.
#[cfg(all(not(miri), target_pointer_width = "64"))]
mod races {
    use super::loom_words::Loom;
    use super::steps::Stepped;
    use super::{ENTRIES, Ordering, Whole, Word, last};
    use std::boxed::Box;
    use std::sync::Arc;
    use testkit::program::Body;
    use testkit::steered::{all_schedules, die_before};

    impl<W: Word> Whole<W> {
        /// Creates an index in which the last bucket is full, and this many chunks have passed it.
        fn full(passed: usize) -> Self {
            let whole = Self::new(16);
            (0..ENTRIES + passed).for_each(|place| whole.index().enlist(place, last(place)));
            whole
        }

        /// Lists a chunk, looks for it as the holder of an object does, and strikes it out.
        fn come_and_go(&self, place: usize) {
            self.index().enlist(place, last(place));
            assert!(self.finds(place, last(place)), "chunk {place} is not found");
            self.index().strike(place, last(place));
        }
    }

    fn body<'a>(act: impl FnOnce() + Send + 'a) -> Body<'a> {
        Box::new(|| {
            act();
            Ok(())
        })
    }

    /// A chunk that has passed the full bucket is found all the time while others come and go in both, and so are they.
    #[test]
    fn a_chunk_is_found_while_others_come_and_go() {
        let (passed, come) = (ENTRIES, ENTRIES + 1);
        let explored = all_schedules(2, |together| {
            let whole = Whole::<Stepped>::full(1);
            together(vec_of([
                body(|| whole.come_and_go(come)),
                body(|| {
                    whole.index().strike(0, last(0));
                    whole.come_and_go(0);
                }),
                body(|| (0..3).for_each(|_| assert!(whole.finds(passed, last(passed))))),
            ]))?;
            (1..=passed).for_each(|place| assert!(whole.finds(place, last(place))));
            assert_eq!(whole.counts(), [(1, 0), (0, 0), (0, 0), (ENTRIES - 1, 1)]);
            Ok(())
        });
        let schedules = explored.unwrap_or_else(|culprit| panic!("{culprit}"));
        assert!(schedules > 1000, "{schedules} schedules are no race");
    }

    fn vec_of<const N: usize>(bodies: [Body<'_>; N]) -> std::vec::Vec<Body<'_>> {
        bodies.into()
    }

    /// A caller that dies half way hides nobody else's chunk, and costs others one bucket more at most.
    #[test]
    fn a_death_hides_no_chunk() {
        let mut deaths = 0;
        for step in 0.. {
            let whole = Whole::<Stepped>::full(2);
            let dies = ENTRIES + 1;
            let survived = die_before(step, || {
                whole.index().strike(dies, last(dies));
                whole.index().enlist(dies, last(dies));
            });
            whole.come_and_go(15);
            (0..dies).for_each(|place| assert!(whole.finds(place, last(place)), "{step}"));
            let [first, .., (_, passed)] = whole.counts()[..] else { unreachable!() };
            assert!((1..=2).contains(&first.0) && first.1 == 0, "{step}: {first:?}");
            assert!((1..=2).contains(&passed), "{step}: {passed}");
            deaths += 1;
            if survived.is_some() {
                assert_eq!((first, passed), ((2, 0), 2));
                break;
            }
        }
        assert!(deaths > 10, "{deaths} steps");
    }

    /// Whoever learns of a chunk from the caller that listed it finds it, with relaxed counts, while another goes.
    #[test]
    fn a_chunk_is_found_by_whom_its_lister_told() {
        testkit_loom::model(2, || {
            let whole = Arc::new(Whole::<Loom>::full(1));
            let told = Arc::new(Loom::new(0));
            let (passed, come) = (ENTRIES, ENTRIES + 1);
            let (other, tell) = (Arc::clone(&whole), Arc::clone(&told));
            let lister = loom::thread::spawn(move || {
                other.index().enlist(come, last(come));
                // Release pairs with the Acquire below, as a slot's bit does.
                tell.store(1, Ordering::Release);
            });
            let goes = Arc::clone(&whole);
            let goer = loom::thread::spawn(move || goes.index().strike(passed, last(passed)));
            if told.load(Ordering::Acquire) == 1 {
                assert!(whole.finds(come, last(come)), "not found");
            }
            lister.join().unwrap();
            goer.join().unwrap();
            assert_eq!(whole.counts(), [(1, 0), (0, 0), (0, 0), (ENTRIES, 1)]);
        });
    }
}
