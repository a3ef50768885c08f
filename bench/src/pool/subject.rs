//! The interface of an allocator of objects.

/// An object of 48 bytes.
#[derive(Clone, Copy)]
pub struct Item(pub [u64; 6]);

/// Bytes of an object.
pub const ITEM_BYTES: usize = size_of::<Item>();

/// An allocator of items. A lane is the state that a thread has to itself.
pub trait Subject {
    type Object<'s>
    where
        Self: 's;
    type Lane<'s>
    where
        Self: 's;

    fn lane(&self) -> Self::Lane<'_>;

    /// Allocates an item filled with `value`.
    fn alloc<'s>(&'s self, lane: &mut Self::Lane<'s>, value: u64) -> Option<Self::Object<'s>>;

    /// Frees the item and returns its first word.
    fn free<'s>(&'s self, lane: &mut Self::Lane<'s>, object: Self::Object<'s>) -> u64;
}
