//! Tests threads against each other, with the owner map at every step, at every order and with mixed orders.

use nbbs::sync::Word;
use testkit::program::Arena;
use testkit::steered::Steered;
use testkit::{Load, Oracle, Report, stress};

/// Puts the load on a fresh arena of `units` units; then everything is whole and in order.
fn check<W: Word + Default>(units: u64, load: &Load) -> Report {
    let arena = Arena::<W>::new(units);
    let buddy = arena.buddy();
    let report = stress(&buddy, &Oracle::of(&buddy), load)
        .unwrap_or_else(|violation| panic!("{violation}\nwith {units} units and {load:?}"));
    buddy.audit().unwrap_or_else(|broken| panic!("{broken}\nwith {units} units and {load:?}"));
    report
}

/// Runs on plain words and on words before which threads stall: the latter make two cores look like many.
fn check_both(units: u64, load: &Load) {
    check::<std::sync::atomic::AtomicU64>(units, load);
    let fewer = Load { operations: load.operations / 4, ..load.clone() };
    let report = check::<Steered>(units, &fewer.jitter(40));
    assert!(report.allocations > 0, "{units} units: {report:?} with {load:?}");
}

#[test]
fn every_order_alone() {
    for threads in [1, 2, 3, 4, 8, 16] {
        for order in 0..=11 {
            let operations = 12_000 / threads as u64;
            for occupancy in [50, 100] {
                check_both(
                    1 << 11,
                    &Load::new(threads, operations, order..=order).occupancy(occupancy),
                );
            }
        }
    }
}

#[test]
fn mixed_orders() {
    for threads in [1, 2, 3, 4, 8, 16] {
        for units in [100_u64, 512, 1000, 4096, 8193] {
            let operations = 20_000 / threads as u64;
            for occupancy in [30, 70, 100] {
                let load = Load::new(threads, operations, 0..=units.ilog2() - 1).by_size();
                check_both(units, &load.occupancy(occupancy));
            }
        }
    }
}

/// Exact sizes, resizing, parts, places and batches beside blocks of every order.
#[test]
fn runs_beside_blocks() {
    for threads in [2, 3, 4, 8, 16] {
        for units in [64_u64, 100, 600, 4096, 8193] {
            for (occupancy, runs) in [(30, 30), (70, 90), (100, 60)] {
                let load = Load::new(threads, 12_000 / threads as u64, 0..=units.ilog2() - 1);
                let load = load.by_size().occupancy(occupancy).runs(runs);
                check_both(units, &load);
                let shared = load.seed(2).on_lanes(1);
                assert!(check::<std::sync::atomic::AtomicU64>(units, &shared).run_operations > 0);
            }
        }
    }
}

/// All threads in one word, or in one word of each level.
#[test]
fn arenas_smaller_than_a_word_and_a_little_larger() {
    for units in [1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 65] {
        for threads in [2, 4, 8] {
            check_both(units, &Load::new(threads, 8_000, 0..=units.ilog2()).occupancy(90));
        }
    }
}

/// Blocks of a quarter of the arena and more, so that most allocations meet others on their way.
#[test]
fn few_large_blocks() {
    for units in [96, 512, 1024, 4096] {
        let max = u64::ilog2(units);
        for threads in [2, 3, 8, 16] {
            check_both(units, &Load::new(threads, 4_000, max - 2..=max).occupancy(100));
            let with_small = Load {
                orders: vec![0, 0, 0, 4, 5, max - 1, max],
                ..Load::new(threads, 4_000, 0..=0)
            };
            check_both(units, &with_small.occupancy(60));
        }
    }
}

/// Every allocation splits from the top and every free merges to the top.
#[test]
fn smallest_and_largest_in_turn() {
    for units in [64, 512, 600, 8192] {
        for threads in [2, 3, 4] {
            let max = u64::ilog2(units);
            let load =
                Load { orders: vec![0, max], hand_over: 50, ..Load::new(threads, 6_000, 0..=0) };
            check_both(units, &load.occupancy(1));
        }
    }
}

/// Blocks of the sizes at the borders between levels.
#[test]
fn orders_at_level_borders() {
    for threads in [2, 4] {
        for seed in 0..4 {
            let orders = vec![0, 4, 4, 5, 5, 8, 8, 9, 9, 12];
            let load = Load { orders, ..Load::new(threads, 6_000, 0..=0) };
            check_both(1 << 13, &load.seed(seed));
        }
    }
}

/// Everything is allocated by one half of the threads and freed by the other.
#[test]
fn all_blocks_change_hands() {
    for threads in [2, 4, 16] {
        let load = Load { hand_over: 100, ..Load::new(threads, 20_000, 0..=6) };
        check_both(2000, &load);
        check_both(2000, &load.clone().occupancy(100).seed(2));
    }
}

/// Threads that share a lane read what it remembers while another writes it.
#[test]
fn one_lane_for_several_threads() {
    for (units, orders) in [(1000, 0..=5), (20_000, 0..=9), (20_000, 3..=3), (140_000, 4..=11)] {
        for (threads, lanes) in [(2, 1), (4, 1), (8, 3)] {
            for seed in 0..4 {
                let load = Load::new(threads, 6_000, orders.clone()).on_lanes(lanes).seed(seed);
                let occupancy = [10, 50, 95, 100][seed as usize];
                check_both(units, &load.by_size().occupancy(occupancy));
            }
        }
    }
}
