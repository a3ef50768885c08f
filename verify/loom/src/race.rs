//! Races as data, and how loom runs them.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use loom::model::Builder;
use loom::sync::Arc;
use nbbs::{Buddy, metadata_words};

use crate::death::dies_after;
use crate::payload::Payload;
use crate::word::{LANES, LoomWord, Model, on_lane};

/// An operation of a thread.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Allocates a block, and keeps it if there is one.
    Alloc(u32),
    /// Frees the oldest block that the thread holds, if any, with its order.
    Free,
    /// Frees the oldest block that the thread holds, if any, without its order.
    FreeUnsized,
    /// Reserves units, if they are free, and gives them back.
    ReserveRelease(u64, u64),
    /// Reserves units, if they are free.
    Reserve(u64, u64),
    /// Gives units back.
    Release(u64, u64),
    /// Allocates this many units, and keeps them if there are any.
    Units(u64),
    /// Allocates units from the first number to the second, and keeps them if they are free.
    At(u64, u64),
    /// Frees the oldest run that the thread holds, if any.
    FreeRun,
    /// Makes the oldest run end there, shorter or longer, if that is possible.
    EndAt(u64),
    /// Gives back units of the oldest run, from the first number to the second, and keeps both sides.
    FreePart(u64, u64),
    /// Allocates up to a number of blocks of an order at once.
    Batch(u32, usize),
    /// Frees all blocks that the thread holds at once; they are all of this order.
    FreeBatch(u32),
    /// Begins to allocate a block, and dies after so many steps.
    Die(u32, usize),
    /// If a thread has died, mends. Then the block of this order at this unit, which that thread had claimed, must be
    /// seen. Takes the block, unless another has.
    Mend(u64, u32),
    /// Mends, though nobody has died.
    MendAll,
    /// Ends the thread's part here, unless that lane's part is done. It orders nothing.
    After(usize),
}

/// Which threads share notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    /// Each thread has its own.
    Own,
    /// All threads share the notes, and see any value of them that the memory model allows.
    Shared,
    /// All threads share the notes of paths, and each has its own other notes.
    OnePath,
}

/// A race on a small arena.
#[derive(Clone, Copy, Debug)]
pub struct Race {
    /// Its name on the command line.
    pub name: &'static str,
    /// The units of the arena.
    pub units: u64,
    /// The least order of its blocks.
    pub grain: u32,
    /// The operations that come first, with their lanes; the last lane is the main thread's.
    pub setup: &'static [(usize, Op)],
    /// What each thread does.
    pub lanes: &'static [&'static [Op]],
    /// Which threads share notes.
    pub notes: Notes,
    /// The models of `SeqCst`, and for each the most preemptions; `None` means any number.
    pub under: &'static [(Model, Option<usize>)],
}

/// The lane of the main thread.
pub const MAIN: usize = LANES - 1;

/// The outcome of a race under loom.
#[derive(Debug)]
pub struct Outcome {
    /// The number of executions.
    pub executions: u64,
    /// The time that it took.
    pub time: Duration,
    /// The first failure.
    pub failure: Option<String>,
}

impl Race {
    /// Runs the race under every execution that loom distinguishes, with at most this many preemptions.
    pub fn run(&self, model: Model, preemptions: Option<usize>) -> Outcome {
        let race = *self;
        check(model, preemptions, move || race.once())
    }

    fn once(&self) {
        let arena = Arc::new(Arena::new(self));
        let mut hands: Vec<Hands> = (0..LANES).map(Hands::new).collect();
        for &(lane, op) in self.setup {
            on_lane(lane);
            hands[lane].step(&arena, op);
        }
        let mut idle = hands.split_off(self.lanes.len());
        let threads = hands.into_iter().zip(self.lanes).map(|(mut hands, ops)| {
            let arena = Arc::clone(&arena);
            loom::thread::spawn(move || {
                on_lane(hands.lane);
                hands.play(&arena, ops);
                hands
            })
        });
        let threads: Vec<_> = threads.collect();
        idle.extend(threads.into_iter().map(|thread| thread.join().expect("loom ends the run")));

        if Model::Bare.is_chosen() {
            // Without fences the bounds do not hold; only the payloads are judged.
            return;
        }
        on_lane(MAIN);
        let buddy = arena.buddy();
        // For those that came before the death.
        let ops = self.lanes.iter().flat_map(|ops| *ops);
        ops.filter(|op| matches!(op, Op::Mend(..))).for_each(|&op| idle[0].step(&arena, op));
        buddy.audit().unwrap_or_else(|broken| panic!("audit: {broken}"));
        for mut hands in idle {
            hands.give_all(&arena);
        }
        let order = buddy.max_order();
        assert!(buddy.on(0).alloc(order).is_ok(), "not whole: no block of order {order}");
    }
}

/// The most time for a race under a model.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs `body` under every execution, and counts them.
pub fn check(
    model: Model,
    preemptions: Option<usize>,
    body: impl Fn() + Sync + Send + 'static,
) -> Outcome {
    model.choose();
    let executions = std::sync::Arc::new(AtomicU64::new(0));
    let counted = executions.clone();
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 100_000;
    builder.max_duration = Some(LIMIT);
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| {
        builder.check(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            body();
        });
    }));
    let time = start.elapsed();
    let failure = result.err().map(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        text.unwrap_or("a panic without a message").lines().next().unwrap_or("").to_owned()
    });
    // Loom ends silently when its time is up.
    let failure = failure.or_else(|| (time >= LIMIT).then(|| "not done in time".to_owned()));
    Outcome { executions: executions.load(Ordering::Relaxed), time, failure }
}

/// Nobody has died, or a thread has, or another has its block.
const ALIVE: usize = 0;
const DEAD: usize = 1;
const TAKEN: usize = 2;

struct Arena {
    words: Box<[LoomWord]>,
    payload: Payload,
    units: u64,
    /// The lanes whose part is done; loom does not track this.
    done: [AtomicBool; LANES],
    /// Whether a thread has died, as the kernel tells who asks, and whether its block has been taken.
    death: loom::sync::atomic::AtomicUsize,
}

impl Arena {
    fn new(race: &Race) -> Self {
        /// The notes of the one lane of a small arena come first.
        const HINTS: Range<usize> = 0..16;
        /// Among them, the notes of paths, as `lane/notes.rs` in nbbs lays them out.
        const PATHS: Range<usize> = 4..8;
        let words = (0..metadata_words(race.units)).map(|place| {
            let own = match race.notes {
                Notes::Own => HINTS.contains(&place),
                Notes::OnePath => HINTS.contains(&place) && !PATHS.contains(&place),
                Notes::Shared => false,
            };
            if own { LoomWord::own() } else { LoomWord::default() }
        });
        let payload = Payload::new(race.units, race.grain);
        let done = [const { AtomicBool::new(false) }; LANES];
        let death = loom::sync::atomic::AtomicUsize::new(ALIVE);
        Self { words: words.collect(), payload, units: race.units, done, death }
    }

    fn buddy(&self) -> Buddy<'_, LoomWord> {
        Buddy::new(&self.words, self.units).expect("as many words as it takes")
    }
}

/// A thread, and what it holds.
struct Hands {
    lane: usize,
    blocks: Vec<(u64, u32)>,
    reservations: Vec<(u64, u64)>,
    runs: Vec<Range<u64>>,
}

impl Hands {
    fn new(lane: usize) -> Self {
        Self { lane, blocks: Vec::new(), reservations: Vec::new(), runs: Vec::new() }
    }

    fn play(&mut self, arena: &Arena, ops: &[Op]) {
        for &op in ops {
            match op {
                Op::After(lane) if arena.done[lane].load(Ordering::Relaxed) => {}
                Op::After(_) => return,
                op => self.step(arena, op),
            }
        }
        arena.done[self.lane].store(true, Ordering::Relaxed);
    }

    fn step(&mut self, arena: &Arena, op: Op) {
        let buddy = arena.buddy();
        let lane = buddy.on(0);
        match op {
            Op::Alloc(order) => {
                if let Ok(index) = lane.alloc(order) {
                    arena.payload.take(self.lane, index, order);
                    self.blocks.push((index, order));
                }
            }
            Op::Free if self.blocks.is_empty() => {}
            Op::Free => {
                let (index, order) = self.blocks.remove(0);
                arena.payload.give(self.lane, index, order);
                assert_eq!(lane.free_sized(index, order), Ok(()), "lost");
            }
            Op::FreeUnsized => {
                let (index, order) = self.blocks.remove(0);
                arena.payload.give(self.lane, index, order);
                assert_eq!(lane.free(index), Ok(1 << order), "lost");
            }
            Op::Reserve(start, end) => {
                if buddy.reserve(start..end).is_ok() {
                    (start..end).for_each(|unit| arena.payload.take(self.lane, unit, 0));
                    self.reservations.push((start, end));
                }
            }
            Op::Release(start, end) => {
                if let Some(place) =
                    self.reservations.iter().position(|&range| range == (start, end))
                {
                    self.reservations.remove(place);
                    (start..end).for_each(|unit| arena.payload.give(self.lane, unit, 0));
                    assert_eq!(buddy.release(start..end), Ok(()), "lost");
                }
            }
            Op::ReserveRelease(start, end) => {
                self.step(arena, Op::Reserve(start, end));
                self.step(arena, Op::Release(start, end));
            }
            Op::Batch(order, count) => {
                let mut blocks = vec![0; count];
                let got = lane.alloc_batch(order, &mut blocks).unwrap_or(0);
                for &index in &blocks[..got] {
                    arena.payload.take(self.lane, index, order);
                    self.blocks.push((index, order));
                }
            }
            Op::FreeBatch(order) => {
                let blocks: Vec<u64> = self.blocks.drain(..).map(|(index, _)| index).collect();
                blocks.iter().for_each(|&index| arena.payload.give(self.lane, index, order));
                assert_eq!(lane.free_batch(order, &blocks), Ok(()), "lost");
            }
            Op::Die(order, steps) => {
                assert!(dies_after(steps, || _ = lane.alloc(order)), "did not die");
                arena.death.store(DEAD, Ordering::Release);
            }
            Op::Mend(index, order) if arena.death.load(Ordering::Acquire) != ALIVE => {
                buddy.mend();
                assert_eq!(buddy.order_of(index), Ok(order), "hidden");
                let taken =
                    arena.death.compare_exchange(DEAD, TAKEN, Ordering::AcqRel, Ordering::Relaxed);
                if taken.is_ok() {
                    arena.payload.take(self.lane, index, order);
                    self.blocks.push((index, order));
                }
            }
            Op::Mend(..) => {}
            Op::MendAll => buddy.mend(),
            Op::After(_) => unreachable!("only between the steps of a race"),
            Op::Units(_) | Op::At(..) | Op::FreeRun | Op::EndAt(_) | Op::FreePart(..) => {
                self.run_step(arena, op);
            }
        }
    }

    fn run_step(&mut self, arena: &Arena, op: Op) {
        let (buddy, payload) = (arena.buddy(), &arena.payload);
        let lane = buddy.on(0);
        let claimed = match op {
            Op::Units(units) => lane.alloc_units(units).ok().map(|start| start..start + units),
            Op::At(start, end) => lane.alloc_at(start, end - start).ok().map(|_| start..end),
            _ => None,
        };
        if let Some(run) = claimed {
            payload.take_units(self.lane, run.clone());
            self.runs.push(run);
            return;
        }
        let Some(run) = self.runs.first().cloned() else { return };
        match op {
            Op::FreeRun => {
                self.runs.remove(0);
                payload.give_units(self.lane, run.clone());
                assert_eq!(lane.free_units(run.start, run.end - run.start), Ok(()), "lost");
            }
            Op::EndAt(end) if end < run.end => {
                payload.give_units(self.lane, end..run.end);
                assert_eq!(lane.shrink(run.start, end - run.start), Ok(()), "not shrunk");
                self.runs[0] = run.start..end;
            }
            Op::EndAt(end) if lane.grow(run.start, end - run.start).is_ok() => {
                payload.take_units(self.lane, run.end..end);
                self.runs[0] = run.start..end;
            }
            Op::FreePart(from, to) => {
                payload.give_units(self.lane, from..to);
                assert_eq!(lane.free_part(run.start, from..to), Ok(()), "not freed");
                self.runs[0] = run.start..from;
                self.runs.push(to..run.end);
                self.runs.retain(|run| !run.is_empty());
            }
            _ => {}
        }
    }

    fn give_all(&mut self, arena: &Arena) {
        for (start, end) in self.reservations.clone() {
            self.step(arena, Op::Release(start, end));
        }
        while !self.blocks.is_empty() {
            self.step(arena, Op::FreeUnsized);
        }
        while !self.runs.is_empty() {
            self.step(arena, Op::FreeRun);
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} executions in {:.1} s", self.executions, self.time.as_secs_f64())
    }
}
