//! One oracle, one form of operation program and one stress driver for every allocator in this project.
//!
//! ```text
//! back_end    what is asked of any allocator
//! ask         asking for runs of any size
//! violation   what can go wrong, as a value
//! symptom     which of it a broken allocator is known by
//! in_hand     what a thread that stops for good may cost
//! oracle      who holds which unit; exact under any number of threads
//! addresses   who holds which bytes of a heap
//! spec        the sequential specification: which blocks are free, hence which refusals are honest
//! checked     an allocator with the two above beside it
//! whole       after everything is returned, every order can be allocated in full
//! stress      threads, a mix of orders, blocks handed from thread to thread
//! program     operations as data, and two interpreters: in turn, and one thread per lane
//! corpus      what the fuzzer has kept
//! counters    versions and the epoch, about to wrap
//! depth       how deep the suite goes
//! history     who asked what when, held against the specification
//! hooked      a metadata word with a hook before every access
//! touched     a word that notes which cache lines are touched, by lane
//! steered     such a word by which a test steers its threads: jitter, schedules, sudden death
//! ```
//!
//! The oracle comes by itself, for what is measured; with the feature `full` come the programs, the schedules and the stress.
//! Without the default feature `std` there are `back_end`, `ask` and `hooked`, for programs without an operating system.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

#[cfg(feature = "std")]
mod addresses;
mod ask;
mod back_end;
#[cfg(feature = "std")]
mod checked;
#[cfg(feature = "full")]
mod corpus;
#[cfg(feature = "full")]
mod counters;
#[cfg(feature = "std")]
mod depth;
#[cfg(feature = "full")]
pub mod history;
pub mod hooked;
#[cfg(feature = "full")]
mod in_hand;
#[cfg(feature = "std")]
mod oracle;
#[cfg(feature = "full")]
pub mod program;
#[cfg(feature = "std")]
mod spec;
#[cfg(feature = "full")]
pub mod steered;
#[cfg(feature = "full")]
mod stress;
#[cfg(feature = "full")]
mod symptom;
#[cfg(feature = "full")]
pub mod touched;
#[cfg(feature = "std")]
mod violation;
#[cfg(feature = "std")]
mod whole;

#[cfg(feature = "std")]
pub use addresses::Addresses;
pub use back_end::BackEnd;
#[cfg(feature = "std")]
pub use checked::Checked;
#[cfg(feature = "full")]
pub use corpus::corpus;
#[cfg(feature = "full")]
pub use counters::Counters;
#[cfg(feature = "std")]
pub use depth::{depth, preemptions};
#[cfg(feature = "full")]
pub use in_hand::InHand;
#[cfg(feature = "std")]
pub use oracle::Oracle;
#[cfg(feature = "std")]
pub use spec::{Spec, Unit};
#[cfg(feature = "full")]
pub use stress::{Load, Report, stress, stress_beside};
#[cfg(feature = "full")]
pub use symptom::Symptom;
#[cfg(feature = "std")]
pub use violation::{Block, Holder, Violation};
#[cfg(feature = "std")]
pub use whole::check_whole;
