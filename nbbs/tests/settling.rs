//! Tests bounds and merges: an inspection hides nothing, and what it has settled is merged as far up as possible.

use nbbs::{Buddy, Request};
use testkit::program::{Arena, Op, Program, Race, Step, race};
use testkit::steered::{Steered, all_schedules};

/// Every leaf word is full, and the bounds above still promise what there was before. A search lowers them, reads what
/// is below, and stalls; a unit comes free, and its holder finds a mark on the word above, whose bound would do. Two
/// preemptions are enough for what is then hidden: an audit follows each schedule.
#[test]
fn a_free_beside_a_search_in_vain_is_not_hidden() {
    for (units, order) in [(64, 4), (96, 3), (608, 4)] {
        let alloc = |lane| Step { lane, op: Op::Alloc { order } };
        // No more blocks than there are: a refusal would lower the bounds beforehand.
        let blocks = (0..units >> order).map(|number| alloc(if number < 2 { 0 } else { 9 }));
        let steps = blocks.collect();
        let setup = Program { units, reserved: false, steps };
        let free = vec![Op::Free { pick: 1 }];
        let lanes = vec![free, vec![Op::Alloc { order: 0 }]];
        let of = Race { setup, lanes, shared: false };
        let schedules = all_schedules(testkit::preemptions(), |together| {
            let arena = Arena::<Steered>::new(units);
            race(&of, &arena.buddy(), |bodies| together(bodies)).map(|_| ())
        });
        let schedules = schedules.unwrap_or_else(|culprit| panic!("{culprit}\nin {of:?}"));
        assert!(schedules > 100, "{schedules} schedules are no race");
    }
}

/// The lane's own word stays split when it empties. A search for a larger block settles the word above, finds nothing
/// in its range there and goes elsewhere: no merge is left waiting.
#[test]
fn what_a_search_has_settled_is_merged_to_the_top() {
    for units in [1024, 20_000] {
        let arena: Arena = Arena::new(units);
        let buddy: Buddy<'_> = arena.buddy();
        let block = buddy.on(0).alloc(0).unwrap();
        buddy.on(0).free(block).unwrap();
        assert_eq!((block, buddy.audit().unwrap().waiting_merges), (0, 1));
        let far = buddy.here().request(Request::block(6).within(490..units)).unwrap();
        assert_eq!((far, buddy.audit().unwrap().waiting_merges), (512, 0));
        assert_eq!(buddy.order_bound(), Some(units.ilog2() - 1));
    }
}

/// A lane fills the arena and frees it in reverse. Of the words that empty, only one stays split, for this lane's next
/// block.
#[test]
fn a_drain_in_reverse_leaves_one_empty_word() {
    for (lane, order) in [(0, 5), (1, 5), (0, 8), (1, 9), (0, 10)] {
        let arena: Arena = Arena::new(1 << 15);
        let buddy: Buddy<'_> = arena.buddy();
        let blocks: Vec<u64> = std::iter::from_fn(|| buddy.on(lane).alloc(order).ok()).collect();
        assert_eq!(blocks.len() as u64, buddy.units() >> order);
        for &block in blocks.iter().rev() {
            buddy.on(lane).free_sized(block, order).unwrap();
        }
        let waiting = buddy.audit().unwrap().waiting_merges;
        assert!(waiting <= 1, "lane {lane}, order {order}: {waiting} words wait to be merged");
    }
}
