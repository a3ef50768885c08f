//! What users call.
//!
//! ```text
//! heap     the heap in a static              overlap    CPU numbers, and which operations on one may overlap
//! placed   the heap in given memory          allocator  `Allocator`, for collections in a given heap
//! look     inspects a heap in a static, and gives its memory back
//! ```

#[cfg(any(feature = "allocator-api2", feature = "nightly"))]
mod allocator;
mod heap;
mod look;
mod overlap;
mod placed;

pub use heap::Heap;
pub use overlap::{Cpu, Overlap};
pub use placed::{On, Placed};
