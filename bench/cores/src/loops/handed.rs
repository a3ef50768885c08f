//! Loops with blocks that another hart frees.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use testkit::BackEnd;

use super::Job;

/// The number of blocks that each hart allocates before anything is measured, if any. It keeps every second one.
pub const KEPT: usize = 256;

/// Blocks on their way from one hart to another. A place holds 1 more than a block's index, or 0.
#[derive(Default)]
#[repr(align(64))]
struct Way([AtomicU64; 16]);

impl Way {
    /// Sends a block, if the place has been emptied.
    fn send(&self, at: &mut usize, alloc: impl FnOnce() -> u64) -> u64 {
        let place = &self.0[*at % self.0.len()];
        // Acquire and Release, here and below, pair with each other: the receiver of a block sees what its sender did.
        if place.load(Ordering::Acquire) != 0 {
            return 0;
        }
        place.store(alloc() + 1, Ordering::Release);
        *at += 1;
        1
    }

    /// Receives a block, if the place has been filled.
    fn receive(&self, at: &mut usize, free: impl FnOnce(u64)) -> u64 {
        let place = &self.0[*at % self.0.len()];
        let Some(block) = place.load(Ordering::Acquire).checked_sub(1) else { return 0 };
        place.store(0, Ordering::Release);
        *at += 1;
        free(block);
        1
    }
}

fn ways(number: usize) -> Vec<Way> {
    (0..number).map(|_| Way::default()).collect()
}

/// Each hart allocates for the next, and frees what the previous one has allocated.
pub fn ring<B: BackEnd + Send + 'static>(blocks: B, harts: usize, order: u32, kept: usize) -> Job {
    let ways = ways(harts);
    Box::new(move |course, hart| {
        keep_every_second(&blocks, hart, order, kept);
        let (to, from) = (&ways[hart], &ways[(hart + harts - 1) % harts]);
        let (mut sent, mut received) = (0, 0);
        course.measure(hart, || {
            let alloc = || blocks.alloc(hart, order).expect("there is room");
            let free = |block| blocks.free(hart, block, order).expect("it was allocated");
            to.send(&mut sent, alloc) + from.receive(&mut received, free)
        });
    })
}

/// Every hart with an even number allocates for the next, which frees. One hart alone does both.
pub fn producers<B: BackEnd + Send + 'static>(blocks: B, harts: usize, order: u32) -> Job {
    let ways = ways(harts.div_ceil(2));
    Box::new(move |course, hart| {
        let way = &ways[hart / 2];
        let (mut sent, mut received) = (0, 0);
        let (produces, consumes) = (hart % 2 == 0, hart % 2 == 1 || harts == 1);
        course.measure(hart, || {
            let alloc = || blocks.alloc(hart, order).expect("there is room");
            let free = |block| blocks.free(hart, block, order).expect("it was allocated");
            let sent = if produces { way.send(&mut sent, alloc) } else { 0 };
            sent + if consumes { way.receive(&mut received, free) } else { 0 }
        });
    })
}

/// Allocates blocks and frees every second one, so that the words in which blocks come and go are never empty.
fn keep_every_second<B: BackEnd>(blocks: &B, hart: usize, order: u32, kept: usize) {
    let all: Vec<u64> = (0..kept).filter_map(|_| blocks.alloc(hart, order)).collect();
    for &block in all.iter().step_by(2) {
        blocks.free(hart, block, order).expect("it was allocated");
    }
}
