//! The interface of an allocator that operation programs run on.

use std::ops::Range;

use nbbs::sync::{AtomicU64, Word};
use nbbs::{AllocError, Buddy, FreeError, MetadataError, RangeError};

use super::{inspect, observe};
use crate::{BackEnd, Block, Spec, Violation};

/// An allocator that answers everything a program can ask.
pub trait Subject: BackEnd {
    /// Allocates a block, or says why not.
    ///
    /// # Errors
    /// As in [`Lane::alloc`](nbbs::Lane::alloc).
    fn try_alloc(&self, lane: usize, order: u32) -> Result<u64, AllocError>;

    /// Frees what begins at `index`, and returns its number of units.
    ///
    /// # Errors
    /// As in [`Lane::free`](nbbs::Lane::free).
    fn free_unsized(&self, lane: usize, index: u64) -> Result<u64, FreeError>;

    /// Frees the block of `order` at `index`.
    ///
    /// # Errors
    /// As in [`Lane::free_sized`](nbbs::Lane::free_sized).
    fn free_sized(&self, lane: usize, index: u64, order: u32) -> Result<(), FreeError>;

    /// Returns the order of the block at `index`.
    ///
    /// # Errors
    /// As in [`Buddy::order_of`].
    fn order_of(&self, index: u64) -> Result<u32, FreeError>;

    /// Reserves `range`.
    ///
    /// # Errors
    /// As in [`Buddy::reserve`].
    fn reserve(&self, range: Range<u64>) -> Result<(), RangeError>;

    /// Gives `range` to the allocator.
    ///
    /// # Errors
    /// As in [`Buddy::release`].
    fn release(&self, range: Range<u64>) -> Result<(), RangeError>;

    /// Compares all that can be asked about the arena with the specification. Nothing else may be running.
    ///
    /// # Errors
    /// The first difference.
    fn inspect(&self, spec: &Spec) -> Result<(), Violation>;

    /// Looks at the arena while others use it, except for the blocks in `held`.
    ///
    /// # Errors
    /// The first thing that is wrong, whatever the others do.
    fn observe(&self, held: &[Block]) -> Result<(), Violation>;
}

impl<W: Word> Subject for Buddy<'_, W> {
    fn try_alloc(&self, lane: usize, order: u32) -> Result<u64, AllocError> {
        self.on(lane).alloc(order)
    }

    fn free_unsized(&self, lane: usize, index: u64) -> Result<u64, FreeError> {
        self.on(lane).free(index)
    }

    fn free_sized(&self, lane: usize, index: u64, order: u32) -> Result<(), FreeError> {
        self.on(lane).free_sized(index, order)
    }

    fn order_of(&self, index: u64) -> Result<u32, FreeError> {
        self.order_of(index)
    }

    fn reserve(&self, range: Range<u64>) -> Result<(), RangeError> {
        self.reserve(range)
    }

    fn release(&self, range: Range<u64>) -> Result<(), RangeError> {
        self.release(range)
    }

    fn inspect(&self, spec: &Spec) -> Result<(), Violation> {
        inspect(self, spec)
    }

    fn observe(&self, held: &[Block]) -> Result<(), Violation> {
        observe(self, held)
    }
}

/// Metadata for an arena, of any kind of word, on the heap.
#[derive(Debug)]
pub struct Arena<W = AtomicU64> {
    words: Box<[W]>,
    units: u64,
}

impl<W: Word + Default> Arena<W> {
    /// Creates zeroed metadata for `units` units.
    #[must_use]
    pub fn new(units: u64) -> Self {
        let words = (0..W::SHAPE.metadata_words(units)).map(|_| W::default()).collect();
        Self { words, units }
    }

    /// Returns the words.
    #[must_use]
    pub fn words(&self) -> &[W] {
        &self.words
    }

    /// Returns a new handle to the arena.
    ///
    /// # Panics
    /// If no arena can have so many units.
    #[must_use]
    pub fn buddy(&self) -> Buddy<'_, W> {
        self.expect(Buddy::new(&self.words, self.units))
    }

    /// Returns a handle to the arena with every unit reserved.
    ///
    /// # Panics
    /// If no arena can have so many units.
    #[must_use]
    pub fn all_reserved(&self) -> Buddy<'_, W> {
        self.expect(Buddy::new_reserved(&self.words, self.units))
    }

    fn expect<'a>(&self, buddy: Result<Buddy<'a, W>, MetadataError>) -> Buddy<'a, W> {
        buddy.unwrap_or_else(|error| panic!("an arena of {} units: {error}", self.units))
    }
}
