//! Threads that follow a trace, in step where they must.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::crew::Crew;

/// Not allocated yet.
const NOT_YET: u64 = 0;
/// The allocation was refused.
const REFUSED: u64 = 1;
/// A block at index 0 is published as this, and so on.
const FIRST: u64 = 2;

/// Where each block of the trace went, known to all threads.
///
/// A thread runs through its own operations freely; only before it frees a block that another thread
/// allocates does it wait until that has happened. The order of the trace makes that free of cycles.
pub struct Course<'a, S> {
    lanes: &'a [Vec<S>],
    places: Vec<AtomicU64>,
    stopped: AtomicBool,
}

impl<'a, S: Sync> Course<'a, S> {
    /// The operations of each lane, on so many blocks. Nothing is allocated yet.
    pub fn new(lanes: &'a [Vec<S>], blocks: usize) -> Self {
        let places = (0..blocks).map(|_| AtomicU64::new(NOT_YET)).collect();
        Self { lanes, places, stopped: AtomicBool::new(false) }
    }

    /// Runs `work` once for each lane, on as many threads, all of which begin together. A panic comes
    /// back as that lane's error, after the others have been stopped.
    pub fn run<T: Send>(&self, work: impl Fn(usize, &[S]) -> T + Sync) -> Vec<thread::Result<T>> {
        Crew::try_run(self.lanes.len(), |crew, lane| {
            let _stop = StopOnPanic(&self.stopped);
            crew.wait_asleep();
            work(lane, &self.lanes[lane])
        })
    }

    /// Says where the block went; `None` if it was refused.
    pub fn publish(&self, block: u32, index: Option<u64>) {
        let place = index.map_or(REFUSED, |index| index + FIRST);
        // Release, with the Acquire in `place`: who frees the block comes after who allocated it.
        self.places[block as usize].store(place, Ordering::Release);
    }

    /// Waits until the block is allocated: where it went, or `None` if there is nothing to free.
    pub fn wait(&self, block: u32) -> Option<u64> {
        const PATIENCE: u32 = 1000;
        let mut turns = 0;
        loop {
            match self.place(block) {
                Some(index) => return index,
                None if self.is_stopped() => return None,
                None => turns += 1,
            }
            if turns < PATIENCE { std::hint::spin_loop() } else { thread::yield_now() }
        }
    }

    /// Where the block went, if its allocation has been tried.
    pub fn place(&self, block: u32) -> Option<Option<u64>> {
        match self.places[block as usize].load(Ordering::Acquire) {
            NOT_YET => None,
            place => Some(place.checked_sub(FIRST)),
        }
    }

    /// Tells all threads to give up.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether somebody said so.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}
