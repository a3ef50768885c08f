//! Finds allocators by name. All except the counters are [`BackEnd`]s, or have a loop of their own.

use alloc::format;
use alloc::string::String;

use core::sync::atomic::AtomicU64;

use baselines::Units;
use baselines::free_list::Untagged;
use baselines::linux::{self, LinuxMcs, LinuxTicket};
use baselines::paper::{self, Nb1, Nb4};

use nbbs::Caches;
use testkit::BackEnd;

use crate::loops::{Job, block_loop, own_loop};
use crate::memory;
use crate::request::Request;

/// All harts on one shared lane. The check must notice that they share it.
struct OneLane<B>(B);

impl<B: BackEnd> BackEnd for OneLane<B> {
    fn units(&self) -> u64 {
        self.0.units()
    }

    fn max_order(&self) -> u32 {
        self.0.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.0.metadata_bytes()
    }

    fn alloc(&self, _lane: usize, order: u32) -> Option<u64> {
        self.0.alloc(0, order)
    }

    fn free(&self, _lane: usize, index: u64, order: u32) -> Result<(), String> {
        self.0.free(0, index, order)
    }
}

/// A cache for each hart, in front of the arena.
struct Cached(Caches<'static>);

impl BackEnd for Cached {
    fn units(&self) -> u64 {
        self.0.buddy().units()
    }

    fn max_order(&self) -> u32 {
        self.0.buddy().max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.0.buddy().metadata_bytes() + 8 * nbbs::cache_words(self.0.cpus())
    }

    fn alloc(&self, hart: usize, order: u32) -> Option<u64> {
        self.0.alloc(hart, order).ok()
    }

    fn free(&self, hart: usize, index: u64, order: u32) -> Result<(), String> {
        self.0.free_sized(hart, index, order).map_err(|error| format!("{error}"))
    }
}

/// No allocator: the cost of a loop that hands blocks over by itself.
struct Nothing;

impl BackEnd for Nothing {
    fn units(&self) -> u64 {
        1
    }

    fn max_order(&self) -> u32 {
        0
    }

    fn metadata_bytes(&self) -> usize {
        0
    }

    fn alloc(&self, _lane: usize, _order: u32) -> Option<u64> {
        Some(0)
    }

    fn free(&self, _lane: usize, _index: u64, _order: u32) -> Result<(), String> {
        Ok(())
    }
}

/// Returns what each hart has to do. The error names a loop or contender that does not exist.
pub fn job(request: &Request, harts: usize) -> Result<Job, String> {
    let &Request { ref name, ref contender, units, .. } = request;
    if let Some(job) = own_loop(request, harts) {
        return Ok(job);
    }
    let job = match contender.as_str() {
        "nothing" => block_loop(request, harts, Nothing),
        "nbbs" => block_loop(request, harts, memory::arena(units)),
        "nbbs-lanes" => block_loop(request, harts, memory::arena_with_lanes(units)),
        "nbbs-cache" => block_loop(request, harts, Cached(memory::caches(units))),
        "nbbs-one-lane" => block_loop(request, harts, OneLane(memory::arena(units))),
        "linux-ticket" => block_loop(request, harts, LinuxTicket::new(units, linux::MAX_ORDER)),
        "linux-mcs" => block_loop(request, harts, LinuxMcs::new(units, linux::MAX_ORDER)),
        "nb1" => block_loop(request, harts, Nb1::<AtomicU64>::new(units, paper::MAX_ORDER)),
        "nb4" => block_loop(request, harts, Nb4::<AtomicU64>::new(units, paper::MAX_ORDER)),
        "nb4-whole" => block_loop(request, harts, Nb4::<AtomicU64>::new(units, units.ilog2())),
        "free-list" => block_loop(request, harts, Units(Untagged::<AtomicU64>::new(units))),
        _ => None,
    };
    job.ok_or_else(|| format!("there is no loop {name} of {contender}"))
}
