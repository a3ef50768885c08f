//! Runs one thread of a workload.

use std::sync::{Mutex, MutexGuard, PoisonError};

use testkit::{BackEnd, Block};

use super::gauge::{Latency, Stretch, measured};
use crate::clock::Clock;
use crate::counted::count;
use crate::crew::Crew;

/// How many times as long as a stretch a preparation may take, or a stretch that has to be completed.
pub const LONG: u64 = 10;

/// The nanoseconds that what is short is repeated for: long beside the effects of the clock and the scheduler.
pub const ENOUGH_NS: f64 = 20e6;

/// How many times as long it is repeated at most, with all that is not timed.
pub const REPEATS: u64 = 25;

/// The settings of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The order of the blocks, if the workload uses one.
    pub order: u32,
    /// The number of threads.
    pub threads: usize,
    /// The most threads of any case of this run: LLFree's shares depend on them.
    pub max_threads: usize,
    /// The ticks after which a stretch ends, complete or not.
    pub limit_ticks: u64,
    /// The ticks that what is short is repeated for: those of [`ENOUGH_NS`], unless a stretch may not take so long.
    pub enough_ticks: u64,
    /// Whether each operation is timed by itself.
    pub latency: bool,
    /// The most blocks that a thread holds.
    pub most_held: usize,
}

impl Setting {
    /// Returns settings for a number of threads, with a limit in nanoseconds for each stretch, and blocks of order 0.
    pub fn of(threads: usize, limit_ns: f64, clock: &Clock) -> Self {
        let ticks = |ns: f64| (ns / clock.ns(1)) as u64;
        Self {
            order: 0,
            threads,
            max_threads: threads,
            limit_ticks: ticks(limit_ns),
            enough_ticks: ticks(limit_ns.min(ENOUGH_NS)),
            latency: false,
            most_held: usize::MAX,
        }
    }
}

/// The state that the threads of a round share.
pub struct Common<'a> {
    back_end: &'a dyn BackEnd,
    clock: &'a Clock,
    setting: Setting,
    /// Blocks of all threads, while they are dealt out anew.
    table: Mutex<Vec<Block>>,
    /// Blocks on their way to another thread.
    mail: Vec<Mutex<Vec<Block>>>,
}

impl<'a> Common<'a> {
    /// Creates the state with nothing allocated.
    pub fn new(back_end: &'a dyn BackEnd, setting: Setting, clock: &'a Clock) -> Self {
        let mail = (0..setting.threads).map(|_| Mutex::default()).collect();
        Self { back_end, clock, setting, table: Mutex::default(), mail }
    }

    /// Returns the blocks that no thread has taken out.
    pub fn into_mail(self) -> Vec<Block> {
        let taken =
            |mutex: Mutex<Vec<Block>>| mutex.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.mail.into_iter().flat_map(taken).chain(taken(self.table)).collect()
    }
}

/// A thread: what it holds, and what it did.
pub struct Worker<'a> {
    common: &'a Common<'a>,
    crew: &'a Crew,
    pub lane: usize,
    pub random: fastrand::Rng,
    pub held: Vec<Block>,
    pub stretches: Vec<Stretch>,
    pub allocs: u64,
    pub frees: u64,
    /// Allocations that were refused.
    pub refused: u64,
    /// Frees of held blocks that were refused.
    pub wrong_frees: u64,
    deadline: u64,
    late: bool,
    short: bool,
    latency: Option<Latency>,
}

impl<'a> Worker<'a> {
    /// Creates a thread that holds nothing.
    pub fn new(common: &'a Common<'a>, crew: &'a Crew, lane: usize) -> Self {
        let share = common.back_end.units() as usize / common.setting.threads + 1;
        let share = share.min(common.setting.most_held);
        // All of it is written to, so that no page fault is left in it.
        let mut held = vec![Block { index: 1, order: 0 }; share];
        held.clear();
        Self {
            common,
            crew,
            lane,
            random: fastrand::Rng::with_seed(lane as u64),
            held,
            stretches: Vec::new(),
            allocs: 0,
            frees: 0,
            refused: 0,
            wrong_frees: 0,
            deadline: 0,
            late: false,
            short: false,
            latency: None,
        }
    }

    pub fn setting(&self) -> Setting {
        self.common.setting
    }

    pub fn order(&self) -> u32 {
        self.common.setting.order
    }

    pub fn threads(&self) -> usize {
        self.common.setting.threads
    }

    pub fn units(&self) -> u64 {
        self.common.back_end.units()
    }

    /// Returns the thread's share of a number of things; the first threads get the remainder.
    pub fn share(&self, things: u64) -> u64 {
        let (threads, lane) = (self.threads() as u64, self.lane as u64);
        things / threads + u64::from(lane < things % threads)
    }

    /// Returns the largest order for a mix of orders: a thread's share has at least four blocks of it.
    pub fn largest_of_mix(&self) -> u32 {
        const USUAL: u32 = 10;
        let share = (self.units() / self.threads() as u64 / 4).max(1);
        share.ilog2().min(USUAL).min(self.common.back_end.max_order())
    }

    /// Allocates a block.
    #[inline]
    pub fn alloc(&mut self, order: u32) -> Option<Block> {
        let Common { back_end, clock, .. } = self.common;
        let index = match &mut self.latency {
            None => back_end.alloc(self.lane, order),
            Some(latency) => latency.time(clock, || back_end.alloc(self.lane, order)),
        };
        match index {
            Some(index) => {
                self.allocs += 1;
                Some(Block { index, order })
            }
            None => {
                self.refused += 1;
                None
            }
        }
    }

    /// Frees a block.
    #[inline]
    pub fn free(&mut self, block: Block) {
        let Common { back_end, clock, .. } = self.common;
        let free = || back_end.free(self.lane, block.index, block.order);
        let freed = match &mut self.latency {
            None => free(),
            Some(latency) => latency.time(clock, free),
        };
        match freed {
            Ok(()) => self.frees += 1,
            Err(_) => self.wrong_frees += 1,
        }
    }

    /// Allocates a block and keeps it. Returns `false` if it was refused.
    #[inline]
    pub fn hold(&mut self, order: u32) -> bool {
        let block = self.alloc(order);
        self.held.extend(block);
        block.is_some()
    }

    /// Frees the block that was kept last. Returns `false` if there is none.
    #[inline]
    pub fn free_last(&mut self) -> bool {
        let block = self.held.pop();
        block.inspect(|&block| self.free(block)).is_some()
    }

    /// Frees one of the kept blocks, at random, and returns it.
    #[inline]
    pub fn free_any(&mut self) -> Option<Block> {
        let place = self.held.len().checked_sub(1).map(|last| self.random.usize(..=last))?;
        let block = self.held.swap_remove(place);
        self.free(block);
        Some(block)
    }

    /// Allocates a block and frees it.
    #[inline]
    pub fn pair(&mut self) -> bool {
        if let Some(block) = self.alloc(self.order()) {
            self.free(block);
        }
        true
    }

    /// Runs `step` the given number of times, or until it returns `false`, or until time is up.
    #[inline]
    pub fn repeat(&mut self, times: u64, mut step: impl FnMut(&mut Self) -> bool) {
        for time in 0..times {
            if (time.is_multiple_of(32) && self.is_late()) || !step(self) {
                self.short = true;
                return;
            }
        }
    }

    /// Runs `step` as often as there are kept blocks.
    pub fn repeat_all(&mut self, step: impl FnMut(&mut Self) -> bool) {
        self.repeat(self.held.len() as u64, step);
    }

    /// Runs `step` the given number of times, or until time is up: in a steady state fewer steps say as much. If `step`
    /// returns `false`, the stretch ends incomplete.
    #[inline]
    pub fn up_to(&mut self, times: u64, mut step: impl FnMut(&mut Self) -> bool) {
        for time in 0..times {
            if time.is_multiple_of(32) && self.is_late() {
                return;
            }
            if !step(self) {
                self.short = true;
                return;
            }
        }
    }

    /// Runs `step` until it returns `false`. If time is up before, the stretch ends incomplete, or the next one begins so.
    #[inline]
    pub fn until_done(&mut self, step: impl FnMut(&mut Self) -> bool) {
        self.until_late(step);
        self.short |= self.late;
    }

    /// Runs `step` until time is up, or until it returns `false`: in a steady state both say as much.
    #[inline]
    pub fn until_late(&mut self, mut step: impl FnMut(&mut Self) -> bool) {
        let mut turns = 0_u32;
        while (!turns.is_multiple_of(32) || !self.is_late()) && step(self) {
            turns = turns.wrapping_add(1);
        }
    }

    /// Forgets that something was incomplete, since nothing of it is left.
    pub fn begin_anew(&mut self) {
        self.short = false;
    }

    pub fn is_late(&mut self) -> bool {
        self.late = self.late || self.common.clock.ticks() > self.deadline;
        self.late
    }

    /// Waits until the other threads are here, too.
    pub fn meet(&self) {
        self.crew.wait_asleep();
    }

    /// Runs work that is not measured, while the other threads do so, too. It may take longer than a stretch.
    pub fn prepare(&mut self, work: impl FnOnce(&mut Self)) {
        self.meet();
        self.set_deadline(self.common.clock.ticks(), LONG);
        work(self);
        self.meet();
    }

    /// Runs work that is measured, and begins it together with the other threads.
    pub fn stretch(&mut self, name: &'static str, work: impl FnOnce(&mut Self)) {
        self.stretch_of(1, name, work);
    }

    /// Does the same, with `times` times the time.
    pub fn stretch_of(&mut self, times: u64, name: &'static str, work: impl FnOnce(&mut Self)) {
        self.latency = self.setting().latency.then(Latency::new);
        self.crew.wait_awake();
        let before = self.operations();
        let began = self.common.clock.ticks();
        self.set_deadline(began, times);
        let ((), counts) = count(|| measured(|| work(self)));
        let ended = self.common.clock.ticks();
        let ops = self.operations() - before;
        let (name, complete, latency) = (name.into(), !self.short, self.latency.take());
        self.stretches.push(Stretch { name, began, ended, ops, counts, complete, latency });
    }

    /// Deals the kept blocks of all threads out anew, at random.
    pub fn shuffle_over_all(&mut self) {
        lock(&self.common.table).append(&mut self.held);
        self.meet();
        if self.lane == 0 {
            self.random.shuffle(&mut lock(&self.common.table));
        }
        self.meet();
        let share = self.share(lock(&self.common.table).len() as u64) as usize;
        // All threads have seen how many there are.
        self.meet();
        let mut table = lock(&self.common.table);
        let rest = table.len() - share;
        self.held.extend(table.drain(rest..));
    }

    /// Leaves the kept blocks to another thread, and takes what was left for this one.
    pub fn swap_with(&mut self, lane: usize) {
        std::mem::swap(&mut self.held, &mut lock(&self.common.mail[lane]));
    }

    /// Returns how often it has asked for a block, or given one back.
    fn operations(&self) -> u64 {
        self.allocs + self.refused + self.frees
    }

    fn set_deadline(&mut self, began: u64, times: u64) {
        self.late = false;
        self.deadline = began + self.setting().limit_ticks * times;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
