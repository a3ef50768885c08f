//! Tests every sequence of operations up to a length, on small arenas.

use nbbs::Buddy;
use testkit::program::{Arena, Op, Program, run};

/// Runs every sequence of `length` operations from `alphabet`, on fresh arenas of `units` units.
fn check_all(units: u64, alphabet: &[Op], length: usize) {
    let sequences = alphabet.len().pow(length as u32);
    for sequence in 0..sequences {
        let digits = (0..length).map(|place| sequence / alphabet.len().pow(place as u32));
        let ops = digits.map(|digit| alphabet[digit % alphabet.len()].clone());
        check(&Program::new(units, ops));
    }
}

fn check(program: &Program) {
    let arena = Arena::new(program.units);
    let buddy: Buddy<'_> = arena.buddy();
    if let Err(failure) = run(program, &buddy) {
        panic!("{failure}\nin {program:?}");
    }
}

/// Returns allocations of every order and of one above the largest, and frees of the first three blocks.
fn allocs_and_frees(orders: impl IntoIterator<Item = u32>) -> Vec<Op> {
    let allocs = orders.into_iter().map(|order| Op::Alloc { order });
    allocs.chain((0..3).map(|pick| Op::Free { pick })).collect()
}

#[test]
fn allocations_and_frees_on_arenas_below_a_word() {
    for units in 1..=9_u64 {
        let alphabet = allocs_and_frees(0..=units.ilog2() + 1);
        check_all(units, &alphabet, 5);
    }
}

#[test]
fn reservations_and_bad_frees_on_arenas_below_a_word() {
    for units in 1..=6_u64 {
        let ranges =
            (0..units).flat_map(|start| (start + 1..=units + 1).map(move |end| (start, end)));
        let reserves = ranges.clone().map(|(start, end)| Op::Reserve { start, end });
        let releases = ranges.map(|(start, end)| Op::Release { start, end });
        let frees = (0..=units).map(|index| Op::FreeAt { index });
        let sized = (0..=units).map(|index| Op::FreeSizedAt { index, order: 1 });
        let allocs = [Op::Alloc { order: 0 }, Op::Alloc { order: 1 }];
        let alphabet: Vec<Op> =
            reserves.chain(releases).chain(frees).chain(sized).chain(allocs).collect();
        check_all(units, &alphabet, if units <= 4 { 3 } else { 2 });
    }
}

/// Two leaf words under an inner one; 33 and 65 cut the last short.
#[test]
fn allocations_and_frees_on_arenas_of_two_levels() {
    for units in [32, 33, 47, 64, 65, 96] {
        let alphabet = allocs_and_frees([0, 1, 3, 4, 5, 6]);
        check_all(units, &alphabet, 4);
    }
}

#[test]
fn reservations_on_arenas_of_two_levels() {
    for units in [33, 64, 65] {
        let ranges = [(0, 1), (31, 33), (0, 32), (32, 33), (0, 33), (5, units), (0, units)];
        let reserves = ranges.map(|(start, end)| Op::Reserve { start, end });
        let releases = ranges.map(|(start, end)| Op::Release { start, end });
        let others = [
            Op::Alloc { order: 0 },
            Op::Alloc { order: 4 },
            Op::Alloc { order: 5 },
            Op::FreeAt { index: 0 },
            Op::Free { pick: 0 },
        ];
        let alphabet: Vec<Op> = reserves.into_iter().chain(releases).chain(others).collect();
        check_all(units, &alphabet, 3);
    }
}

/// Three levels, with blocks that fill a unit, a word and a node of words.
#[test]
fn short_sequences_on_arenas_of_three_levels() {
    for units in [512, 513, 545, 1024, 1057] {
        let alphabet = allocs_and_frees([0, 4, 5, 8, 9]);
        check_all(units, &alphabet, 3);
    }
}
