//! One oracle, one form of operation program and one stress driver for every allocator in this project.
//!
//! ```text
//! back_end    the interface of any allocator
//! ask         requests for runs of any size
//! violation   anything that can go wrong, as a value
//! symptom     the violation by which a broken allocator is known
//! in_hand     the memory that may be lost when a thread stops for good
//! oracle      who holds which unit; exact under any number of threads
//! addresses   who holds which bytes of a heap
//! spec        the sequential specification: which blocks are free, and so which refusals are honest
//! checked     an allocator with the two above beside it
//! whole       checks that every order can be allocated in full after everything is returned
//! stress      threads, a mix of orders, blocks handed from thread to thread
//! program     operations as data, and two interpreters: in turn, and one thread per lane
//! corpus      the inputs that the fuzzer has kept
//! counters    versions and the epoch, about to wrap
//! depth       how deep the suite goes
//! share       the share of many things that a check tries
//! arguments   the command line of a checker
//! history     recorded calls, checked against the specification
//! hooked      a metadata word with a hook before every access
//! counting    a word whose accesses are counted
//! touched     a word that notes which cache lines are touched, by lane
//! steered     such a word, with which a test steers its threads: jitter, schedules, sudden death
//! ```
//!
//! Without the feature `full` there is the oracle, for measurements; with it there are also the programs, the schedules
//! and the stress. Without the default feature `std` there are only `back_end`, `ask` and `hooked`, for programs
//! without an operating system.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

#[cfg(feature = "std")]
mod addresses;
#[cfg(feature = "std")]
mod arguments;
mod ask;
mod back_end;
#[cfg(feature = "std")]
mod checked;
#[cfg(feature = "full")]
mod corpus;
#[cfg(feature = "full")]
mod counters;
#[cfg(feature = "std")]
pub mod counting;
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
#[cfg(feature = "full")]
mod share;
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
#[cfg(feature = "std")]
pub use arguments::arguments;
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
#[cfg(feature = "full")]
pub use share::Share;
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
