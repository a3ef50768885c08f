//! The counters beside which every other figure stands: some that are not shared, and one that all harts share. Also
//! bare compare-and-swaps, the floor for any shared structure without private caches.

use alloc::boxed::Box;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use super::Job;

/// A counter on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Counter(AtomicU64);

impl Counter {
    fn count(&self) -> u64 {
        // Relaxed: it communicates nothing else.
        self.0.fetch_add(1, Relaxed);
        1
    }

    /// Swaps what it holds for the next number, which the next swap needs. Nothing is loaded, since the value is known.
    fn swap(&self, held: u64) -> u64 {
        // As in `nbbs bench limit`, which measures the same.
        match self.0.compare_exchange(held, held + 1, SeqCst, SeqCst) {
            Ok(found) | Err(found) => found + 1,
        }
    }
}

/// A counter for each hart: nothing can scale better.
pub fn private() -> Job {
    Box::new(|course, hart| {
        let own = Counter::default();
        course.measure(hart, || own.count());
    })
}

/// One counter for all: an allocator that scales no better has one line that all harts use.
pub fn shared() -> Job {
    let shared = Counter::default();
    Box::new(move |course, hart| course.measure(hart, || shared.count()))
}

/// Pairs of compare-and-swaps on a word of the hart's own: what an allocation and a free take at least, if each changes
/// a shared word once.
pub fn bare() -> Job {
    Box::new(|course, hart| {
        let own = Counter::default();
        let mut held = 0;
        course.measure(hart, || {
            held = own.swap(own.swap(held));
            2
        });
    })
}
