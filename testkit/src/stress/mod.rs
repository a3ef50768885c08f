//! Runs threads that allocate, free and hand blocks to each other, and checks every step with the owner map.

mod load;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

use nbbs::sync::AtomicU64;

use crate::program::{Held, Player, RunOp, run_op};
use crate::steered::jitter;
use crate::whole::{check_whole, free};
use crate::{BackEnd, Block, Oracle, Violation};
pub use load::{Load, Report};

/// Puts `load` on an allocator of which nothing is held, then returns everything and checks that the memory is whole
/// again.
///
/// # Errors
/// The first violation. A panic of the allocator counts as one.
pub fn stress<B: BackEnd>(back_end: &B, oracle: &Oracle, load: &Load) -> Result<Report, Violation> {
    stress_beside(back_end, oracle, load, |_| Ok(()))
}

/// Runs [`stress`] with another thread beside it, which runs `side` until its argument is false (at once, if the stress
/// was done before). It leaves no trace in the owner map except reserved units.
///
/// # Errors
/// The first violation, including those of `side`.
pub fn stress_beside<B: BackEnd>(
    back_end: &B,
    oracle: &Oracle,
    load: &Load,
    side: impl FnOnce(&AtomicBool) -> Result<(), Violation> + Send,
) -> Result<Report, Violation> {
    let shared = Shared {
        running: AtomicBool::new(true),
        start: Barrier::new(load.threads + 1),
        exchange: (0..2 * load.threads).map(|_| AtomicU64::new(0)).collect(),
        first: Mutex::new(None),
    };
    let report = thread::scope(|scope| {
        let side = scope.spawn(|| {
            shared.start.wait();
            shared.stop_if_wrong(side(&shared.running));
        });
        let spawn = |lane| {
            let mut worker = Worker::new(back_end, oracle, load, &shared, lane);
            scope.spawn(move || {
                worker.shared.start.wait();
                let seed = load.seed ^ lane as u64;
                let result = match load.jitter {
                    0 => worker.run(),
                    one_in => jitter(seed, one_in, || worker.run()),
                };
                worker.shared.stop_if_wrong(result);
                worker.report
            })
        };
        let workers: Vec<_> = (0..load.threads).map(spawn).collect();
        let report = workers.into_iter().map(|worker| shared.report_of(worker.join())).sum();
        shared.running.store(false, Ordering::Relaxed);
        shared.report_of(side.join());
        report
    });
    if let Some(violation) = shared.first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(violation);
    }
    for slot in &shared.exchange {
        decode(slot.load(Ordering::Acquire))
            .map_or(Ok(()), |block| free(back_end, oracle, 0, block))?;
    }
    oracle.check_empty()?;
    check_whole(back_end, oracle)?;
    Ok(report)
}

/// The state that the threads of a run share.
struct Shared {
    running: AtomicBool,
    /// No thread begins before all exist: otherwise the first is done before the last is created.
    start: Barrier,
    /// Blocks on their way to another thread.
    exchange: Vec<AtomicU64>,
    first: Mutex<Option<Violation>>,
}

impl Shared {
    fn stop_if_wrong(&self, result: Result<(), Violation>) {
        if let Err(violation) = result {
            self.running.store(false, Ordering::Relaxed);
            self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(violation);
        }
    }

    fn report_of<T: Default>(&self, joined: thread::Result<T>) -> T {
        joined.unwrap_or_else(|payload| {
            self.stop_if_wrong(Err(Violation::from_panic(&*payload)));
            T::default()
        })
    }
}

struct Worker<'a, B> {
    back_end: &'a B,
    oracle: &'a Oracle,
    load: &'a Load,
    shared: &'a Shared,
    lane: usize,
    random: fastrand::Rng,
    held: Vec<Block>,
    runs: Vec<Held>,
    held_units: u64,
    report: Report,
}

impl<'a, B: BackEnd> Worker<'a, B> {
    fn new(
        back_end: &'a B,
        oracle: &'a Oracle,
        load: &'a Load,
        shared: &'a Shared,
        lane: usize,
    ) -> Self {
        let random = fastrand::Rng::with_seed(load.seed << 16 | lane as u64);
        let (held, report) = (Vec::new(), Report::default());
        Self {
            back_end,
            oracle,
            load,
            shared,
            lane: lane % load.lanes,
            random,
            held,
            runs: Vec::new(),
            held_units: 0,
            report,
        }
    }

    fn run(&mut self) -> Result<(), Violation> {
        let share = self.back_end.units() * self.load.occupancy / 100 / self.load.threads as u64;
        for _ in 0..self.load.operations {
            if !self.shared.running.load(Ordering::Relaxed) {
                return Ok(());
            }
            if self.random.u32(0..100) < self.load.runs {
                self.run_step()?;
                continue;
            }
            // Steps go towards the share twice as often as away from it.
            if self.random.u8(0..3) < if self.held_units < share { 2 } else { 1 } {
                self.alloc()?;
            } else {
                self.free()?;
            }
        }
        while let Some(block) = self.held.pop() {
            free(self.back_end, self.oracle, self.lane, block)?;
        }
        while let Some(&run) = self.runs.last() {
            self.player().free(run)?;
        }
        Ok(())
    }

    /// Does an operation on runs; above the share, one that frees.
    fn run_step(&mut self) -> Result<(), Violation> {
        let units = self.back_end.units();
        let share = units * self.load.occupancy / 100 / self.load.threads as u64;
        let pick = self.random.usize(..64);
        let longest = if self.random.bool() { 40 } else { share.max(1) };
        let (at, len) = (self.random.u64(..units), self.random.u64(..longest));
        let op = if self.held_units > share {
            RunOp::Free { pick }
        } else {
            run_op(units, self.random.u8(..), pick, at, len)
        };
        let granted = self.player().step(&op)?;
        self.report.run_operations += u64::from(granted);
        let blocks = self.held.iter().map(|block| block.len());
        let runs = self.runs.iter().map(|run| run.len);
        self.held_units = blocks.chain(runs).sum();
        Ok(())
    }

    fn player(&mut self) -> Player<'_, B> {
        let Self { back_end, oracle, lane, held, runs, .. } = self;
        Player { subject: *back_end, oracle, lane: *lane, told: *lane, held, runs, spec: None }
    }

    fn alloc(&mut self) -> Result<(), Violation> {
        let order = self.load.orders[self.random.usize(..self.load.orders.len())];
        match self.back_end.alloc(self.lane, order) {
            Some(index) => {
                self.hold(self.oracle.take(self.lane, index, order)?);
                self.report.allocations += 1;
                Ok(())
            }
            None => {
                self.report.refusals += 1;
                self.free()
            }
        }
    }

    fn hold(&mut self, block: Block) {
        self.held_units += block.len();
        self.held.push(block);
    }

    fn free(&mut self) -> Result<(), Violation> {
        if self.held.is_empty() {
            return Ok(());
        }
        let block = self.held.swap_remove(self.random.usize(..self.held.len()));
        self.held_units -= block.len();
        if self.random.u32(0..100) >= self.load.hand_over {
            self.report.own_frees += 1;
            return free(self.back_end, self.oracle, self.lane, block);
        }
        let slot = &self.shared.exchange[self.random.usize(..self.shared.exchange.len())];
        // AcqRel: a block is handed over as users do it, together with everything done to it before.
        match decode(slot.swap(encode(block), Ordering::AcqRel)) {
            Some(other) => {
                self.report.foreign_frees += 1;
                free(self.back_end, self.oracle, self.lane, other)
            }
            None => Ok(()),
        }
    }
}

/// Encodes a block in one word; 0 is none.
fn encode(block: Block) -> u64 {
    block.index << 6 | u64::from(block.order) | 1 << 63
}

fn decode(word: u64) -> Option<Block> {
    (word != 0).then_some(Block { index: word << 1 >> 7, order: (word & 63) as u32 })
}
