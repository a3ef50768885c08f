//! Runs the cases, and times them.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::subject::Subject;
use crate::crew::Crew;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ObjectCase {
    /// Allocate a million objects over all threads (with --quick 100,000), then free them in the same order
    Bulk,
    /// Allocate an object and free it at once
    Pair,
    /// Allocate on one thread, free on another
    Handover,
    /// Allocate 10,000 objects over all threads, then free them in disorder
    Burst,
}

/// The number of objects that are handed over together.
const PARCEL: usize = 500;
/// The number of pairs in a round of the case `Pair`.
const PAIRS: usize = 100_000;

/// A measurement.
pub struct ObjectPlan {
    pub case: ObjectCase,
    pub threads: usize,
    /// Allocations and as many frees, over all threads.
    pub pairs: u64,
    /// The time after which the measurement ends, complete or not.
    pub most: Duration,
    /// Objects of the case `Bulk`, over all threads.
    pub bulk: usize,
}

/// The result of a measurement.
#[derive(Clone, Copy)]
pub struct Figure {
    /// The time from the first thread's beginning to the last one's end.
    pub ns: f64,
    pub ops: u64,
    /// Whether it was complete before time was up.
    pub complete: bool,
    /// Whether every object had its own contents when it was freed, and none was refused.
    pub verified: bool,
}

/// What a thread did.
struct Done {
    begin: Instant,
    end: Instant,
    pairs: u64,
    verified: bool,
}

impl ObjectCase {
    /// Returns its name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Pair => "pair",
            Self::Handover => "handover",
            Self::Burst => "burst",
        }
    }
}

impl ObjectPlan {
    /// Returns whether the plan's number of threads can run the case.
    pub fn is_possible(&self) -> bool {
        self.case != ObjectCase::Handover || self.threads.is_multiple_of(2)
    }

    /// Returns a sufficient number of slots.
    pub fn slots(&self) -> u64 {
        1 << 20
    }

    /// Returns the objects of a thread in a round.
    fn round(&self) -> usize {
        match self.case {
            ObjectCase::Bulk => self.bulk / self.threads,
            ObjectCase::Pair => PAIRS,
            ObjectCase::Handover => PARCEL,
            ObjectCase::Burst => 10_000 / self.threads,
        }
    }

    /// Returns the rounds of a thread.
    fn rounds(&self) -> u64 {
        (self.pairs / (self.lanes() * self.round()) as u64).max(1)
    }

    /// Returns the number of threads that allocate.
    fn lanes(&self) -> usize {
        if self.case == ObjectCase::Handover { self.threads / 2 } else { self.threads }
    }

    /// Measures on one thread.
    pub fn run_alone<S: Subject>(&self, subject: &S) -> Figure {
        self.sum([self.work(subject, 0, || ())])
    }

    /// Measures on all threads.
    pub fn run<S>(&self, subject: &S) -> Figure
    where
        S: Subject + Sync + 'static,
        for<'s> S::Object<'s>: Send,
    {
        if self.case != ObjectCase::Handover {
            return self.sum(Crew::run(self.threads, |crew, thread| {
                self.work(subject, thread as u64, || crew.wait_asleep())
            }));
        }
        // Of two threads, one takes the sender out, and the other the receiver.
        let ends = (0..self.threads / 2).map(|_| sync_channel(8));
        let ends: Vec<_> =
            ends.map(|(to, from)| (Mutex::new(Some(to)), Mutex::new(Some(from)))).collect();
        self.sum(Crew::run(self.threads, |crew, thread| {
            let (pair, (to, from)) = (thread as u64 / 2, &ends[thread / 2]);
            match (taken(to, thread % 2 == 0), taken(from, thread % 2 == 1)) {
                (Some(to), _) => self.produce(subject, pair, to, crew),
                (_, Some(from)) => self.consume(subject, pair, &from, crew),
                _ => unreachable!("each thread takes one end"),
            }
        }))
    }

    fn sum(&self, done: impl IntoIterator<Item = Done>) -> Figure {
        let done: Vec<Done> = done.into_iter().collect();
        let begin = done.iter().map(|done| done.begin).min();
        let end = done.iter().map(|done| done.end).max();
        let ns = end.zip(begin).map_or(0.0, |(end, begin)| (end - begin).as_nanos() as f64);
        let ops = 2 * done.iter().map(|done| done.pairs).sum::<u64>();
        let whole = 2 * self.rounds() * (self.lanes() * self.round()) as u64;
        Figure { ns, ops, complete: ops >= whole, verified: done.iter().all(|done| done.verified) }
    }

    /// Runs a thread that frees what it allocated. The first round is not timed: it fetches the memory.
    fn work<S: Subject>(&self, subject: &S, thread: u64, start: impl FnOnce()) -> Done {
        let mut lane = subject.lane();
        let mut round = Round::new(self, thread);
        let mut objects = Vec::with_capacity(round.objects);
        round.play(self.case, subject, &mut lane, &mut objects);
        start();
        let begin = Instant::now();
        let mut pairs = 0;
        for _ in 0..self.rounds() {
            pairs += round.play(self.case, subject, &mut lane, &mut objects);
            if begin.elapsed() > self.most {
                break;
            }
        }
        Done { begin, end: Instant::now(), pairs, verified: round.verified }
    }

    /// Runs the thread that allocates. No other object has the contents of one of its own.
    fn produce<'s, S: Subject>(
        &self,
        subject: &'s S,
        pair: u64,
        to: SyncSender<Vec<S::Object<'s>>>,
        crew: &Crew,
    ) -> Done {
        let mut lane = subject.lane();
        crew.wait_asleep();
        let begin = Instant::now();
        let mut verified = true;
        let mut contents = own(pair)..;
        for _ in 0..self.rounds() {
            let of_parcel = contents.by_ref().take(PARCEL);
            let parcel: Vec<_> =
                of_parcel.filter_map(|contents| subject.alloc(&mut lane, contents)).collect();
            verified &= parcel.len() == PARCEL;
            if to.send(parcel).is_err() || begin.elapsed() > self.most {
                break;
            }
        }
        // The pairs are counted by the thread that frees.
        Done { begin, end: Instant::now(), pairs: 0, verified }
    }

    /// Runs the thread that frees.
    fn consume<'s, S: Subject>(
        &self,
        subject: &'s S,
        pair: u64,
        from: &Receiver<Vec<S::Object<'s>>>,
        crew: &Crew,
    ) -> Done {
        let mut lane = subject.lane();
        crew.wait_asleep();
        let begin = Instant::now();
        let (mut pairs, mut verified) = (0, true);
        for object in from.iter().flatten() {
            verified &= subject.free(&mut lane, object) == own(pair) + pairs;
            pairs += 1;
        }
        Done { begin, end: Instant::now(), pairs, verified }
    }
}

/// Takes the contents out, if they are for this thread.
fn taken<T>(end: &Mutex<Option<T>>, mine: bool) -> Option<T> {
    mine.then(|| end.lock().expect("nobody panics with it").take()).flatten()
}

/// Returns the contents of a thread's first object. Those of its others follow, and no other thread gets as far.
fn own(thread: u64) -> u64 {
    thread << 48
}

/// The operations that a thread repeats.
struct Round {
    objects: usize,
    /// The order in which the objects are freed.
    order: Vec<u32>,
    thread: u64,
    verified: bool,
}

impl Round {
    fn new(plan: &ObjectPlan, thread: u64) -> Self {
        let objects = plan.round();
        let mut order: Vec<u32> = (0..objects as u32).collect();
        fastrand::Rng::with_seed(thread).shuffle(&mut order);
        Self { objects, order, thread, verified: true }
    }

    /// Runs the round once, and returns the number of pairs of operations.
    fn play<'s, S: Subject>(
        &mut self,
        case: ObjectCase,
        subject: &'s S,
        lane: &mut S::Lane<'s>,
        objects: &mut Vec<Option<S::Object<'s>>>,
    ) -> u64 {
        match case {
            ObjectCase::Pair => self.pairs(subject, lane),
            _ => self.bulk(case, subject, lane, objects),
        }
    }

    fn pairs<'s, S: Subject>(&mut self, subject: &'s S, lane: &mut S::Lane<'s>) -> u64 {
        let own = own(self.thread);
        for value in own..own + self.objects as u64 {
            let object = black_box(subject.alloc(lane, value));
            self.verified &= object.is_some_and(|object| subject.free(lane, object) == value);
        }
        self.objects as u64
    }

    fn bulk<'s, S: Subject>(
        &mut self,
        case: ObjectCase,
        subject: &'s S,
        lane: &mut S::Lane<'s>,
        objects: &mut Vec<Option<S::Object<'s>>>,
    ) -> u64 {
        let own = own(self.thread);
        for value in 0..self.objects as u64 {
            objects.push(subject.alloc(lane, own | value));
        }
        let mut free = |value: usize, object: Option<S::Object<'s>>| {
            let freed = object.map(|object| subject.free(lane, object));
            self.verified &= freed == Some(own | value as u64);
        };
        if case == ObjectCase::Bulk {
            objects.drain(..).enumerate().for_each(|(value, object)| free(value, object));
        } else {
            let order = self.order.iter().map(|&value| value as usize);
            order.for_each(|value| free(value, objects[value].take()));
            objects.clear();
        }
        self.objects as u64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;

    use super::{ObjectCase, ObjectPlan};
    use crate::pool::subject::Subject;

    /// A pool of one slot, which everybody gets always.
    struct OneSlot(AtomicU64);

    impl Subject for OneSlot {
        type Object<'s> = ();
        type Lane<'s> = ();

        fn lane(&self) {}

        fn alloc(&self, (): &mut (), value: u64) -> Option<()> {
            self.0.store(value, Relaxed);
            // The other thread comes in between even where both share a processor.
            if value.is_multiple_of(64) {
                std::thread::yield_now();
            }
            Some(())
        }

        fn free(&self, (): &mut (), (): ()) -> u64 {
            self.0.load(Relaxed)
        }
    }

    #[test]
    fn a_slot_that_two_threads_get_is_noticed() {
        for case in [ObjectCase::Bulk, ObjectCase::Pair, ObjectCase::Handover, ObjectCase::Burst] {
            let most = Duration::from_secs(10);
            let plan = ObjectPlan { case, threads: 2, pairs: 200_000, most, bulk: 100_000 };
            let figure = plan.run(&OneSlot(AtomicU64::new(0)));
            assert!(!figure.verified, "{} after {} operations", case.name(), figure.ops);
        }
    }
}
