//! Runs threads that begin together.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A number of threads, and the two ways in which they wait for each other. All atomics are SeqCst: what a thread did
/// before it waited is over for those that go on, and the waiting is not measured.
pub struct Crew {
    threads: usize,
    /// How many threads have gone to sleep so far, whoever has woken up since.
    asleep: Mutex<usize>,
    wake: Condvar,
    arrived: AtomicUsize,
    /// Whether a thread panicked: nobody may wait for it.
    broken: AtomicBool,
}

/// The payload of threads that end because another one has panicked.
const ABANDONED: &str = "another thread panicked";

/// Tells the others when its thread panics.
struct Member<'a>(&'a Crew);

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, SeqCst);
            // Whoever looks at `broken` under the lock sees it, or sleeps and is woken.
            drop(self.0.lock());
            self.0.wake.notify_all();
        }
    }
}

impl Crew {
    /// Runs `work` on this number of threads, each with its lane. If one panics, the others end where they wait for it,
    /// and its panic is passed on to the caller.
    pub fn run<T: Send>(threads: usize, work: impl Fn(&Crew, usize) -> T + Sync) -> Vec<T> {
        let (mut all, mut panics) = (Vec::new(), Vec::new());
        for done in Self::try_run(threads, work) {
            match done {
                Ok(done) => all.push(done),
                Err(panic) => panics.push(panic),
            }
        }
        let abandoned = |panic: &Box<dyn Any + Send>| panic.downcast_ref() == Some(&ABANDONED);
        panics.sort_by_key(abandoned);
        match panics.into_iter().next() {
            Some(first) => resume_unwind(first),
            None => all,
        }
    }

    /// Does the same, but returns a panic as the error of its lane.
    pub fn try_run<T: Send>(
        threads: usize,
        work: impl Fn(&Crew, usize) -> T + Sync,
    ) -> Vec<thread::Result<T>> {
        let crew = Self {
            threads,
            asleep: Mutex::new(0),
            wake: Condvar::new(),
            arrived: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        };
        let (crew, work) = (&crew, &work);
        thread::scope(|scope| {
            let spawn = |lane| {
                scope.spawn(move || {
                    let _member = Member(crew);
                    work(crew, lane)
                })
            };
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
        let mut asleep = self.lock();
        let all = (*asleep / self.threads + 1) * self.threads;
        *asleep += 1;
        if *asleep == all {
            self.wake.notify_all();
        }
        let waits = |asleep: &mut usize| *asleep < all && !self.broken.load(SeqCst);
        drop(self.wake.wait_while(asleep, waits).unwrap_or_else(PoisonError::into_inner));
        self.go_on();
    }

    /// Waits for all threads awake, so that all continue within a fraction of a microsecond.
    pub fn wait_awake(&self) {
        const PATIENCE: u32 = 100_000;
        let ticket = self.arrived.fetch_add(1, SeqCst);
        let all = (ticket / self.threads + 1) * self.threads;
        let mut turns = 0;
        while self.arrived.load(SeqCst) < all {
            turns += 1;
            if turns < PATIENCE {
                std::hint::spin_loop();
            } else {
                self.go_on();
                thread::yield_now();
            }
        }
    }

    /// Ends this thread if another one has panicked, without a message of its own.
    fn go_on(&self) {
        if self.broken.load(SeqCst) {
            resume_unwind(Box::new(ABANDONED));
        }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Crew;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn nobody_waits_for_a_thread_that_panicked() {
        for wait in [Crew::wait_asleep, Crew::wait_awake] {
            let run = || {
                Crew::run(3, |crew, lane| {
                    wait(crew);
                    assert_ne!(lane, 2, "a test");
                    wait(crew);
                    wait(crew);
                })
            };
            let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
            let text = panic.downcast_ref::<String>().unwrap();
            assert!(text.contains("a test"), "{text}");
        }
    }

    #[test]
    fn all_wait_for_the_last_again_and_again() {
        let rounds = Crew::run(3, |crew, lane| {
            (0..1000)
                .map(|round| {
                    let wait = if round % 2 == 0 { Crew::wait_asleep } else { Crew::wait_awake };
                    wait(crew);
                    lane + crew.threads()
                })
                .sum::<usize>()
        });
        assert_eq!(rounds, [3000, 4000, 5000]);
    }
}
