//! Measures pairs in each of the ways to ask for a block.

use std::hint::black_box;

use nbbs::{
    AllocError, Buddy, Caches, FreeError, MetadataBox, ThreadCaches, cache_words, metadata_words,
};

use super::arena::Arena;
use super::pairs::{self, Cost, time_by};
use crate::clock::Clock;
use crate::lines::zeroed;

/// A way to ask for a block, and to give it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `Lane::alloc` and `Lane::free_sized`.
    Lane,
    /// `Buddy::alloc` and `Buddy::free_sized`, on the lane of the thread.
    Default,
    /// `Buddy::alloc` and `Buddy::free`, which finds the order: what the first example teaches.
    Taught,
    /// `Lane::alloc` and `Lane::free`, which finds the order.
    Unsized,
    /// A `Cache`.
    Owned,
    /// `Caches`, one for each CPU.
    Cpu,
    /// `ThreadCaches`.
    Thread,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 7] = [
        Self::Lane,
        Self::Unsized,
        Self::Default,
        Self::Taught,
        Self::Owned,
        Self::Cpu,
        Self::Thread,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lane => "Lane::alloc, free_sized",
            Self::Default => "Buddy::alloc, free_sized",
            Self::Taught => "Buddy::alloc, free",
            Self::Unsized => "Lane::alloc, free",
            Self::Owned => "Cache",
            Self::Cpu => "Caches",
            Self::Thread => "ThreadCaches",
        }
    }
}

/// Times pairs of `order` on this number of threads, as [`pairs::time`] does. `arena` has nothing allocated.
pub fn time(
    arena: &Arena,
    way: Way,
    order: u32,
    threads: usize,
    rounds: usize,
    clock: &Clock,
) -> Cost {
    let buddy = arena.buddy();
    // Hidden from the compiler, as it is in a program.
    let order = black_box(order);
    match way {
        Way::Lane => pairs::time(arena, order, threads, rounds, clock),
        Way::Default => time_by(threads, rounds, clock, |_| {
            move || pair(|| buddy.alloc(order), |block| buddy.free_sized(block, order))
        }),
        Way::Taught => time_by(threads, rounds, clock, |_| {
            move || pair(|| buddy.alloc(order), |block| buddy.free(block))
        }),
        Way::Unsized => time_by(threads, rounds, clock, |lane| {
            move || pair(|| buddy.on(lane).alloc(order), |block| buddy.on(lane).free(block))
        }),
        Way::Owned => time_by(threads, rounds, clock, |lane| {
            let mut cache = buddy.cache(lane);
            move || {
                let block = black_box(cache.alloc(order)).expect("more free blocks than threads");
                cache.free_sized(block, order).expect("a block just allocated");
            }
        }),
        Way::Cpu => {
            let words = zeroed(cache_words(threads));
            let caches = Caches::new(buddy, words.words());
            time_by(threads, rounds, clock, |cpu| {
                let cpu = black_box(cpu);
                move || {
                    pair(|| caches.alloc(cpu, order), |block| caches.free_sized(cpu, block, order))
                }
            })
        }
        Way::Thread => {
            let caches = of_threads(arena.units());
            time_by(threads, rounds, clock, |_| {
                move || pair(|| caches.alloc(order), |block| caches.free_sized(block, order))
            })
        }
    }
}

#[inline(always)]
fn pair<T>(
    alloc: impl FnOnce() -> Result<u64, AllocError>,
    free: impl FnOnce(u64) -> Result<T, FreeError>,
) {
    let block = black_box(alloc()).expect("more free blocks than threads");
    free(block).expect("a block just allocated");
}

/// Creates caches of threads, which need an arena that exists for ever.
fn of_threads(units: u64) -> &'static ThreadCaches {
    let metadata: &'static MetadataBox = Box::leak(Box::new(zeroed(metadata_words(units))));
    let buddy =
        Buddy::new(metadata.words(), units).expect("metadata of the size that was asked for");
    Box::leak(Box::new(ThreadCaches::new(buddy)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_leaves_the_arena_empty() {
        let arena = Arena::new(1 << 12);
        for way in Way::ALL {
            let cost = time(&arena, way, 1, 2, 1, &Clock::new());
            assert!(cost.ratio > 0.0, "{}", way.name());
            if way != Way::Cpu {
                assert_eq!(arena.buddy().stats().used_units, 0, "{}", way.name());
            }
            arena.empty();
        }
    }
}
