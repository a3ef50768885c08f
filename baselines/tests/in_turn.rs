//! One operation at a time everything is right, the unsafe ones included: no overlap, no refusal while a
//! block is free, and the memory whole in the end.

use baselines::free_list::{Locked, Tagged, Untagged};
use baselines::linux::{Linux, LinuxMcs, LinuxPcp};
use baselines::paper::{Nb1, Nb4, Sl1, Sl4};
use baselines::workshop::BitmapTree;
use baselines::{BuddySl, Units};
use testkit::{BackEnd, Checked, Violation};

/// Random allocations and frees on several lanes, all over the place: mostly full, then mostly empty.
fn run<B: BackEnd>(allocator: B, seed: u64) -> Result<Vec<Option<u64>>, Violation> {
    let checked = Checked::sequential(allocator);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut held, mut answers) = (Vec::new(), Vec::new());
    for step in 0..4_000 {
        let (grow, lane) = (if step / 500 % 2 == 0 { 0.7 } else { 0.3 }, random.usize(0..5));
        if random.f64() < grow {
            let order = random.u32(0..=checked.max_order()).min(random.u32(0..=12));
            let answer = checked.alloc(lane, order);
            held.extend(answer.map(|index| (index, order)));
            answers.push(answer);
        } else if !held.is_empty() {
            let (index, order) = held.swap_remove(random.usize(..held.len()));
            // A refusal is a violation, which `checked` remembers.
            let _ = checked.free(lane, index, order);
        }
        checked.violation().map_or(Ok(()), Err)?;
    }
    for (index, order) in held {
        let _ = checked.free(0, index, order);
    }
    checked.finish()?;
    Ok(answers)
}

const UNITS: [u64; 13] = [1, 2, 3, 7, 8, 16, 31, 32, 100, 256, 1000, 1 << 12, (1 << 12) + 5];

#[track_caller]
fn check<B: BackEnd>(fresh: impl Fn(u64) -> B) {
    for units in UNITS {
        for seed in 0..4 {
            run(fresh(units), seed)
                .unwrap_or_else(|violation| panic!("{units} units: {violation}"));
        }
    }
}

/// The largest order in the middle of a bunch, at its top, at its bottom, and as large as can be.
#[test]
fn the_paper_with_every_largest_order() {
    for max_order in [0, 1, 3, 4, 5, 8, 11, 40] {
        check(|units| <Nb1>::new(units, max_order));
        check(|units| <Nb4>::new(units, max_order));
        check(|units| <Sl1>::new(units, max_order));
        check(|units| <Sl4>::new(units, max_order));
    }
}

/// Where the status is kept changes nothing about what is found.
#[test]
fn one_level_and_four_answer_alike() {
    for (units, seed) in UNITS.into_iter().zip(0..) {
        for max_order in [2, 5, 40] {
            let one = run(<Nb1>::new(units, max_order), seed).unwrap();
            let four = run(<Nb4>::new(units, max_order), seed).unwrap();
            assert_eq!(one, four, "{units} units, max_order {max_order}");
        }
    }
}

#[test]
fn the_array_tree() {
    check(BuddySl::new);
}

#[test]
fn the_pools() {
    check(|slots| Units(<Untagged>::new(slots)));
    check(|slots| Units(<Tagged>::new(slots)));
    check(|slots| Units(<Locked>::new(slots)));
}

#[test]
fn wrong_frees_that_can_be_told_are_refused() {
    fn refuses<B: BackEnd>(allocator: &B) {
        let block = allocator.alloc(0, 2).unwrap();
        for (index, order) in [(block, 1), (block + 1, 0), (64, 0), (u64::MAX, 2), (block, 63)] {
            assert!(allocator.free(0, index, order).is_err(), "{index}, {order}");
        }
        assert_eq!(allocator.alloc(0, 7), None);
        assert_eq!(allocator.free(0, block, 2), Ok(()));
        assert!(allocator.alloc(0, 6).is_some());
    }
    refuses(&<Nb1>::new(64, 40));
    refuses(&<Nb4>::new(64, 40));
    refuses(&BuddySl::new(64));
    let tree = BuddySl::new(64);
    assert!(tree.free(0, 0, 0).is_err());
    let block = tree.alloc(0, 0).unwrap();
    assert_eq!([tree.free(0, block, 0).is_ok(), tree.free(0, block, 0).is_ok()], [true, false]);
}

/// Who waits for a lock takes no cache line from those who read the arena's size beside it.
#[test]
fn locks_have_cache_lines_of_their_own() {
    fn has_some<B: BackEnd>() {
        assert_eq!(align_of::<B>(), 128, "{}", std::any::type_name::<B>());
    }
    has_some::<Linux>();
    has_some::<LinuxMcs>();
    has_some::<LinuxPcp>();
    has_some::<BuddySl>();
    has_some::<Sl1>();
    has_some::<Sl4>();
    has_some::<BitmapTree>();
}
