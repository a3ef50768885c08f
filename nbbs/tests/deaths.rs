//! A thread that dies, or stalls for good, at any step of any operation: nobody else waits, nothing is
//! handed out twice, and at most the block in question is lost.

use nbbs::Buddy;
use testkit::program::Arena;
use testkit::steered::{Steered, die_before};
use testkit::{Block, Oracle};

const UNITS: [u64; 6] = [8, 33, 64, 100, 600, 1024];

/// Lets `act` die before each of its steps in turn, on an arena with some blocks in use, and lets the
/// others go on.
fn die_everywhere(
    prepare: impl Fn(&Buddy<'_, Steered>) -> Option<Block>,
    act: impl Fn(&Buddy<'_, Steered>, Option<Block>),
    lost: impl Fn(u64) -> u64,
) {
    for units in UNITS {
        for taken in [&[][..], &[0], &[0, 3], &[4, 0, 2]] {
            for step in 0.. {
                let arena = Arena::<Steered>::new(units);
                let buddy = arena.buddy();
                let oracle = Oracle::new(units);
                let held = taken.iter().filter_map(|&order| {
                    let index = buddy.alloc_on(1, order).ok()?;
                    Some(oracle.take(1, index, order).unwrap())
                });
                let held: Vec<Block> = held.collect();
                let block = prepare(&buddy);
                let survived = die_before(step, || act(&buddy, block)).is_some();
                if survived {
                    buddy.audit().unwrap();
                    break;
                }
                go_on(&buddy, &oracle, held, block, lost(units), step);
            }
        }
    }
}

/// What the survivors do: they free what they hold, then take all that is left at every order.
fn go_on(
    buddy: &Buddy<'_, Steered>,
    oracle: &Oracle,
    held: Vec<Block>,
    in_question: Option<Block>,
    lost: u64,
    step: u64,
) {
    for block in held {
        oracle.give(block).unwrap();
        assert_eq!(buddy.free_on(2, block.index), Ok(block.order), "died before step {step}");
    }
    let units = buddy.units();
    for order in (0..=buddy.max_order()).rev() {
        let mut blocks = Vec::new();
        while let Ok(index) = buddy.alloc_on(3, order) {
            blocks.push(oracle.take(3, index, order).unwrap());
        }
        let got = (blocks.len() as u64) << order;
        // The lost units lie side by side, aligned: they spoil as many blocks as they touch.
        let spoilt = lost.next_multiple_of(1 << order);
        assert!(
            got + spoilt >= units >> order << order,
            "died before step {step} with {in_question:?}: {got} of {units} units left at order {order}"
        );
        for block in blocks {
            oracle.give(block).unwrap();
            buddy.free_sized_on(4, block.index, order).unwrap();
        }
    }
    let stats = buddy.stats();
    assert!(stats.used_units <= lost, "died before step {step}: {stats:?}");
    assert_eq!(stats.free_units + stats.used_units + stats.reserved_units, units);
}

#[test]
fn during_an_allocation() {
    for order in [0, 2, 4, 5, 6, 9] {
        let alloc = |buddy: &Buddy<'_, Steered>, _| _ = buddy.alloc_on(0, order);
        die_everywhere(|_| None, alloc, |_| 1 << order);
    }
}

#[test]
fn during_a_free() {
    for order in [0, 2, 4, 5, 6, 9] {
        let prepare = |buddy: &Buddy<'_, Steered>| {
            let index = buddy.alloc_on(0, order).ok()?;
            Some(Block { index, order })
        };
        for lane in [0, 7] {
            let free = |buddy: &Buddy<'_, Steered>, block: Option<Block>| {
                _ = block.map(|block| buddy.free_on(lane, block.index));
            };
            die_everywhere(prepare, free, |_| 1 << order);
        }
    }
}

/// A larger block is asked for than is free: the search goes everywhere and gets nothing.
#[test]
fn during_a_search_in_vain() {
    let prepare = |buddy: &Buddy<'_, Steered>| {
        // A hole in the only block of the largest order, unless something is in the way already.
        let _ = (0..buddy.units().min(32)).find(|&unit| buddy.reserve(unit..unit + 1).is_ok());
        None
    };
    let search = |buddy: &Buddy<'_, Steered>, _| _ = buddy.alloc_on(0, buddy.max_order());
    die_everywhere(prepare, search, |_| 1);
}

/// Reservations are not promised to be undone; what they covered may stay a hole or in part.
#[test]
fn during_a_reservation_or_release() {
    let reserve = |buddy: &Buddy<'_, Steered>, _| _ = buddy.reserve(6..buddy.units().min(70));
    die_everywhere(|_| None, reserve, |units| units);
    let both = |buddy: &Buddy<'_, Steered>, _| {
        if buddy.reserve(6..buddy.units().min(70)).is_ok() {
            buddy.release(6..buddy.units().min(70)).unwrap();
        }
    };
    die_everywhere(|_| None, both, |units| units);
}
