//! What users call.
//!
//! ```text
//! heap     the heap in a static                             by_address  what is done to it by the address alone
//! look     inspects it, and gives its memory back           overlap     CPU numbers, and which operations on one may
//! placed   the heap in given memory                                     overlap
//!                                                           allocator   `Allocator`, for collections in a given heap
//! ```

#[cfg(any(feature = "allocator-api2", feature = "nightly"))]
mod allocator;
mod by_address;
mod heap;
mod look;
mod overlap;
mod placed;

pub use heap::Heap;
pub use overlap::{Cpu, Overlap};
pub use placed::{On, Placed};
