//! Runs threads that begin together.

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A number of threads, and the two ways in which they wait for each other.
pub struct Crew {
    threads: usize,
    asleep: Barrier,
    arrived: AtomicUsize,
}

impl Crew {
    /// Runs `work` on this number of threads, each with its lane. A panic is passed on to the caller.
    pub fn run<T: Send>(threads: usize, work: impl Fn(&Crew, usize) -> T + Sync) -> Vec<T> {
        let done = Self::try_run(threads, work).into_iter();
        done.map(|done| done.unwrap_or_else(|payload| resume_unwind(payload))).collect()
    }

    /// Does the same, but returns a panic as the error of its lane.
    pub fn try_run<T: Send>(
        threads: usize,
        work: impl Fn(&Crew, usize) -> T + Sync,
    ) -> Vec<thread::Result<T>> {
        let crew = Self { threads, asleep: Barrier::new(threads), arrived: AtomicUsize::new(0) };
        let (crew, work) = (&crew, &work);
        thread::scope(|scope| {
            let spawn = |lane| scope.spawn(move || work(crew, lane));
            let members: Vec<_> = (0..threads).map(spawn).collect();
            members.into_iter().map(thread::ScopedJoinHandle::join).collect()
        })
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Waits for all threads asleep, so that a waiting thread takes no time from a working one.
    pub fn wait_asleep(&self) {
        self.asleep.wait();
    }

    /// Waits for all threads awake, so that all continue within a fraction of a microsecond.
    pub fn wait_awake(&self) {
        const PATIENCE: u32 = 100_000;
        let ticket = self.arrived.fetch_add(1, Ordering::SeqCst);
        let all = (ticket / self.threads + 1) * self.threads;
        let mut turns = 0;
        while self.arrived.load(Ordering::SeqCst) < all {
            turns += 1;
            if turns < PATIENCE { std::hint::spin_loop() } else { thread::yield_now() }
        }
    }
}
