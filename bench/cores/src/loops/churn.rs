//! Acts like a program that has run for a while: 60 % of the arena is in use, here and there, and random blocks of
//! mixed orders are replaced.

use alloc::boxed::Box;
use alloc::vec::Vec;

use testkit::BackEnd;

use super::Job;
use crate::random::Random;

/// The order of the blocks that fill the arena.
const FILLER: u32 = 7;

/// Of eight of those, this many stay.
const STAY: usize = 5;

/// The number of blocks that each hart holds, and of their orders, from 0: both are powers of two.
const HELD: usize = 32;
const ORDERS: usize = 4;

pub fn churn<B: BackEnd + Send + 'static>(blocks: B) -> Job {
    fill(&blocks);
    Box::new(move |course, hart| {
        let mut random = Random::new(hart);
        let alloc = |random: &mut Random| {
            let order = random.below(ORDERS) as u32;
            (blocks.alloc(hart, order).expect("a third is free"), order)
        };
        let mut held: [(u64, u32); HELD] = core::array::from_fn(|_| alloc(&mut random));
        course.measure(hart, || {
            let place = random.below(HELD);
            let (block, order) = held[place];
            blocks.free(hart, block, order).expect("it was allocated");
            held[place] = alloc(&mut random);
            2
        });
    })
}

/// Fills the arena, and frees three eighths of it at random.
fn fill<B: BackEnd>(blocks: &B) {
    let all: Vec<u64> = core::iter::from_fn(|| blocks.alloc(0, FILLER)).collect();
    let mut random = Random::new(0);
    for block in all {
        if random.below(8) >= STAY {
            blocks.free(0, block, FILLER).expect("it was allocated");
        }
    }
}
