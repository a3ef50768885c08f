//! Operations that are interrupted before each of their steps, by another operation or for ever, and what they take.

use core::cell::RefCell;
use core::iter::once;
use core::ops::Range;
use core::sync::atomic::Ordering;
use std::boxed::Box;
use std::format;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::vec::Vec;

use super::super::codes::Use;
use super::super::find::Wanted;
use super::super::look::SmallStats;
use super::super::word::Word;
use super::{Memory, Narrow};
use crate::words::{count, counted};

type Handler = Box<dyn FnOnce()>;

std::thread_local! {
    /// What interrupts the calling thread, and how many steps it takes before.
    static HANDLER: RefCell<Option<(u32, Handler)>> = const { RefCell::new(None) };
}

/// A word of two units, each access to which is a step.
#[derive(Debug, Default)]
struct Stepped(Narrow<2>);

impl Stepped {
    fn step() {
        let due = HANDLER.with_borrow_mut(|handler| match handler {
            Some((0, _)) => handler.take(),
            Some((steps, _)) => {
                *steps -= 1;
                None
            }
            None => None,
        });
        due.into_iter().for_each(|(_, handler)| handler());
    }
}

impl Word for Stepped {
    const UNITS: u32 = 2;

    fn load(&self, order: Ordering) -> usize {
        Self::step();
        count(1, 0);
        self.0.load(order)
    }

    fn compare_exchange(
        &self,
        current: usize,
        new: usize,
        success: Ordering,
        failure: Ordering,
    ) -> Result<usize, usize> {
        Self::step();
        count(0, 1);
        self.0.compare_exchange(current, new, success, failure)
    }
}

/// Does `work`, which `handler` interrupts before step `step`. Returns whether it has that many steps.
fn interrupted(step: u32, handler: Handler, work: impl FnOnce()) -> bool {
    HANDLER.set(Some((step, handler)));
    work();
    HANDLER.take().is_none()
}

/// Does `work` up to step `step`. Returns whether it has that many steps.
fn dies(step: u32, work: impl FnOnce()) -> bool {
    let death = Box::new(|| resume_unwind(Box::new(())));
    catch_unwind(AssertUnwindSafe(|| interrupted(step, death, work))).unwrap_or(true)
}

const UNITS: usize = 20;

/// A row with runs: units 0 to 4, which the caller holds that is interrupted; 11 to 14 and 15, which others hold.
#[derive(Debug)]
struct Ground {
    memory: Memory<Stepped>,
}

impl Ground {
    fn new() -> &'static Self {
        let ground = Self { memory: Memory::new(UNITS) };
        for (start, units) in [(0, 5), (5, 6), (11, 4), (15, 1)] {
            assert_eq!(ground.alloc(units), Some(start..start + units));
        }
        assert!(ground.cut(5..11, 0));
        Box::leak(Box::new(ground))
    }

    fn alloc(&self, units: usize) -> Option<Range<usize>> {
        let start = self.memory.row().alloc(Wanted { units, align: 1, offset: 0 })?;
        Some(start..start + units)
    }

    fn cut(&self, run: Range<usize>, to: usize) -> bool {
        self.memory.row().cut(run.start, run.len(), to)
    }

    /// Returns what is held of a run after an attempt to make it one of `to` units.
    fn grow(&self, run: Range<usize>, to: usize) -> Range<usize> {
        let is_grown = self.memory.row().grow(run.start, run.len(), to);
        run.start..if is_grown { run.start + to } else { run.end }
    }
}

/// What somebody does who holds units 0 to 4. Returns all that it holds then.
type Deed = fn(&Ground) -> Vec<Range<usize>>;

const DEEDS: [Deed; 8] = [
    |ground| once(0..5).chain(ground.alloc(6)).collect(),
    |ground| once(0..5).chain(ground.alloc(1)).collect(),
    |ground| once(0..5).chain(ground.alloc(7)).collect(),
    |ground| {
        assert!(ground.cut(0..5, 0));
        Vec::new()
    },
    |ground| {
        assert!(ground.cut(0..5, 3));
        once(0..3).collect()
    },
    |ground| Vec::from([ground.grow(0..5, 11)]),
    |ground| Vec::from([ground.grow(0..5, 12)]),
    |ground| Vec::from([ground.grow(0..5, 6)]),
];

/// One who dies, or stands still, costs the run that it was allocating, freeing or changing, and nothing else: all
/// others can be freed, and all that is left can be allocated.
#[test]
fn a_death_costs_one_run() {
    for (number, deed) in DEEDS.iter().enumerate() {
        for step in 0.. {
            let ground = Ground::new();
            let died = dies(step, || _ = deed(ground));
            assert!(ground.cut(11..15, 0) && ground.cut(15..16, 0), "deed {number}, step {step}");
            let free = ground.memory.row().free_units();
            // Its own run, and what it was about to allocate.
            assert!(free >= UNITS - 5 - 7, "deed {number}, step {step}: {free} units are free");
            let singles = core::iter::from_fn(|| ground.alloc(1)).count();
            assert_eq!(singles, free, "deed {number}, step {step}: free units that nobody gets");
            if !died {
                assert!(step > 1, "deed {number} has {step} steps");
                break;
            }
        }
    }
}

/// What a handler does that interrupts such a deed, and keeps.
const HANDLERS: [Deed; 4] = [
    |ground| [11..15, 15..16].into_iter().chain(ground.alloc(1)).collect(),
    |ground| [11..15, 15..16].into_iter().chain(ground.alloc(4)).collect(),
    |ground| {
        assert!(ground.cut(11..15, 0));
        once(15..16).chain(ground.alloc(9)).collect()
    },
    |ground| {
        assert!(ground.cut(15..16, 0) && ground.cut(11..15, 2));
        Vec::from([ground.grow(11..13, 7)])
    },
];

/// What is interrupted and what interrupts it hold different units, can free what they hold, and lose nothing.
#[test]
fn handlers_interrupt_each_step() {
    thread_local!(static HELD: RefCell<Vec<Range<usize>>> = const { RefCell::new(Vec::new()) });
    for (number, deed) in DEEDS.iter().enumerate() {
        for (other, handler) in HANDLERS.iter().enumerate() {
            for step in 0.. {
                let ground = Ground::new();
                let mut held = Vec::new();
                let interrupts = Box::new(move || HELD.set(handler(ground)));
                if !interrupted(step, interrupts, || held = deed(ground)) {
                    break;
                }
                held.extend(HELD.take());
                let in_use: usize = held.iter().map(Range::len).sum();
                let context = format!("deed {number}, handler {other}, step {step}: {held:?}");
                assert_eq!(ground.memory.row().free_units(), UNITS - in_use, "{context}");
                held.into_iter().for_each(|run| assert!(ground.cut(run, 0), "{context}"));
                assert_eq!(ground.alloc(UNITS), Some(0..UNITS), "{context}");
            }
        }
    }
}

/// Checks what is seen of a row while it changes: pieces in order, all units in one of them, and units 15 and 16 to 19,
/// which nobody changes, as they are. Returns whether some rests had no head.
fn look(ground: &Ground, context: &str) -> bool {
    let (mut end, mut rests, mut seen) = (0, false, Vec::new());
    ground.memory.row().walk(|used_for, units| {
        assert!(units.start == end && units.end > end, "{context}: {units:?} behind {end}");
        end = units.end;
        rests |= used_for == Use::Rests;
        seen.push((used_for, units));
    });
    assert_eq!(end, UNITS, "{context}");
    assert!(seen.ends_with(&[(Use::Run, 15..16), (Use::Free, 16..20)]), "{context}: {seen:?}");
    let stats = SmallStats::of(&ground.memory.row(), 1);
    assert!(stats.largest_free <= stats.free && stats.free + stats.blocks <= UNITS, "{stats:?}");
    rests
}

/// A look that is interrupted at any step, by anything, or interrupts anything, sees nothing that cannot be.
#[test]
fn looks_meet_changes() {
    const OTHERS: [Deed; 4] = [
        // A run that ends where a look has come, and a longer one in its place.
        |ground| {
            assert!(ground.cut(0..5, 0) && ground.cut(11..15, 3));
            once(11..14).chain(ground.alloc(11)).collect()
        },
        |ground| {
            assert!(ground.cut(0..5, 1));
            [0..1, 11..15].into_iter().chain(ground.alloc(10)).collect()
        },
        DEEDS[3],
        DEEDS[5],
    ];
    let mut torn = 0;
    for (number, deed) in OTHERS.iter().enumerate() {
        for step in 0.. {
            let ground = Ground::new();
            let context = format!("deed {number}, step {step}");
            let changes = Box::new(|| _ = deed(ground));
            let has_step = interrupted(step, changes, || torn += u32::from(look(ground, &context)));
            let ground = Ground::new();
            let looks = Box::new(move || _ = look(ground, &context));
            if !has_step & !interrupted(step, looks, || _ = deed(ground)) {
                break;
            }
        }
    }
    assert!(torn > 0, "no look has come between a head and its rests");
}

/// A free behind a search, which has not seen what it frees, and notes what it has seen. The next search finds it, and
/// the one after that need not look everywhere.
#[test]
fn what_is_freed_behind_a_search_is_found() {
    const UNITS: usize = 200;
    for step in 0.. {
        let memory: &Memory<Stepped> = Box::leak(Box::new(Memory::new(UNITS)));
        let alloc = |units| memory.row().alloc(Wanted { units, align: 1, offset: 0 });
        assert!(core::iter::from_fn(|| alloc(2)).count() == UNITS / 2);
        let frees = || assert!([180, 182, 184, 186].map(|unit| memory.row().cut(unit, 2, 0))[0]);
        let mut found = None;
        if !interrupted(step, Box::new(frees), || found = alloc(4)) {
            assert!(step >= 100, "{step} steps");
            break;
        }
        // A search that comes by while it is freed misses its beginning, or its end.
        match found.or_else(|| alloc(4)) {
            Some(180) => takes(2 * 16 + 4, 3, || alloc(4) == Some(184)),
            Some(184) => takes(2 * 16 + 4, 3, || alloc(4) == Some(180)),
            found => assert_eq!(found, Some(182), "step {step}"),
        }
    }
}

/// Does `work`, which succeeds, in at most so many loads and read-modify-writes.
#[track_caller]
fn takes(loads: u64, swaps: u64, work: impl FnOnce() -> bool) {
    let (is_done, taken) = counted(work);
    assert!(is_done);
    assert!(taken.0 <= loads && taken.1 <= swaps, "{taken:?}, may be {loads} and {swaps}");
}

#[test]
fn operations_take_what_is_said() {
    const UNITS: usize = 4000;
    let memory = Memory::<Stepped>::new(UNITS);
    let row = memory.row();
    let allocs = |units| move || row.alloc(Wanted { units, align: 1, offset: 0 }).is_some();
    // In one word: a load to find it, and one to claim or clear it.
    takes(2, 1, allocs(1));
    takes(1, 1, || row.cut(0, 1, 0));
    // Across 50 words: a read-modify-write for each, and one for the head.
    takes(2 * 50 + 2, 51, allocs(100));
    takes(3 * 50 + 2, 51, || row.cut(0, 100, 0));
    takes(2 * 50 + 2, 51, allocs(100));
    takes(50 + 2, 0, || row.run_at(0) == Ok(100));
    takes(3 * 50 + 5, 52, || row.grow(0, 100, 200));
    takes(5 * 50 + 4, 52, || row.cut(0, 200, 100));
    assert!(row.cut(0, 100, 0));
    // A look reads each word once.
    takes(UNITS as u64 / 2, 0, || SmallStats::of(&row, 1).free == UNITS);
    // Nothing but single units is free. A refusal looks at each word and each piece, at most twice.
    let units = core::iter::from_fn(|| row.alloc(Wanted { units: 1, align: 1, offset: 0 }));
    assert_eq!(units.count(), UNITS);
    for free in [0, 1] {
        (0..UNITS).filter(|unit| unit % 2 == free).for_each(|unit| assert!(row.cut(unit, 1, 0)));
        // One for each word, and another where the free unit is the second.
        let once = ((1 + free) * UNITS / 2) as u64;
        takes(2 * once, 0, || !allocs(2)());
        takes(once, 0, || !allocs(2)());
        assert!((0..UNITS / 2).all(|_| allocs(1)()));
    }
}
