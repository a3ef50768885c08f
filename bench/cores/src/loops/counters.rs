//! The counters beside which every other figure stands: some that are not shared, and one that all harts share.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
