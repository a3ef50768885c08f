//! Tests every contender, of any origin, under the oracle.

use nbbs_bench::market::{CONTENDERS, Contender, POOLS, find};
use testkit::{BackEnd, Checked, Load, Oracle, Violation, stress};

/// Geometries: one unit, powers of two, odd sizes, several of the largest blocks.
const UNITS: [u64; 8] = [1, 2, 33, 64, 1000, 1 << 10, (1 << 12) + 5, 1 << 14];

fn for_each_safe(check: impl Fn(&Contender, &dyn BackEnd)) {
    for contender in CONTENDERS.iter().filter(|contender| contender.safe) {
        for units in UNITS.into_iter().filter(|&units| units <= contender.max_units) {
            contender.with_back_end(units, |allocator| check(contender, allocator));
        }
    }
}

/// Makes random allocations and frees, one at a time: more allocations until the arena is full, then more frees until
/// it is empty.
fn run_in_turn(allocator: &dyn BackEnd, seed: u64) -> Result<(), Violation> {
    let checked = Checked::sequential(allocator);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut held = Vec::new();
    for step in 0..20_000 {
        let (grow, lane) = (if step / 2_000 % 2 == 0 { 0.6 } else { 0.4 }, random.usize(0..5));
        if random.f64() < grow {
            let order = random.u32(0..=allocator.max_order()).min(random.u32(0..=20));
            held.extend(checked.alloc(lane, order).map(|index| (index, order)));
        } else if !held.is_empty() {
            let (index, order) = held.swap_remove(random.usize(..held.len()));
            // A refused free is a violation, and `checked` remembers it.
            let _ = checked.free(lane, index, order);
        }
    }
    for (index, order) in held {
        let _ = checked.free(0, index, order);
    }
    checked.finish()
}

#[test]
fn the_safe_ones_are_right_in_turn() {
    for_each_safe(|contender, allocator| {
        for seed in 0..3 {
            let result = run_in_turn(allocator, seed);
            assert_eq!(result, Ok(()), "{} on {} units", contender.name, allocator.units());
        }
    });
}

#[test]
fn the_safe_ones_are_right_on_many_threads() {
    for_each_safe(|contender, allocator| {
        for threads in [2, 4, 8] {
            let load = Load::new(threads, 5_000, 0..=allocator.max_order().min(6)).by_size();
            let result = stress(&allocator, &Oracle::of(allocator), &load);
            assert!(result.is_ok(), "{}, {} units: {result:?}", contender.name, allocator.units());
        }
    });
}

#[test]
fn each_says_what_it_costs_and_what_it_serves() {
    for_each_safe(|_, allocator| {
        assert!(allocator.metadata_bytes() > 0);
        assert!(allocator.max_order() <= allocator.units().ilog2());
    });
}

#[test]
fn names_are_unique() {
    for contender in CONTENDERS {
        assert!(std::ptr::eq(find(contender.name).unwrap(), contender));
    }
    assert!(find("").is_none());
}

/// With one operation at a time the unsafe contenders are right, too.
#[test]
fn all_are_right_in_turn() {
    for contender in CONTENDERS.iter().chain(POOLS) {
        contender.with_back_end(5000, |allocator| {
            run_in_turn(allocator, 1)
                .unwrap_or_else(|violation| panic!("{}: {violation}", contender.name));
        });
    }
}

#[test]
fn the_safe_pools_on_many_threads() {
    for pool in POOLS.iter().filter(|pool| pool.safe) {
        pool.with_back_end(64, |slots| {
            let result = stress(&slots, &Oracle::of(slots), &Load::new(4, 50_000, 0..=0));
            assert!(result.is_ok(), "{}: {result:?}", pool.name);
        });
    }
}

/// Users see the flag, and the word in the description and the label.
#[test]
fn the_unsafe_ones_say_so() {
    let contenders = || CONTENDERS.iter().chain(POOLS);
    let is_unsafe = |contender: &&Contender| !contender.safe;
    let names: Vec<&str> =
        contenders().filter(is_unsafe).map(|unsafe_one| unsafe_one.name).collect();
    assert_eq!(names, ["nb1", "nb4", "freelist-untagged"]);
    for contender in contenders() {
        assert_eq!(contender.source.contains("UNSAFE"), !contender.safe, "{}", contender.name);
        assert_eq!(contender.label().contains("UNSAFE"), !contender.safe, "{}", contender.name);
    }
}
