//! Tests a thread that dies, or stalls for good, at any step of any operation: nobody else waits, nothing is handed out
//! twice, and at most what the operation had in hand is lost.

use std::collections::BTreeSet;
use std::ops::Range;

use nbbs::{Buddy, ResizeError, Zone, Zones};
use testkit::program::Arena;
use testkit::steered::{Steered, count_steps, die_before};
use testkit::{Block, InHand, Oracle};

const UNITS: [u64; 6] = [8, 33, 64, 100, 600, 1024];

/// More steps than any operation here takes: an operation that takes more is waiting.
const MANY: u64 = 10_000;

/// Lets `act` die before each of its steps in turn, on an arena with some blocks in use, and lets the others go on. At
/// most what `in_hand` returns may be lost.
fn die_everywhere<T: Clone>(
    prepare: impl Fn(&Buddy<'_, Steered>, &Oracle) -> Option<T>,
    act: impl Fn(&Buddy<'_, Steered>, Option<T>),
    in_hand: impl Fn(&Buddy<'_, Steered>, Option<T>) -> InHand,
) {
    for units in UNITS {
        for taken in [&[][..], &[0], &[0, 3], &[4, 0, 2]] {
            let survives = (0..MANY).any(|step| {
                let arena = Arena::<Steered>::new(units);
                let buddy = arena.buddy();
                let oracle = Oracle::new(units);
                let held = taken.iter().filter_map(|&order| {
                    let index = buddy.on(1).alloc(order).ok()?;
                    Some(oracle.take(1, index, order).unwrap())
                });
                let held: Vec<Block> = held.collect();
                let block = prepare(&buddy, &oracle);
                if die_before(step, || act(&buddy, block.clone())).is_some() {
                    buddy.audit().unwrap();
                    return true;
                }
                let in_hand = in_hand(&buddy, block);
                Survivors { buddy, oracle, in_hand, step }.go_on(held);
                false
            });
            assert!(survives, "{units} units, {taken:?} taken: more than {MANY} steps");
        }
    }
}

/// The threads that go on after another died before its step number `step`.
struct Survivors<'a> {
    buddy: Buddy<'a, Steered>,
    oracle: Oracle,
    in_hand: InHand,
    step: u64,
}

impl Survivors<'_> {
    /// They free what they hold, then take everything that is left at every order: first what the dead thread may have
    /// spoilt, and then, when it is known what is missing, all the rest.
    fn go_on(self, held: Vec<Block>) {
        let Self { buddy, oracle, in_hand, step } = &self;
        held.into_iter().for_each(|block| self.free(2, block));
        for order in (0..=buddy.max_order()).rev() {
            let (blocks, free) = (self.drain(order), oracle.free_blocks(order));
            assert!(
                blocks + in_hand.spoils(order) >= free,
                "died before step {step} with {in_hand:?}: {blocks} of {free} blocks of order {order}"
            );
        }
        let missing = self.missing();
        assert!(
            in_hand.excuses(&missing),
            "died before step {step} with {in_hand:?}: units {missing:?} are lost"
        );
        missing.iter().for_each(|&unit| _ = oracle.take(0, unit, 0).unwrap());
        for order in (0..=buddy.max_order()).rev() {
            let (blocks, free) = (self.drain(order), oracle.free_blocks(order));
            assert_eq!(blocks, free, "died before step {step} with {in_hand:?}: order {order}");
        }
        assert_eq!(buddy.stats().free_units, oracle.free_blocks(0), "died before step {step}");
    }

    /// Returns the answer of an undisturbed operation.
    fn alone<R>(&self, operation: impl FnOnce() -> R) -> R {
        let answer = count_steps(MANY, operation);
        answer.unwrap_or_else(|stuck| panic!("died before step {}: {stuck}", self.step)).0
    }

    fn free(&self, lane: usize, block: Block) {
        self.oracle.give(block).unwrap();
        let freed = self.alone(|| self.buddy.on(lane).free(block.index));
        assert_eq!(freed, Ok(block.len()), "died before step {}", self.step);
    }

    /// Allocates all blocks of an order.
    fn take_all(&self, order: u32) -> Vec<Block> {
        let next = || self.alone(|| self.buddy.on(3).alloc(order)).ok();
        let take = |index| self.oracle.take(3, index, order).unwrap();
        std::iter::from_fn(next).map(take).collect()
    }

    /// Takes and frees all blocks of an order, and counts them.
    fn drain(&self, order: u32) -> u64 {
        let blocks = self.take_all(order);
        let count = blocks.len() as u64;
        blocks.into_iter().for_each(|block| self.free(4, block));
        count
    }

    /// Returns the units that nobody holds and that cannot be allocated one by one.
    fn missing(&self) -> Vec<u64> {
        let blocks = self.take_all(0);
        let missing = (0..self.buddy.units()).filter(|&unit| self.oracle.is_free(unit)).collect();
        blocks.into_iter().for_each(|block| self.free(4, block));
        missing
    }
}

/// Returns what an allocation may cost: nothing if no block of its order fits.
fn claim(buddy: &Buddy<'_, Steered>, order: u32) -> InHand {
    if order <= buddy.max_order() { InHand::Claim(order) } else { InHand::Nothing }
}

#[test]
fn during_an_allocation() {
    for order in [0, 2, 4, 5, 6, 9] {
        let alloc = |buddy: &Buddy<'_, Steered>, _: Option<Block>| _ = buddy.on(0).alloc(order);
        die_everywhere(|_, _| None::<Block>, alloc, |buddy, _| claim(buddy, order));
    }
}

#[test]
fn during_a_free() {
    for order in [0, 2, 4, 5, 6, 9] {
        let prepare = |buddy: &Buddy<'_, Steered>, _: &Oracle| {
            let index = buddy.on(0).alloc(order).ok()?;
            Some(Block { index, order })
        };
        for lane in [0, 7] {
            let free = |buddy: &Buddy<'_, Steered>, block: Option<Block>| {
                _ = block.map(|block| buddy.on(lane).free(block.index));
            };
            die_everywhere(prepare, free, |_, block| block.map_or(InHand::Nothing, InHand::Block));
        }
    }
}

/// A larger block is asked for than is free: the search goes everywhere and gets nothing.
#[test]
fn during_a_search_in_vain() {
    let prepare = |buddy: &Buddy<'_, Steered>, oracle: &Oracle| {
        // Reserves one unit in the only block of the largest order, unless something is in the way already.
        let reserved =
            (0..buddy.units().min(32)).find(|&unit| buddy.reserve(unit..unit + 1).is_ok());
        reserved.into_iter().for_each(|unit| oracle.reserve(unit..unit + 1).unwrap());
        None::<Block>
    };
    let search =
        |buddy: &Buddy<'_, Steered>, _: Option<Block>| _ = buddy.on(0).alloc(buddy.max_order());
    die_everywhere(prepare, search, |_, _| InHand::Nothing);
}

/// There is no promise that reservations are undone; what they covered may stay reserved, all of it or a part.
#[test]
fn during_a_reservation_or_release() {
    let range = |buddy: &Buddy<'_, Steered>| 6..buddy.units().min(70);
    let reserve = |buddy: &Buddy<'_, Steered>, _: Option<Block>| _ = buddy.reserve(range(buddy));
    let reserved = |buddy: &Buddy<'_, Steered>, _: Option<Block>| InHand::Reserved(range(buddy));
    die_everywhere(|_, _| None, reserve, reserved);
    let both = |buddy: &Buddy<'_, Steered>, _: Option<Block>| {
        if buddy.reserve(range(buddy)).is_ok() {
            buddy.release(range(buddy)).unwrap();
        }
    };
    die_everywhere(|_, _| None, both, reserved);
}

/// Runs in one word, across words, and of whole words.
const RUNS: [Range<u64>; 4] = [6..11, 20..60, 31..70, 64..96];

#[test]
fn during_the_allocation_of_a_run() {
    for run in RUNS {
        let len = run.end - run.start;
        let alloc = |buddy: &Buddy<'_, Steered>, _: Option<Block>| {
            _ = buddy.on(0).alloc_at(run.start, len);
        };
        die_everywhere(|_, _| None, alloc, |_, _| InHand::First(run.clone()));
    }
}

/// Takes the run if there is room. The part `kept` stays with its holder, whatever happens to it.
fn hold(
    run: &Range<u64>,
    kept: &Range<u64>,
) -> impl Fn(&Buddy<'_, Steered>, &Oracle) -> Option<u64> {
    let (run, kept) = (run.clone(), kept.clone());
    move |buddy, oracle| {
        let index = buddy.on(0).alloc_at(run.start, run.end - run.start).ok()?;
        kept.clone().for_each(|unit| _ = oracle.take(0, unit, 0).unwrap());
        Some(index)
    }
}

#[test]
fn during_the_free_of_a_run() {
    for run in RUNS {
        let lost = |_: &Buddy<'_, Steered>, held: Option<u64>| {
            held.map_or(InHand::Nothing, |_| InHand::First(run.clone()))
        };
        let free = |buddy: &Buddy<'_, Steered>, held: Option<u64>| {
            _ = held.map(|index| buddy.on(0).free(index));
        };
        die_everywhere(hold(&run, &(0..0)), free, lost);
        let free_units = |buddy: &Buddy<'_, Steered>, held: Option<u64>| {
            _ = held.map(|index| buddy.on(7).free_units(index, run.end - run.start));
        };
        die_everywhere(hold(&run, &(0..0)), free_units, lost);
    }
}

#[test]
fn during_a_cut() {
    for run in RUNS {
        let kept = run.start..run.start + 3;
        let gap = kept.end..run.end;
        let shrink = |buddy: &Buddy<'_, Steered>, held: Option<u64>| {
            _ = held.map(|index| buddy.on(0).shrink(index, 3));
        };
        let lost = |_: &Buddy<'_, Steered>, held: Option<u64>| {
            held.map_or(InHand::Nothing, |_| InHand::First(gap.clone()))
        };
        die_everywhere(hold(&run, &kept), shrink, lost);
    }
}

#[test]
fn during_growth() {
    for (run, end) in [(6..11, 20), (6..11, 50), (20..60, 90), (64..96, 130)] {
        let grow = |buddy: &Buddy<'_, Steered>, held: Option<u64>| {
            _ = held.map(|index| buddy.on(0).grow(index, end - index));
        };
        let lost = |_: &Buddy<'_, Steered>, held: Option<u64>| {
            held.map_or(InHand::Nothing, |_| InHand::First(run.end..end))
        };
        die_everywhere(hold(&run, &run), grow, lost);
    }
}

/// Returns the units of blocks of an order.
fn units_of(blocks: &[u64], order: u32) -> Vec<u64> {
    let mut units: Vec<u64> =
        blocks.iter().flat_map(|&index| Block { index, order }.units()).collect();
    units.sort_unstable();
    units
}

/// Allocates the blocks of a batch, which are the same each time in the same arena.
fn batch(buddy: &Buddy<'_, Steered>, order: u32) -> Vec<u64> {
    let mut blocks = vec![0; 40];
    let count = buddy.on(0).alloc_batch(order, &mut blocks).unwrap_or(0);
    blocks.truncate(count);
    blocks
}

#[test]
fn during_a_batch() {
    for order in [0, 2, 5] {
        // What it gets if it goes on, in another arena with the same words.
        let prepare = |buddy: &Buddy<'_, Steered>, oracle: &Oracle| {
            let twin = Arena::<Steered>::new(buddy.units());
            let held = (0..buddy.units()).filter_map(|unit| oracle.holder_of(unit));
            let mut held: Vec<Block> = held.map(|holder| holder.block).collect();
            held.dedup();
            let twin = twin.buddy();
            held.iter().for_each(|block| _ = twin.on(1).alloc(block.order).unwrap());
            Some(units_of(&batch(&twin, order), order))
        };
        let alloc = |buddy: &Buddy<'_, Steered>, _: Option<Vec<u64>>| _ = batch(buddy, order);
        let lost = |_: &Buddy<'_, Steered>, units: Option<Vec<u64>>| InHand::Between {
            least: Vec::new(),
            most: units.unwrap_or_default(),
        };
        die_everywhere(prepare, alloc, lost);
        let prepare = |buddy: &Buddy<'_, Steered>, _: &Oracle| Some(batch(buddy, order));
        let free = |buddy: &Buddy<'_, Steered>, blocks: Option<Vec<u64>>| {
            _ = blocks.map(|blocks| buddy.on(0).free_batch(order, &blocks));
        };
        let lost = |_: &Buddy<'_, Steered>, blocks: Option<Vec<u64>>| InHand::Between {
            least: Vec::new(),
            most: units_of(&blocks.unwrap_or_default(), order),
        };
        die_everywhere(prepare, free, lost);
    }
}

#[test]
fn during_a_batch_from_two_zones() {
    let first_steps = (0..MANY).find(|&step| {
        let arenas = [Arena::<Steered>::new(64), Arena::<Steered>::new(40)];
        let [one, two] = [arenas[0].buddy(), arenas[1].buddy()];
        let zones = [Zone { base: 0, buddy: one }, Zone { base: 64, buddy: two }];
        let zones = Zones::new(&zones).unwrap();
        let alloc = || zones.on(0).alloc_batch(&[0, 1], 0, &mut [0; 70]);
        if die_before(step, alloc).is_some() {
            return true;
        }
        let most = |units: Range<u64>| InHand::Between { least: Vec::new(), most: units.collect() };
        for (buddy, in_hand) in [(one, most(0..64)), (two, most(0..6))] {
            let oracle = Oracle::new(buddy.units());
            Survivors { buddy, oracle, in_hand, step }.go_on(Vec::new());
        }
        false
    });
    assert!(first_steps.is_some_and(|steps| steps > 2), "{first_steps:?}");
}

/// A claim that died below a block, as its lane had remembered a word there, stays in the way of cuts through that
/// word's slot; the block can still be freed.
#[test]
fn below_a_block_that_is_to_be_cut() {
    let mut refused = 0;
    for step in 0..40 {
        let arena = Arena::<Steered>::new(64);
        let (buddy, oracle) = (arena.buddy(), Oracle::new(64));
        let remembered = buddy.on(0).alloc(0).unwrap();
        buddy.on(0).free(remembered).unwrap();
        let block = buddy.on(1).alloc(6).unwrap();
        _ = die_before(step, || buddy.on(0).alloc(0));
        let shrink = || count_steps(MANY, || buddy.on(1).shrink(block, 5)).unwrap().0;
        match shrink() {
            Ok(()) => continue,
            Err(ResizeError::Contended { .. }) => refused += 1,
            Err(other) => panic!("died before step {step}: {other}"),
        }
        assert!(matches!(shrink(), Err(ResizeError::Contended { .. })));
        assert_eq!(count_steps(MANY, || buddy.on(1).free(block)).unwrap().0, Ok(64));
        let in_hand = InHand::Claim(0);
        Survivors { buddy, oracle, in_hand, step }.go_on(Vec::new());
    }
    assert!(refused > 0, "no claim was in the way");
}

type Act<'a> = &'a dyn Fn(&Buddy<'_, Steered>);

/// What a death leaves below a block keeps later holders of the block, too, from cutting it there, but not from freeing
/// it. Once the block is free, a repair removes what a claim had split, and shows what was claimed or cut as in use.
#[test]
fn below_a_block_that_others_get_later() {
    let claim = |buddy: &Buddy<'_, Steered>| _ = buddy.on(1).alloc_at(33, 1);
    let cut = |buddy: &Buddy<'_, Steered>| _ = buddy.on(2).shrink(0, 100);
    let acts: [Act<'_>; 2] = [&claim, &cut];
    // By what is in use after the repair: nothing, or the claim; the first word that the cut wrote, or all of the block.
    let refused = acts.map(|act| {
        let mut refused = BTreeSet::new();
        for step in 0..40 {
            let arena = Arena::<Steered>::new(1024);
            let buddy = arena.buddy();
            let get = || buddy.on(2).alloc_at(0, 512);
            get().unwrap();
            _ = die_before(step, || act(&buddy));
            if buddy.on(3).free(0) != Ok(512) {
                // It was cut.
                continue;
            }
            assert_eq!(get(), Ok(0), "step {step}");
            match buddy.on(2).shrink(0, 100) {
                Ok(()) => continue,
                Err(ResizeError::Contended { .. }) => {}
                Err(other) => panic!("step {step}: {other}"),
            }
            assert_eq!(buddy.on(3).free(0), Ok(512), "step {step}");
            buddy.mend();
            let in_use = 1024 - buddy.count_free();
            refused.insert(in_use);
            if in_use == 0 {
                get().unwrap();
                assert_eq!(buddy.on(2).shrink(0, 100), Ok(()), "step {step}");
            }
        }
        refused
    });
    assert_eq!(refused, [BTreeSet::from([0, 1]), BTreeSet::from([32, 512])]);
}
