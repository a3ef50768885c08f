//! A thread that dies, or stalls for good, at any step of any operation: nobody else waits, nothing is
//! handed out twice, and at most the block in question is lost.

use nbbs::Buddy;
use testkit::program::Arena;
use testkit::steered::{Steered, count_steps, die_before};
use testkit::{Block, InHand, Oracle};

const UNITS: [u64; 6] = [8, 33, 64, 100, 600, 1024];

/// More steps than any operation here takes: whoever takes so many waits.
const MANY: u64 = 10_000;

/// Lets `act` die before each of its steps in turn, on an arena with some blocks in use, and lets the
/// others go on. At most what `in_hand` says is lost.
fn die_everywhere(
    prepare: impl Fn(&Buddy<'_, Steered>, &Oracle) -> Option<Block>,
    act: impl Fn(&Buddy<'_, Steered>, Option<Block>),
    in_hand: impl Fn(&Buddy<'_, Steered>, Option<Block>) -> InHand,
) {
    for units in UNITS {
        for taken in [&[][..], &[0], &[0, 3], &[4, 0, 2]] {
            let survives = (0..MANY).any(|step| {
                let arena = Arena::<Steered>::new(units);
                let buddy = arena.buddy();
                let oracle = Oracle::new(units);
                let held = taken.iter().filter_map(|&order| {
                    let index = buddy.alloc_on(1, order).ok()?;
                    Some(oracle.take(1, index, order).unwrap())
                });
                let held: Vec<Block> = held.collect();
                let block = prepare(&buddy, &oracle);
                if die_before(step, || act(&buddy, block)).is_some() {
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

/// Those who go on after a thread died before its step number `step`.
struct Survivors<'a> {
    buddy: Buddy<'a, Steered>,
    oracle: Oracle,
    in_hand: InHand,
    step: u64,
}

impl Survivors<'_> {
    /// They free what they hold, then take all that is left at every order: first whatever the dead thread may
    /// have spoilt, then, with what is missing known, all the rest.
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

    /// The answer of an operation that nobody is in the way of.
    fn alone<R>(&self, operation: impl FnOnce() -> R) -> R {
        let answer = count_steps(MANY, operation);
        answer.unwrap_or_else(|stuck| panic!("died before step {}: {stuck}", self.step)).0
    }

    fn free(&self, lane: usize, block: Block) {
        self.oracle.give(block).unwrap();
        let freed = self.alone(|| self.buddy.free_on(lane, block.index));
        assert_eq!(freed, Ok(block.order), "died before step {}", self.step);
    }

    /// All blocks of an order.
    fn take_all(&self, order: u32) -> Vec<Block> {
        let next = || self.alone(|| self.buddy.alloc_on(3, order)).ok();
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

    /// The units that nobody holds and that cannot be had one by one.
    fn missing(&self) -> Vec<u64> {
        let blocks = self.take_all(0);
        let missing = (0..self.buddy.units()).filter(|&unit| self.oracle.is_free(unit)).collect();
        blocks.into_iter().for_each(|block| self.free(4, block));
        missing
    }
}

/// What an allocation may cost: nothing where no block of its order fits.
fn claim(buddy: &Buddy<'_, Steered>, order: u32) -> InHand {
    if order <= buddy.max_order() { InHand::Claim(order) } else { InHand::Nothing }
}

#[test]
fn during_an_allocation() {
    for order in [0, 2, 4, 5, 6, 9] {
        let alloc = |buddy: &Buddy<'_, Steered>, _| _ = buddy.alloc_on(0, order);
        die_everywhere(|_, _| None, alloc, |buddy, _| claim(buddy, order));
    }
}

#[test]
fn during_a_free() {
    for order in [0, 2, 4, 5, 6, 9] {
        let prepare = |buddy: &Buddy<'_, Steered>, _: &Oracle| {
            let index = buddy.alloc_on(0, order).ok()?;
            Some(Block { index, order })
        };
        for lane in [0, 7] {
            let free = |buddy: &Buddy<'_, Steered>, block: Option<Block>| {
                _ = block.map(|block| buddy.free_on(lane, block.index));
            };
            die_everywhere(prepare, free, |_, block| block.map_or(InHand::Nothing, InHand::Block));
        }
    }
}

/// A larger block is asked for than is free: the search goes everywhere and gets nothing.
#[test]
fn during_a_search_in_vain() {
    let prepare = |buddy: &Buddy<'_, Steered>, oracle: &Oracle| {
        // A hole in the only block of the largest order, unless something is in the way already.
        let hole = (0..buddy.units().min(32)).find(|&unit| buddy.reserve(unit..unit + 1).is_ok());
        hole.into_iter().for_each(|unit| oracle.reserve(unit..unit + 1).unwrap());
        None
    };
    let search = |buddy: &Buddy<'_, Steered>, _| _ = buddy.alloc_on(0, buddy.max_order());
    die_everywhere(prepare, search, |_, _| InHand::Nothing);
}

/// Reservations are not promised to be undone; what they covered may stay a hole or in part.
#[test]
fn during_a_reservation_or_release() {
    let range = |buddy: &Buddy<'_, Steered>| 6..buddy.units().min(70);
    let reserve = |buddy: &Buddy<'_, Steered>, _| _ = buddy.reserve(range(buddy));
    let holes = |buddy: &Buddy<'_, Steered>, _| InHand::Holes(range(buddy));
    die_everywhere(|_, _| None, reserve, holes);
    let both = |buddy: &Buddy<'_, Steered>, _| {
        if buddy.reserve(range(buddy)).is_ok() {
            buddy.release(range(buddy)).unwrap();
        }
    };
    die_everywhere(|_, _| None, both, holes);
}
