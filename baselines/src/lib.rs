//! Other allocators, re-implemented faithfully, and the table of everything that can be measured.
//!
//! A system joins the tests, the replay and the benchmarks by one entry in [`CONTENDERS`], in [`POOLS`] if
//! all its blocks are of one size, or in [`HEAPS`] if they are of any. **Some are unsafe, on purpose**: faithful copies of systems that hand
//! out memory twice, which every check has to catch. They say so with `safe: false`.
//!
//! ```text
//! contender   the table            lines   metadata words on a cache-line boundary
//! c_interface the back-end as C programs call it        cached  the back-end behind caches of threads
//! pool        slots of one size    spin    a spin lock that checkers can steer
//! linux       the kernel's buddy: zone (free lists, split, merge) under a spin lock; per-CPU page lists
//! paper       the non-blocking buddy and its spin-lock twins, on one level per word and on four
//! buddy_sl    the array-tree buddy under a spin lock
//! guarded     a lock around what has none
//! workshop    lists, red-black trees, the tree of largest free orders
//! frame       the frame allocator of buddy_system_allocator
//! free_list   the arenas of slots: lock-free, without and with a tag, and under a spin lock
//! heap        memory by size: the chunk allocator, heaps of crates.io behind a spin lock, the system's
//! ```
// Not `forbid`: `heap` handles memory, `c_interface` calls C functions, `cached` a system call, and the macro with which `intrusive_collections` links its nodes allows
// it for what it expands to.
#![deny(unsafe_code)]

mod buddy_sl;
mod c_interface;
mod cached;
mod contender;
mod frame;
pub mod free_list;
mod guarded;
mod heap;
mod lines;
mod linux;
pub mod paper;
mod pool;
mod spin;
mod workshop;

pub use buddy_sl::BuddySl;
pub use contender::{
    Build, CONTENDERS, Contender, Kind, POOLS, WithBackEnd, WithHeap, WithPool, find,
};
pub use heap::table::HEAPS;
pub use heap::{CheckedHeap, Heap};
pub use lines::Lines;
pub use linux::{Linux, LinuxPcp};
pub use pool::{Pool, Units};
pub use spin::{Pause, SpinLock};
