//! A block is allocated and freed.

use alloc::boxed::Box;

use testkit::BackEnd;

use super::Job;
use crate::memory;

/// By the allocator.
pub fn pairs<B: BackEnd + Send + 'static>(blocks: B, order: u32) -> Job {
    Box::new(move |course, hart| {
        course.measure(hart, || {
            let block = blocks.alloc(hart, order).expect("a free block for each hart");
            blocks.free(hart, block, order).expect("it was allocated");
            2
        });
    })
}

/// By a cache of each hart's own.
pub fn cached(units: u64, order: u32) -> Job {
    let arena = memory::arena(units);
    Box::new(move |course, hart| {
        let mut cache = arena.cache(hart);
        course.measure(hart, || {
            let block = cache.alloc(order).expect("a free block for each hart");
            cache.free_sized(block, order).expect("it was allocated");
            2
        });
    })
}
