//! How much of an arena a program reaches that holds little of it, however long it runs: memory that is backed only once
//! it is used stays small.

use fastrand::Rng;
use nbbs::{MetadataBox, Request};

const UNITS: u64 = 1 << 22;
const HELD: usize = 100;
const STEPS: usize = 40_000;

/// Replaces random ones of [`HELD`] runs by such of lengths that `draw` returns. Returns the most units that it held, and
/// the end of the last unit that it reached.
fn reached(draw: impl Fn(&mut Rng) -> u64) -> (u64, u64) {
    let metadata = MetadataBox::new(UNITS).unwrap();
    let buddy = metadata.arena().unwrap();
    let (lane, mut random) = (buddy.on(0), Rng::with_seed(7));
    let mut held: Vec<(u64, u64)> = Vec::new();
    let (mut units, mut most, mut end) = (0, 0, 0);
    for _ in 0..STEPS {
        if held.len() == HELD {
            let (run, length) = held.swap_remove(random.usize(..HELD));
            assert_eq!(lane.free(run), Ok(length));
            units -= length;
        }
        let length = draw(&mut random);
        let run = lane.alloc_units(length).unwrap();
        held.push((run, length));
        units += length;
        most = most.max(units);
        end = end.max(run + length);
    }
    (most, end)
}

#[track_caller]
fn assert_small((most, end): (u64, u64)) {
    assert!(end < 3 * most, "reached {end} units, and held {most}");
}

#[test]
fn runs_of_a_few_units() {
    assert_small(reached(|random| random.u64(3..32)));
}

#[test]
fn runs_across_words() {
    assert_small(reached(|random| random.u64(33..400)));
}

#[test]
fn runs_of_many_sizes() {
    assert_small(reached(|random| {
        let most = 1 << random.u32(1..13);
        random.u64(1..=most)
    }));
}

#[test]
fn blocks_of_a_few_units() {
    assert_small(reached(|random| 1 << random.u32(0..5)));
}

#[test]
fn blocks_of_several_levels() {
    assert_small(reached(|random| 1 << random.u32(0..15)));
}

/// Aligned runs lie side by side, whatever unit 0 stands for.
#[test]
fn aligned_runs() {
    let metadata = MetadataBox::new(UNITS).unwrap();
    for (units, order, offset) in [(1, 10, 513), (40, 6, 30), (40, 3, 5), (1, 3, 0), (1100, 10, 7)]
    {
        let buddy = metadata.arena().unwrap();
        let request = Request::units(units).aligned(order).offset(offset);
        let runs: Vec<_> =
            (0..100).map(|_| buddy.on(0).request(request.clone()).unwrap()).collect();
        let least = 100 * units.next_multiple_of(1 << order);
        let end = runs.iter().max().unwrap() + units;
        assert!(end < least + least / 10, "100 of {request:?} reach {end}, and could {least}");
        runs.iter().for_each(|&run| assert_eq!(buddy.on(0).free(run), Ok(units)));
    }
}
