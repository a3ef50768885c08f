//! Objects: eight are allocated, then freed.

use alloc::boxed::Box;
use core::hint::black_box;

use nbbs_pool::{Config, Pool, Region};

use super::Job;

/// What is allocated: 48 bytes.
type Object = [u64; 6];

/// Objects that a hart holds at a time.
const HELD: usize = 8;

/// Memory of the pool.
static MEMORY: Region<{ 2 << 20 }> = Region::new();

/// From the typed pool, through each hart's own claims.
pub fn pool(harts: usize) -> Job {
    let pool: Pool<Object, _> = Pool::with_source(&MEMORY, Config::new());
    pool.reserve(harts * 256).expect("memory for the slots");
    Box::new(move |course, hart| {
        let mut local = pool.local();
        course.measure(hart, || {
            let held: [_; HELD] =
                core::array::from_fn(|_| local.alloc([0; 6]).expect("a free slot"));
            held.into_iter().for_each(|object| local.free(object));
            2 * HELD as u64
        });
    })
}

/// From the heap, which has a cache for each hart.
pub fn heap() -> Job {
    Box::new(|course, hart| {
        course.measure(hart, || {
            let held: [Box<Object>; HELD] = core::array::from_fn(|_| Box::new([0; 6]));
            drop(black_box(held));
            2 * HELD as u64
        });
    })
}
