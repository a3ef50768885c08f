//! `nbbs.h`: the buddy allocator, object pools and heaps for C.
//!
//! The functions here are meant to be called from C. `include/nbbs.h` is generated from this source, and
//! `capi/README.md` is the guide. What C programs rely on:
//!
//! - **Pointers.** A pointer that is null or misaligned, or memory that is too short, is refused with a code. An
//!   optional result is not refused then, but left unwritten. Otherwise a pointer must lead to what its type says, for
//!   as long as the function's documentation says; that is the safety contract of every function here, and cannot be
//!   checked.
//! - **Errors.** A function that can be refused returns a [`Code`]. Its last argument, if not null, gets an
//!   [`Error`] that names the value and the limit. A refusal changes nothing, unless its documentation says so.
//! - **Threads.** No function that takes a `const` arena waits for anybody. Unless it says otherwise, it may be called
//!   by any thread at any time, and from interrupt and signal handlers, and so may every function of pools and heaps.
//!   What says otherwise: the audits; what creates something, or sets a hook or a CPU; `nbbs_cache_recover`;
//!   `nbbs_cache_drain_all`, which calls the caller's `barrier`; calls that use the cache of a CPU, of which two with
//!   one number overlap only if one interrupts the other; the locals of a pool; and pools that have to grow, which call
//!   their source, by default `malloc`.
//! - **No panic crosses.** None is expected; if there were one, the process is aborted, or a freestanding program
//!   stopped.
//!
//! # Layers
//!
//! ```text
//! plain     one arena for the whole program: nb_init, nb_alloc, nb_free, nb_stat_*
//! arena     any number of arenas: nbbs_*          pool     objects of one size: nbbs_pool_*
//! cache     blocks of a CPU's own: nbbs_cache_*            heap     memory of any size: nbbs_heap_*
//! small     little memory of any size: nbbs_small_*
//! shared    memory that outlives its processes: nbbs_shared_*, with the feature `shared`
//! handle    how pools, heaps and segments are reached from a caller's pointer
//! pointer   what a caller's pointer may be        error    codes, hooks           refusal   their text
//! setting   which setting was refused         function   which function refused
//! malloc    the C library's   lane   the thread's lane           freestanding   the panic handler
//! ```
#![no_std]
#![warn(missing_debug_implementations)]
// The contract is the same for all functions, and stated above.
#![allow(clippy::missing_safety_doc)]

#[cfg(feature = "std")]
extern crate std;

#[cfg(all(feature = "shared", not(target_os = "linux")))]
compile_error!("the feature `shared` is for Linux");

mod arena;
mod cache;
mod error;
#[cfg(all(feature = "freestanding", not(feature = "std"), not(test)))]
mod freestanding;
mod function;
mod handle;
mod heap;
mod lane;
mod malloc;
mod plain;
mod pointer;
mod pool;
mod refusal;
mod setting;
#[cfg(feature = "shared")]
mod shared;
mod small;

pub use arena::*;
pub use cache::*;
pub use error::*;
pub use heap::*;
pub use plain::*;
pub use pool::*;
pub use setting::*;
#[cfg(feature = "shared")]
pub use shared::*;
pub use small::*;
