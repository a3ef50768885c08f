//! Allocates many blocks, then frees them, the last one first.

use alloc::boxed::Box;

use testkit::BackEnd;

use super::Job;

/// The number of blocks that a hart allocates before it frees any.
const BLOCKS: usize = 64;

pub fn bulk<B: BackEnd + Send + 'static>(blocks: B, order: u32) -> Job {
    Box::new(move |course, hart| {
        let mut held = [0; BLOCKS];
        course.measure(hart, || {
            for block in &mut held {
                *block = blocks.alloc(hart, order).expect("there is room");
            }
            for &block in held.iter().rev() {
                blocks.free(hart, block, order).expect("it was allocated");
            }
            2 * BLOCKS as u64
        });
    })
}
