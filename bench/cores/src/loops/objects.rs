//! Allocates eight objects, then frees them.

use alloc::boxed::Box;
use core::hint::black_box;

use nbbs_pool::{Config, Pool, Region};

use super::Job;

/// The objects that are allocated: 48 bytes.
type Object = [u64; 6];

/// The number of objects that a hart holds at a time.
const HELD: usize = 8;

/// Memory of the pool.
static MEMORY: Region<{ 2 << 20 }> = Region::new();

/// Allocates from the typed pool, through each hart's own claims.
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

/// Allocates from the heap, which has a cache for each hart.
pub fn heap() -> Job {
    Box::new(|course, hart| {
        course.measure(hart, || {
            let held: [Box<Object>; HELD] = core::array::from_fn(|_| Box::new([0; 6]));
            drop(black_box(held));
            2 * HELD as u64
        });
    })
}
