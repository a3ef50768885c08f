//! One thread allocates, another frees: what a block costs, by how many are on their way from one to the other.
//!
//! Words that the two threads write in turn have to cross from one processor to the other. A lane that meets the other's
//! frees goes on elsewhere until they have followed it; caches free and allocate whole batches.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use nbbs::MetadataBox;

const UNITS: u64 = 1 << 18;
const BLOCKS: u64 = 1_000_000;
const ORDER: u32 = 0;

fn main() -> Result<(), Box<dyn Error>> {
    let metadata = MetadataBox::new(UNITS)?;
    let buddy = metadata.arena()?;
    println!("{BLOCKS} blocks, freed by another thread; ns a block");
    println!("on their way  lanes  caches");
    for most in [1, 4, 16, 64, 256, 1024] {
        let (allocates, frees) = (buddy.on(0), buddy.on(1));
        let lanes = pass(
            most,
            || allocates.alloc(ORDER).expect("there is room"),
            |block| frees.free_sized(block, ORDER).expect("it was allocated"),
        );
        let (mut allocates, mut frees) = (buddy.cache(0), buddy.cache(1));
        let caches = pass(
            most,
            || allocates.alloc(ORDER).expect("there is room"),
            |block| frees.free_sized(block, ORDER).expect("it was allocated"),
        );
        println!("{most:12} {lanes:6.0} {caches:7.0}");
    }
    let stats = buddy.stats();
    println!("{} of {} units in use", stats.used_units, stats.units);
    Ok(())
}

/// Passes blocks to a second thread, `most` of them at a time. Returns what each took, in ns.
fn pass(most: usize, mut alloc: impl FnMut() -> u64, free: impl FnMut(u64) + Send) -> f64 {
    // Each place holds 1 more than a block's index, or 0.
    let places: Vec<_> = (0..most).map(|_| AtomicU64::new(0)).collect();
    let begin = Instant::now();
    thread::scope(|scope| {
        let mut free = free;
        let turns = || places.iter().cycle().take(BLOCKS as usize);
        scope.spawn(move || {
            for place in turns() {
                // Acquire: pairs with the Release of the sender.
                free(wait(|| place.load(Ordering::Acquire).checked_sub(1)));
                // Release: pairs with the sender's Acquire.
                place.store(0, Ordering::Release);
            }
        });
        for place in turns() {
            let block = alloc();
            // Acquire and Release: as above.
            wait(|| (place.load(Ordering::Acquire) == 0).then_some(()));
            place.store(block + 1, Ordering::Release);
        }
    });
    begin.elapsed().as_nanos() as f64 / BLOCKS as f64
}

fn wait<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let mut looks = 0_u32;
    loop {
        if let Some(found) = look() {
            return found;
        }
        looks += 1;
        // The other thread may be waiting for this processor.
        if looks.is_multiple_of(64) { thread::yield_now() } else { std::hint::spin_loop() }
    }
}
