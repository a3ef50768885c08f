//! Threads that allocate, write, check and free.

use std::thread;
use std::time::Instant;

use anyhow::anyhow;

use super::range::Reserved;
use crate::blocks::{Held, draw, take_any};
use crate::mapping::Contents;

/// A thread's share, which outlives the thread.
#[derive(Debug)]
pub struct Worker {
    lane: usize,
    random: fastrand::Rng,
    held: Vec<Held>,
    /// Pages in `held`.
    pages: u64,
    operations: u64,
    blocks: u64,
}

impl Worker {
    /// Creates the worker of a lane.
    pub fn new(lane: usize) -> Self {
        let random = fastrand::Rng::with_seed(lane as u64);
        Self { lane, random, held: Vec::new(), pages: 0, operations: 0, blocks: 0 }
    }

    /// Allocates until it holds `share` pages.
    pub fn fill(&mut self, reserved: &Reserved<'_>, share: u64) -> anyhow::Result<()> {
        while self.pages < share {
            self.alloc(reserved)?;
        }
        Ok(())
    }

    /// Frees and allocates at random until `end`, around `share` pages.
    pub fn churn(
        &mut self,
        reserved: &Reserved<'_>,
        share: u64,
        end: Instant,
    ) -> anyhow::Result<()> {
        while Instant::now() < end {
            if self.pages < share && self.random.bool() {
                self.alloc(reserved)?;
            } else {
                self.free_any(reserved)?;
            }
        }
        self.fill(reserved, share)
    }

    /// Frees random blocks until it holds no more than `share` pages.
    pub fn free(&mut self, reserved: &Reserved<'_>, share: u64) -> anyhow::Result<()> {
        while self.pages > share {
            self.free_any(reserved)?;
        }
        Ok(())
    }

    fn alloc(&mut self, reserved: &Reserved<'_>) -> anyhow::Result<()> {
        let order = draw(&mut self.random, reserved.huge_order());
        let index = reserved.alloc(self.lane, order)?;
        self.blocks += 1;
        let tag = (self.lane as u64) << 48 | self.blocks;
        let held = Held { index, order, tag };
        reserved.replace(held, Contents::Zero, Contents::Of(tag))?;
        self.held.push(held);
        self.pages += 1 << order;
        self.operations += 1;
        Ok(())
    }

    fn free_any(&mut self, reserved: &Reserved<'_>) -> anyhow::Result<()> {
        if let Some(held) = take_any(&mut self.random, &mut self.held) {
            let contents = Contents::Of(held.tag);
            reserved.replace(held, contents, contents)?;
            reserved.free(self.lane, held.index, held.order)?;
            self.pages -= 1 << held.order;
            self.operations += 1;
        }
        Ok(())
    }
}

/// Lets each worker act on a thread of its own. Returns the counts of what they did.
pub fn on_threads(
    workers: &mut [Worker],
    act: impl Fn(&mut Worker) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<u64> {
    let operations =
        |workers: &[Worker]| workers.iter().map(|worker| worker.operations).sum::<u64>();
    let before = operations(workers);
    thread::scope(|scope| {
        let act = &act;
        let threads: Vec<_> =
            workers.iter_mut().map(|worker| scope.spawn(|| act(worker))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
    })?;
    Ok(operations(workers) - before)
}

/// Gives each worker what the next one holds.
pub fn pass_on(workers: &mut [Worker]) {
    let mut held: Vec<_> =
        workers.iter_mut().map(|worker| std::mem::take(&mut worker.held)).collect();
    held.rotate_left(1);
    for (worker, held) in workers.iter_mut().zip(held) {
        worker.pages = held.iter().map(|held| 1 << held.order).sum();
        worker.held = held;
    }
}
