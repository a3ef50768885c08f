//! Other allocators, re-implemented faithfully: to test checkers on, and to measure `nbbs` beside.
//!
//! **Some are unsafe, on purpose**: faithful copies of systems that hand out memory twice, which every check has to
//! catch. The table of everything that can be measured, these and allocators from crates.io, is `bench/src/market`.
//!
//! ```text
//! pool        slots of one size    spin    a spin lock that checkers can steer
//! linux       the kernel's buddy: zone (free lists, split, merge) under a lock; per-CPU page lists
//! lock        the locks of that: test-and-test-and-set, tickets, MCS
//! paper       the non-blocking buddy and its spin-lock twins, on one level per word and on four
//! buddy_sl    the array-tree buddy under a spin lock
//! guarded     a lock around an allocator without one
//! workshop    lists, red-black trees, the tree of largest free orders
//! free_list   the pools of slots: lock-free, without and with a tag, and under a spin lock
//! ```
// Not `forbid`: the macro with which `intrusive_collections` links its nodes allows it for what it expands to.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

#[cfg(feature = "std")]
pub mod buddy_sl;
pub mod free_list;
#[cfg(feature = "std")]
pub mod guarded;
pub mod linux;
pub mod lock;
pub mod paper;
mod pool;
mod spin;
#[cfg(feature = "std")]
pub mod workshop;

#[cfg(feature = "std")]
pub use buddy_sl::BuddySl;
pub use pool::{Pool, Units};
pub use spin::{Pause, SpinLock};
