//! The interface through which tests, stress driver, replay and benchmarks use any block allocator.

use alloc::string::{String, ToString};

use nbbs::sync::Word;

use crate::ask::{self, Ask, No};

/// An allocator of naturally aligned blocks of `2^order` units, by unit index.
pub trait BackEnd: Sync {
    /// Returns the number of units in the arena.
    fn units(&self) -> u64;

    /// Returns the largest order that can be asked for.
    fn max_order(&self) -> u32;

    /// Returns the bytes of all bookkeeping.
    fn metadata_bytes(&self) -> usize;

    /// Allocates a block; `lane` is the caller's CPU or thread number.
    fn alloc(&self, lane: usize, order: u32) -> Option<u64>;

    /// Frees the block of `order` at `index`.
    ///
    /// # Errors
    /// The free is refused; the error is the allocator's own message.
    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String>;

    /// Returns whether [`ask`](Self::ask) does anything.
    fn offers_runs(&self) -> bool {
        false
    }

    /// Carries out a request about runs, parts or many blocks. Returns the first unit, if one is asked for.
    ///
    /// # Errors
    /// The reason for the refusal; by default that this is not offered.
    fn ask(&self, _lane: usize, _ask: Ask<'_>) -> Result<u64, No> {
        Err(No::NotOffered)
    }
}

impl<W: Word> BackEnd for nbbs::Buddy<'_, W> {
    fn units(&self) -> u64 {
        self.units()
    }

    fn max_order(&self) -> u32 {
        self.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        let units = self.units();
        8 * (nbbs::metadata_words(units) + nbbs::lane_words(nbbs::lanes_for(units, self.lanes())))
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        self.on(lane).alloc(order).ok()
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        self.on(lane).free_sized(index, order).map_err(|error| error.to_string())
    }

    fn offers_runs(&self) -> bool {
        true
    }

    fn ask(&self, lane: usize, ask: Ask<'_>) -> Result<u64, No> {
        ask::ask(self, lane, ask)
    }
}

/// A cache for each CPU; a lane is a CPU, or has no cache.
impl<W: Word> BackEnd for nbbs::Caches<'_, W> {
    fn units(&self) -> u64 {
        self.buddy().units()
    }

    fn max_order(&self) -> u32 {
        self.buddy().max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.buddy().metadata_bytes() + 8 * nbbs::cache_words(self.cpus())
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        self.alloc(lane, order).ok()
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        self.free_sized(lane, index, order).map_err(|error| error.to_string())
    }
}
