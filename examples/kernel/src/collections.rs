//! The kernel's collections.
//!
//! They have a fixed size, as there is no heap. This is the place where a global allocator on top of the frames would
//! be declared, and `List` would become a `Vec`.

use arrayvec::ArrayVec;

/// A list of a few things known at boot: stretches of memory, CPUs.
pub type List<T> = ArrayVec<T, 64>;
