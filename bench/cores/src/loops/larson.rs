//! Larson's server: each hart replaces random blocks, and after some goes on with those of another hart.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use testkit::BackEnd;

use super::Job;
use crate::random::Random;

/// The number of blocks of a hart: a power of two.
const BLOCKS: usize = 64;

/// The number of replacements before a hart goes on with the next one's blocks.
const TURN: usize = 64;

/// The blocks of a hart: each entry is 1 more than a block's index, or 0.
struct Table([AtomicU64; BLOCKS]);

pub fn larson<B: BackEnd + Send + 'static>(blocks: B, harts: usize, order: u32) -> Job {
    let table = || Table(core::array::from_fn(|_| AtomicU64::new(0)));
    let tables: Vec<Table> = (0..harts).map(|_| table()).collect();
    Box::new(move |course, hart| {
        let mut random = Random::new(hart);
        let mut replaced = 0;
        course.measure(hart, || {
            let table = &tables[(hart + replaced / TURN) % harts];
            replaced += 1;
            let new = blocks.alloc(hart, order).expect("there is room") + 1;
            // Acquire and Release pair with each other: a hart that takes a block out sees what the hart that put it
            // there did.
            let old = table.0[random.below(BLOCKS)].swap(new, Ordering::AcqRel);
            let Some(block) = old.checked_sub(1) else { return 1 };
            blocks.free(hart, block, order).expect("it was allocated");
            2
        });
    })
}
