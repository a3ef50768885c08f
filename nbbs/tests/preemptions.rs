//! Races that need two stalls in exactly the right places, under every schedule with two preemptions; `--long`: three.

use testkit::program::{Arena, Op, Program, Race, RunOp, Step, race};
use testkit::steered::{Steered, all_schedules};
use testkit::{Counters, preemptions};

const FREE: Op = Op::Free { pick: 0 };

fn alloc(lane: usize, order: u32) -> Step {
    Step { lane, op: Op::Alloc { order } }
}

fn free(pick: usize) -> Step {
    Step { lane: 9, op: Op::Free { pick } }
}

/// Runs the lanes, after `setup` in an arena of `units` units, under every schedule with few
/// preemptions: in an arena as it is at first, and in one whose counters are about to wrap.
fn check(units: u64, setup: Vec<Step>, lanes: &[&[Op]]) {
    let lanes = lanes.iter().map(|ops| ops.to_vec()).collect();
    let setup = Program { units, reserved: false, steps: setup };
    let of = Race { setup, lanes, shared: false };
    let counters = Counters::of(&Arena::<Steered>::new(units));
    for wrap in [false, true] {
        let schedules = all_schedules(preemptions(), |together| {
            let arena = Arena::<Steered>::new(units);
            if wrap {
                counters.preset(arena.words(), 0);
            }
            race(&of, &arena.buddy(), |bodies| together(bodies)).map(|_| ())
        });
        let schedules =
            schedules.unwrap_or_else(|culprit| panic!("{culprit}\nin {of:?}, wraps: {wrap}"));
        assert!(schedules > 100, "{schedules} schedules are no race: {of:?}");
    }
}

/// A merge has seen its word empty and stalls; a claim in that word clears its mark; a second merge, of
/// a neighbour, marks the same word again. The first must not take the second mark for its own.
#[test]
fn a_merge_does_not_commit_under_the_mark_of_another() {
    // Three words with two blocks each; then one is left in each of the first two.
    let blocks = [0, 9, 1, 9, 9, 9].map(|lane| alloc(lane, 4));
    let setup = blocks.into_iter().chain([free(1), free(2)]).collect();
    let large = Op::Alloc { order: 5 };
    let small = Op::Alloc { order: 4 };
    check(96, setup, &[&[FREE, large], &[FREE], &[small]]);
}

/// A merge at the top has seen the word below empty and stalls; a claim far below has split a slot of
/// that word again and stalls before the top; a second claim finds that slot in order, and knows the rest
/// of its path from before. It must not believe that, or the merge must not commit.
#[test]
fn what_a_lane_knows_of_its_path_ends_with_a_merge() {
    what_is_known_ends_with_a_merge(&[]);
}

/// The same, but the lane's last claim was elsewhere, and what it knows comes from its last free.
#[test]
fn what_a_lane_knows_of_its_path_by_a_free_ends_with_a_merge() {
    what_is_known_ends_with_a_merge(&[alloc(9, 0)]);
}

fn what_is_known_ends_with_a_merge(elsewhere: &[Step]) {
    const UNITS: u64 = 1024;
    // The block of lane 0, in the first word; a pair there too, so that the lane's cursor for pairs stays.
    let mut setup = vec![alloc(0, 0), alloc(9, 1)];
    // The rest of the first half, so that the cursor for single units leaves it.
    setup.extend([0, 2, 3, 4, 5, 6, 7, 8, 0].map(|order| alloc(9, order)));
    // Everything except the block of lane 0 and that last unit comes back, and a pair comes and goes once more: its way
    // up is the last that the lane knows.
    setup.extend((0..9).map(|_| free(1)));
    setup.push(alloc(9, 1));
    setup.extend_from_slice(elsewhere);
    setup.extend([free(2), Step { lane: 9, op: Op::Inspect }]);
    let pair = Op::Alloc { order: 1 };
    check(
        UNITS,
        setup,
        &[
            &[FREE, Op::Alloc { order: 9 }],
            std::slice::from_ref(&pair),
            std::slice::from_ref(&pair),
        ],
    );
}

/// A free has seen that the word above allows for what it offers and stalls before the top; a merge makes
/// both words empty and is about to forget that; the free then raises bounds where nothing is split. What
/// it leaves there must not keep later frees from raising the top.
#[test]
fn a_stale_bound_below_does_not_stand_for_the_top() {
    let (unit, half) = (Op::Alloc { order: 0 }, Op::Alloc { order: 9 });
    let after = [unit.clone(), unit, FREE, FREE];
    let ops: Vec<Op> = [half, FREE].into_iter().chain(after).collect();
    for units in [512, 600] {
        // Once freed and taken again: the bounds allow for a merge that waits.
        let setup = vec![alloc(9, 0), free(0), alloc(0, 0)];
        check(units, setup, &[&[FREE], &ops]);
    }
}

/// The same, but a later free knew its path from before the merge, or from the free before it: by the first note the
/// top allows for what it offers, and by the second for less.
#[test]
fn what_a_lane_knows_of_the_path_of_its_frees_ends_with_a_merge() {
    // All units except the first 512 are in use for good. Lane 0 has raised the bounds; lane 1 remembers them.
    let own = |lane, pick| Step { lane, op: Op::Free { pick } };
    let full = [alloc(0, 0), alloc(9, 9), alloc(9, 10)];
    let raised = [own(0, 0), alloc(0, 0), alloc(1, 0), own(1, 3)];
    let (unit, half) = (Op::Alloc { order: 0 }, Op::Alloc { order: 9 });
    let setup = full.into_iter().chain(raised).collect();
    check(2048, setup, &[&[FREE], &[half, FREE, unit.clone(), unit, FREE, FREE]]);
}

/// Claims that find out that the area belongs to a block stand for a moment in the leaf word where that block begins.
/// The block's owner, who frees it without a size, must not take such a claim for the block.
#[test]
fn a_free_does_not_take_a_claim_below_its_block_for_the_block() {
    let own = |lane, pick| Step { lane, op: Op::Free { pick } };
    let unit = std::slice::from_ref(&Op::Alloc { order: 0 });
    // One level above the leaf words, and two.
    for (units, order) in [(64, 5), (1024, 9)] {
        // The cursor for single units is in a word that is part of a block now.
        let setup = vec![alloc(0, 0), own(0, 0), alloc(0, order), alloc(0, order)];
        check(units, setup, &[&[FREE, FREE], unit, unit]);
    }
}

/// A search has met a word that is entirely reserved by a lane that is about to find out that the area belonged to a
/// block. The search stalls before it splits the slot above, and that lane gives the word back. The slot would then stand
/// split over an empty word, which nobody merges.
#[test]
fn a_search_does_not_leave_a_split_over_a_word_that_emptied() {
    // The first word is a block, the second is full.
    let blocks = [(0, 5), (9, 4), (9, 3), (9, 2), (9, 1), (1, 0), (9, 0)];
    let setup = blocks.map(|(lane, order)| alloc(lane, order)).to_vec();
    let reserve = Op::Reserve { start: 0, end: 32 };
    check(64, setup, &[&[FREE], &[reserve, FREE], &[Op::Alloc { order: 0 }]]);
}

/// A run over two words meets a block whose claim has yet to reach the top, where the slot is still free: the run gives
/// up, and waits for nobody.
#[test]
fn a_claim_under_way_is_not_waited_for() {
    // Once the run has its first piece, only behind the first word of level 1 is there room for the block.
    let setup = vec![Step { lane: 9, op: Op::Reserve { start: 0, end: 385 } }];
    let across = Op::Run(RunOp::At { index: 506, units: 7 });
    check(597, setup, &[&[across], &[Op::Alloc { order: 6 }]]);
}
