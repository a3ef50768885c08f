//! Allocators by name. All but the counters are [`BackEnd`]s, or have a loop of their own.

use alloc::format;
use alloc::string::String;

use core::sync::atomic::AtomicU64;

use baselines::Units;
use baselines::free_list::Untagged;
use baselines::linux::{self, LinuxMcs, LinuxTicket};
use baselines::paper::{self, Nb1, Nb4};

use crate::loops::{Job, block_loop, own_loop};
use crate::memory;
use crate::request::Request;

/// What each hart is to do; an error names what there is not.
pub fn job(request: &Request, harts: usize) -> Result<Job, String> {
    let &Request { ref name, ref contender, units, .. } = request;
    if let Some(job) = own_loop(request, harts) {
        return Ok(job);
    }
    let job = match contender.as_str() {
        "nbbs" => block_loop(request, harts, memory::arena(units)),
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
