//! A lock around an allocator that has no lock.

use spin::mutex::SpinMutex;
use testkit::BackEnd;

use crate::lock::Apart;

/// An allocator for one thread at a time.
pub trait Sequential: Send {
    /// Creates an arena of `units` free units that serves orders 0 to `max_order`.
    fn new(units: u64, max_order: u32) -> Self;

    /// Allocates a block.
    fn alloc(&mut self, order: u32) -> Option<u64>;

    /// Frees a block. Returns `false`, and changes nothing, if it can tell that no such block is in use.
    fn free(&mut self, index: u64, order: u32) -> bool;

    /// Returns the bytes that are on the heap now.
    fn heap_bytes(&self) -> usize;
}

/// A sequential allocator behind one test-and-test-and-set spin lock.
#[derive(Debug)]
pub struct Guarded<S> {
    units: u64,
    max_order: u32,
    inner: Apart<SpinMutex<S>>,
}

impl<S: Sequential> Guarded<S> {
    /// Creates an arena of `units` free units that serves orders 0 to `max_order`, or to the largest of which a block
    /// fits.
    pub fn new(units: u64, max_order: u32) -> Self {
        let max_order = max_order.min(units.ilog2());
        Self { units, max_order, inner: Apart(SpinMutex::new(S::new(units, max_order))) }
    }
}

impl<S: Sequential> BackEnd for Guarded<S> {
    fn units(&self) -> u64 {
        self.units
    }

    fn max_order(&self) -> u32 {
        self.max_order
    }

    fn metadata_bytes(&self) -> usize {
        size_of::<Self>() + self.inner.lock().heap_bytes()
    }

    fn alloc(&self, _lane: usize, order: u32) -> Option<u64> {
        if order <= self.max_order { self.inner.lock().alloc(order) } else { None }
    }

    fn free(&self, _lane: usize, index: u64, order: u32) -> Result<(), String> {
        let fits = order <= self.max_order
            && index < self.units
            && self.units - index >= 1 << order
            && index.is_multiple_of(1 << order);
        if fits && self.inner.lock().free(index, order) {
            Ok(())
        } else {
            Err(format!("no block of order {order} is in use at {index}"))
        }
    }
}

/// Divides `units` into the largest aligned blocks of at most `max_order` that fit, from the left.
pub fn largest_blocks(units: u64, max_order: u32) -> impl Iterator<Item = (u64, u32)> {
    let mut index = 0;
    std::iter::from_fn(move || {
        let left = (units - index).checked_ilog2()?;
        let order = index.trailing_zeros().min(left).min(max_order);
        index += 1 << order;
        Some((index - (1 << order), order))
    })
}

#[cfg(test)]
mod tests {
    use super::largest_blocks;

    #[test]
    fn cuts_an_arena_into_the_largest_blocks() {
        let blocks = |units, max_order| largest_blocks(units, max_order).collect::<Vec<_>>();
        assert_eq!(blocks(7, 10), [(0, 2), (4, 1), (6, 0)]);
        assert_eq!(blocks(9, 2), [(0, 2), (4, 2), (8, 0)]);
        assert_eq!(blocks(1, 0), [(0, 0)]);
    }
}
