//! The five allocators of the "Buddy Allocator Workshop" (Restioson, 2018), each behind a spin lock.
//!
//! The lists and the red-black trees of the workshop only allocate. Their frees are ours, with the searches that their
//! data structures have.
//!
//! ```text
//! lists    a list per order of all blocks, free and used: searched from its beginning
//! trees    a red-black tree of all blocks by address, and a list per order of the free ones
//! bitmap   the largest free order below each node of a complete binary tree
//! ```

mod bitmap;
mod lists;
mod trees;

use crate::guarded::Guarded;

/// The workshop's largest block, 1 GiB in units of 4 KiB.
pub const MAX_ORDER: u32 = 18;

/// The most units of an arena.
pub const MAX_UNITS: u64 = 1 << 32;

/// Vectors of all blocks.
pub type ListVec = Guarded<lists::Lists<Vec<lists::Block>>>;

/// Doubly linked lists of all blocks.
pub type ListLinked = Guarded<lists::Lists<std::collections::LinkedList<lists::Block>>>;

/// A red-black tree, and vectors of the free blocks.
pub type TreeVec = Guarded<trees::Tree<Vec<u64>>>;

/// A red-black tree, and singly linked lists of the free blocks.
pub type TreeLinked = Guarded<trees::Tree<trees::Singly>>;

/// The tree of largest free orders.
pub type BitmapTree = Guarded<bitmap::Bitmap>;
