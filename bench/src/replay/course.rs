//! Runs threads that follow a trace, and wait for each other where they must.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::crew::Crew;

/// Not allocated yet.
const NOT_YET: u64 = 0;
/// The allocation was refused.
const REFUSED: u64 = 1;
/// The value that publishes a block at index 0; higher values publish higher indices.
const FIRST: u64 = 2;

/// The index of each block of the trace, shared by all threads.
///
/// A thread runs through its own operations freely. It only waits before it frees a block that another thread
/// allocates, until that has happened. The order of the trace rules out cycles.
pub struct Course<'a, S> {
    lanes: &'a [Vec<S>],
    places: Vec<AtomicU64>,
    stopped: AtomicBool,
}

impl<'a, S: Sync> Course<'a, S> {
    /// Creates a course for the operations of each lane on `blocks` blocks. Nothing is allocated yet.
    pub fn new(lanes: &'a [Vec<S>], blocks: usize) -> Self {
        let places = (0..blocks).map(|_| AtomicU64::new(NOT_YET)).collect();
        Self { lanes, places, stopped: AtomicBool::new(false) }
    }

    /// Runs `work` once for each lane, on as many threads, all of which begin together. A panic is returned as the
    /// error of its lane, after the others have been stopped.
    pub fn run<T: Send>(
        &self,
        work: impl Fn(&Crew, usize, &[S]) -> T + Sync,
    ) -> Vec<thread::Result<T>> {
        Crew::try_run(self.lanes.len(), |crew, lane| {
            let _stop = self.stop_on_panic();
            crew.wait_asleep();
            work(crew, lane, &self.lanes[lane])
        })
    }

    /// Stops the others if this thread panics before the result is dropped.
    pub fn stop_on_panic(&self) -> StopOnPanic<'_> {
        StopOnPanic(&self.stopped)
    }

    /// Publishes the index of a block, or `None` if its allocation was refused.
    pub fn publish(&self, block: u32, index: Option<u64>) {
        let place = index.map_or(REFUSED, |index| index + FIRST);
        // Release, with the Acquire in `place`: the free of a block comes after its allocation.
        self.places[block as usize].store(place, Ordering::Release);
    }

    /// Waits until the block is allocated, and returns its index, or `None` if there is nothing to free.
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

    /// Returns the index of the block, if its allocation has been tried.
    pub fn place(&self, block: u32) -> Option<Option<u64>> {
        // Acquire: pairs with the Release in `publish`.
        match self.places[block as usize].load(Ordering::Acquire) {
            NOT_YET => None,
            place => Some(place.checked_sub(FIRST)),
        }
    }

    /// Tells all threads to stop.
    pub fn stop(&self) {
        // Relaxed, as wherever `stopped` is read or written: it publishes nothing.
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns whether the threads were told to stop.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// See [`Course::stop_on_panic`].
pub struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}
