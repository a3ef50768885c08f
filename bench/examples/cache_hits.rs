//! What a pair that a cache serves costs, beside a pair of bare compare-and-swaps and one of the back-end: medians of
//! rounds in turn.
//!
//! ```sh
//! cargo run --release -p nbbs-bench --example cache_hits
//! ```

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use nbbs::{Buddy, Caches, Metadata, ThreadCaches, cache_words, metadata_words};

const UNITS: u64 = 1 << 18;
const PAIRS: u32 = 20_000;
const ROUNDS: usize = 401;

static METADATA: Metadata<{ metadata_words(UNITS) }> = Metadata::new();
static WORDS: Metadata<{ cache_words(4) }> = Metadata::new();
static PAGES: Buddy = match Buddy::new(METADATA.words(), UNITS) {
    Ok(buddy) => buddy,
    Err(_) => panic!("metadata_words() and new() disagree"),
};
static CACHES: Caches = Caches::new(PAGES, WORDS.words());
static THREADS: ThreadCaches = ThreadCaches::new(PAGES);
/// On a cache line of its own.
static BARE: Metadata<8> = Metadata::new();

/// Two compare-and-swaps, each of which needs what the one before returned, as in `nbbs bench limit`.
fn bare(held: &mut u64) {
    let word: &AtomicU64 = &BARE.words()[0];
    for _ in 0..2 {
        let swapped = word.compare_exchange(*held, *held + 1, Ordering::SeqCst, Ordering::SeqCst);
        *held = swapped.unwrap_or_else(|found| found) + 1;
    }
}

/// Nanoseconds of a pair.
fn time(mut pair: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..PAIRS).for_each(|_| pair());
    start.elapsed().as_nanos() as f64 / f64::from(PAIRS)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    let mut own = PAGES.cache(1);
    let mut rounds: Vec<[f64; 5]> = Vec::new();
    let order = black_box(0);
    let mut held = 0;
    for _ in 0..ROUNDS {
        rounds.push([
            time(|| bare(&mut held)),
            time(|| {
                let block = black_box(own.alloc(order).expect("there are more"));
                own.free_sized(block, order).expect("a block just allocated");
            }),
            time(|| {
                let block = black_box(CACHES.alloc(black_box(2), order).expect("there are more"));
                CACHES.free_sized(black_box(2), block, order).expect("a block just allocated");
            }),
            time(|| {
                let block = black_box(THREADS.alloc(order).expect("there are more"));
                THREADS.free_sized(block, order).expect("a block just allocated");
            }),
            time(|| {
                let block = black_box(PAGES.alloc_on(3, order).expect("there are more"));
                PAGES.free_sized_on(3, block, order).expect("a block just allocated");
            }),
        ]);
    }
    let names = ["bare compare-and-swaps", "Cache", "Caches", "ThreadCaches", "Buddy"];
    for (at, name) in names.into_iter().enumerate() {
        let ns = median(rounds.iter().map(|round| round[at]).collect());
        let ratio = median(rounds.iter().map(|round| round[at] / round[0]).collect());
        println!("{name:22} {ns:6.2} ns a pair, {ratio:4.2} of a bare pair");
    }
}
