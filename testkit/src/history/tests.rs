use super::{Answer, Call, Fault, History};
use crate::Block;

fn block(index: u64, order: u32) -> Block {
    Block { index, order }
}

/// Makes a history of calls, each with lane, start, end and answer, on 4 units.
fn history(calls: &[(usize, u64, u64, Answer)]) -> History {
    let call = |&(lane, start, end, answer)| Call { lane, start, end, answer };
    History::new(4, calls.iter().map(call).collect())
}

#[test]
fn one_after_the_other_only_what_is_free_is_granted() {
    let right = [
        (0, 0, 1, Answer::Granted(block(0, 2))),
        (1, 2, 3, Answer::Refused(0)),
        (0, 4, 5, Answer::Freed(block(0, 2))),
        (1, 6, 7, Answer::Granted(block(3, 0))),
        (1, 8, 9, Answer::Refused(2)),
        (0, 10, 11, Answer::NotFreed(block(0, 0))),
        (0, 12, 13, Answer::Refused(3)),
    ];
    assert_eq!(history(&right).check(), Ok(()));
    assert!(history(&right).is_linearizable());
    // Each answer except the first grant is wrong if that grant never happened or was of another block.
    for wrong in [
        (0, 0, 1, Answer::Granted(block(2, 0))),
        (0, 0, 1, Answer::Granted(block(1, 1))),
        (0, 0, 1, Answer::Refused(2)),
    ] {
        let mut calls = right;
        calls[0] = wrong;
        assert!(history(&calls).check().is_err(), "{wrong:?}");
    }
}

#[test]
fn two_at_a_time_are_ordered_as_it_suits_them() {
    // The second call is granted what the first frees, although it began earlier.
    let free = (0, 2, 5, Answer::Freed(block(0, 2)));
    let calls =
        [(0, 0, 1, Answer::Granted(block(0, 2))), free, (1, 3, 4, Answer::Granted(block(0, 1)))];
    assert!(history(&calls).is_linearizable());
    // It cannot be if it returned before the free began.
    let calls = [calls[0], (0, 5, 6, free.3), (1, 3, 4, calls[2].3)];
    assert!(matches!(history(&calls).check(), Err(Fault::Unordered(_))));
    assert!(history(&calls).grants_twice());
    // Nor can it be if two calls are granted the block.
    let calls = [calls[0], free, (1, 3, 4, calls[2].3), (2, 6, 7, Answer::Granted(block(1, 0)))];
    assert!(matches!(history(&calls).check(), Err(Fault::Unordered(_))));
    assert!(history(&calls).grants_twice());
    // A free that was wrongly refused does not imply this.
    let calls = [calls[0], (0, 2, 5, Answer::NotFreed(block(0, 2)))];
    assert!(matches!(history(&calls).check(), Err(Fault::Unordered(_))));
    assert!(!history(&calls).grants_twice());
}

#[test]
fn a_refusal_is_honest_if_others_have_the_blocks_in_their_hands() {
    let refused = (0, 1, 2, Answer::Refused(1));
    // Two blocks are free, and one other allocation of a unit is under way: one of the blocks stays free.
    let one = [(1, 0, 3, Answer::Granted(block(0, 0))), refused];
    assert!(matches!(history(&one).check(), Err(Fault::Dishonest(..))));
    // With two allocations under way, or one of the whole arena, both blocks may have been in their hands, whatever
    // they return.
    let two = [one[0], refused, (2, 0, 4, Answer::Refused(0))];
    assert!(matches!(history(&two).check(), Err(Fault::Dishonest(..))), "the refused unit");
    let whole =
        [refused, (1, 0, 3, Answer::Granted(block(0, 2))), (1, 4, 5, Answer::Freed(block(0, 2)))];
    assert_eq!(history(&whole).check(), Ok(()));
    assert!(history(&whole).is_linearizable());
    // A free has not returned.
    let freed = [
        (1, 0, 1, Answer::Granted(block(0, 2))),
        (1, 2, 5, Answer::Freed(block(0, 2))),
        (0, 3, 4, Answer::Refused(1)),
        (0, 6, 7, Answer::Granted(block(2, 1))),
    ];
    assert_eq!(history(&freed).check(), Ok(()));
    // A free has returned.
    let mut late = freed;
    late[1].2 = 2;
    late[1].1 = 1;
    late[0].2 = 1;
    assert!(history(&late[..3]).check().is_err());
}
