//! Allocates a block and frees it.

use alloc::boxed::Box;

use testkit::BackEnd;

use super::Job;

/// Runs pairs on the allocator.
pub fn pairs<B: BackEnd + Send + 'static>(blocks: B, order: u32) -> Job {
    Box::new(move |course, hart| {
        course.measure(hart, || {
            pair(&blocks, hart, order);
            2
        });
    })
}

/// The number of blocks of an order that the first hart of [`beside_merges`] allocates before it frees any, and the
/// orders. They split and merge words of level 1 and above.
const LARGE: usize = 16;
const LARGE_ORDERS: [u32; 2] = [5, 10];

/// Runs pairs beside a first hart that fills and drains with large blocks. One hart alone does pairs.
pub fn beside_merges<B: BackEnd + Send + 'static>(blocks: B, harts: usize, order: u32) -> Job {
    Box::new(move |course, hart| {
        let mut held = [0; LARGE];
        course.measure(hart, || {
            if hart > 0 || harts == 1 {
                pair(&blocks, hart, order);
                return 2;
            }
            for order in LARGE_ORDERS {
                for block in &mut held {
                    *block = blocks.alloc(hart, order).expect("there is room");
                }
                for &block in &held {
                    blocks.free(hart, block, order).expect("it was allocated");
                }
            }
            (2 * LARGE * LARGE_ORDERS.len()) as u64
        });
    })
}

fn pair<B: BackEnd>(blocks: &B, hart: usize, order: u32) {
    let block = blocks.alloc(hart, order).expect("a free block for each hart");
    blocks.free(hart, block, order).expect("it was allocated");
}
