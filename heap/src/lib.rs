//! A lock-free heap over static memory: one line makes it the global allocator.
#![cfg_attr(not(feature = "std"), no_std)]

mod cache;
mod class;
mod heap;
mod lanes;
mod region;
mod regions;
mod slabs;
#[cfg(feature = "std")]
mod threads;

pub use heap::{AddError, Heap};
