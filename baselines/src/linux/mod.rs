//! The classical kernel buddy, which Linux has below its per-CPU page lists.
//!
//! It follows `mm/page_alloc.c`. Kept: one free list per order with insertion at the head (at the tail if a merge is
//! likely soon), a record per frame, splitting that keeps the lower half, merging as far as possible on every free, one
//! spin lock per zone. Left out, since nothing here needs them: migration types, watermarks, page guards, reporting.
//! The kernel's lock also turns interrupts off, which a process cannot do: a thread may lose its CPU while it holds the
//! lock.

mod frames;
#[cfg(feature = "std")]
mod pcp;
#[cfg(feature = "std")]
mod tuning;
mod zone;

use alloc::format;
use alloc::string::String;

use spin::mutex::{SpinMutex, TicketMutex};
use testkit::BackEnd;

use crate::lock::{Apart, Lock, Mcs};

#[cfg(feature = "std")]
pub use pcp::LinuxPcp;
pub use zone::Zone;

/// The kernel's `MAX_PAGE_ORDER`.
pub const MAX_ORDER: u32 = 10;

/// The most units of an arena: its lists are linked by 32-bit frame numbers.
pub const MAX_UNITS: u64 = frames::NONE as u64 - 1;

/// The kernel's buddy behind one test-and-test-and-set spin lock.
pub type Linux = Locked<SpinMutex<Zone>>;

/// The same behind a fair lock, on one word of which all threads wait.
pub type LinuxTicket = Locked<TicketMutex<Zone>>;

/// The same behind a fair lock in which each thread waits on a word of its own, as in the kernel's queued spin lock.
pub type LinuxMcs = Locked<Mcs<Zone>>;

/// The kernel's buddy: a `Zone` behind a lock.
#[derive(Debug)]
pub struct Locked<L> {
    units: u64,
    max_order: u32,
    metadata_bytes: usize,
    zone: Apart<L>,
}

impl<L: Lock<Zone>> Locked<L> {
    /// Creates an arena of `units` free frames that serves orders 0 to `max_order`, or to the largest of which a block
    /// fits.
    ///
    /// # Panics
    /// If `units` is 0 or above `MAX_UNITS`.
    #[must_use]
    pub fn new(units: u64, max_order: u32) -> Self {
        assert!(
            (1..=MAX_UNITS).contains(&units),
            "linux takes 1 to {MAX_UNITS} units, not {units}"
        );
        let max_order = max_order.min(units.ilog2());
        let zone = Zone::new(units as u32, max_order);
        let metadata_bytes = zone.heap_bytes() + size_of::<Apart<L>>();
        Self { units, max_order, metadata_bytes, zone: Apart(L::new(zone)) }
    }

    /// Checks that a block of the order can be at the unit.
    fn check_place(&self, index: u64, order: u32) -> Result<(), String> {
        if order > self.max_order {
            return Err(format!("order {order} is above the largest, {}", self.max_order));
        }
        if index >= self.units || self.units - index < 1 << order {
            return Err(format!("block {index} of order {order} is outside {} units", self.units));
        }
        if !index.is_multiple_of(1 << order) {
            return Err(format!("block {index} is not aligned to order {order}"));
        }
        Ok(())
    }
}

impl<L: Lock<Zone>> BackEnd for Locked<L> {
    fn units(&self) -> u64 {
        self.units
    }

    fn max_order(&self) -> u32 {
        self.max_order
    }

    fn metadata_bytes(&self) -> usize {
        self.metadata_bytes
    }

    fn alloc(&self, _lane: usize, order: u32) -> Option<u64> {
        if order > self.max_order {
            return None;
        }
        self.zone.hold(|zone| zone.alloc(order)).map(u64::from)
    }

    /// Like the kernel, it trusts the caller for the order of the block.
    fn free(&self, _lane: usize, index: u64, order: u32) -> Result<(), String> {
        self.check_place(index, order)?;
        if self.zone.hold(|zone| zone.free(index as u32, order)) {
            Ok(())
        } else {
            Err(format!("block {index} is on a free list"))
        }
    }
}

#[cfg(test)]
mod tests;
