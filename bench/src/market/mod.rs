//! The market: everything that can be measured, this project's first.
//!
//! A system joins the tests, the replay and the benchmarks with one entry: in [`CONTENDERS`], in [`POOLS`] if all its
//! blocks are of one size, or in [`HEAPS`] if they are of any size. **Some are unsafe, on purpose**: faithful copies of
//! systems that hand out memory twice. They are marked `safe: false`.
//!
//! ```text
//! contender   the tables of back-ends and pools      heap    memory by size: what crates.io has, the system's
//! c_interface the back-end as C programs call it     cached  the back-end behind caches of threads
//! frame       the frame allocator of buddy_system_allocator      frame_alloc  frame-alloc's core and depot
//! ```
//!
//! Contenders from other crates, and the C interface, need the feature `suite`.

#[cfg(feature = "suite")]
mod c_interface;
mod cached;
mod contender;
#[cfg(feature = "suite")]
mod frame;
#[cfg(feature = "suite")]
mod frame_alloc;
mod heap;

pub use contender::{
    Build, CONTENDERS, Contender, Kind, POOLS, WithBackEnd, WithHeap, WithPool, find,
};
pub use heap::table::HEAPS;
pub use heap::{CheckedHeap, Heap};
