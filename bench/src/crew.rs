//! Threads that begin together.

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// So many threads, and the two ways in which they wait for each other.
pub struct Crew {
    threads: usize,
    asleep: Barrier,
    arrived: AtomicUsize,
}

impl Crew {
    /// Runs `work` with a lane on each of so many threads. A panic comes back.
    pub fn run<T: Send>(threads: usize, work: impl Fn(&Crew, usize) -> T + Sync) -> Vec<T> {
        let done = Self::try_run(threads, work).into_iter();
        done.map(|done| done.unwrap_or_else(|payload| resume_unwind(payload))).collect()
    }

    /// The same; a panic is that lane's error.
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

    /// How many threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Waits for all asleep, so that nobody who waits takes anything from who works.
    pub fn wait_asleep(&self) {
        self.asleep.wait();
    }

    /// Waits for all awake, so that all go on within a fraction of a microsecond.
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
