//! Pools of slots of one size.

use alloc::format;
use alloc::string::String;

use testkit::BackEnd;

/// A pool of slots of one size.
pub trait Pool: Sync {
    /// Returns the number of slots.
    fn slots(&self) -> u64;

    /// Returns the bytes of all bookkeeping.
    fn metadata_bytes(&self) -> usize;

    /// Allocates a slot.
    fn alloc(&self) -> Option<u64>;

    /// Frees a slot, which the caller holds.
    ///
    /// # Panics
    /// If there is no such slot.
    fn free(&self, slot: u64);
}

/// A pool as a back-end that only has units: the oracle and the stress drive it like the others.
#[derive(Clone, Copy, Debug)]
pub struct Units<P>(pub P);

impl<P: Pool> BackEnd for Units<P> {
    fn units(&self) -> u64 {
        self.0.slots()
    }

    fn max_order(&self) -> u32 {
        0
    }

    fn metadata_bytes(&self) -> usize {
        self.0.metadata_bytes()
    }

    fn alloc(&self, _lane: usize, order: u32) -> Option<u64> {
        if order == 0 { self.0.alloc() } else { None }
    }

    fn free(&self, _lane: usize, index: u64, order: u32) -> Result<(), String> {
        if order != 0 || index >= self.units() {
            return Err(format!("no slot is a block of order {order} at {index}"));
        }
        self.0.free(index);
        Ok(())
    }
}

impl<P: Pool + ?Sized> Pool for &P {
    fn slots(&self) -> u64 {
        (**self).slots()
    }

    fn metadata_bytes(&self) -> usize {
        (**self).metadata_bytes()
    }

    fn alloc(&self) -> Option<u64> {
        (**self).alloc()
    }

    fn free(&self, slot: u64) {
        (**self).free(slot);
    }
}
