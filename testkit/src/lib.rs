//! One oracle, one form of operation program and one stress driver for every allocator in this project.
//!
//! ```text
//! back_end    what is asked of any allocator
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
//! counters    versions and the epoch, about to wrap
//! depth       how deep the suite goes
//! history     who asked what when, held against the specification
//! hooked      a metadata word with a hook before every access
//! steered     such a word by which a test steers its threads: jitter, schedules, sudden death
//! ```
#![deny(unsafe_code)]

mod addresses;
mod back_end;
mod checked;
mod counters;
mod depth;
pub mod history;
pub mod hooked;
mod in_hand;
mod oracle;
pub mod program;
mod spec;
pub mod steered;
mod stress;
mod symptom;
mod violation;
mod whole;

pub use addresses::Addresses;
pub use back_end::BackEnd;
pub use checked::Checked;
pub use counters::Counters;
pub use depth::{depth, preemptions};
pub use in_hand::InHand;
pub use oracle::Oracle;
pub use spec::{Spec, Unit};
pub use stress::{Load, Report, stress, stress_beside};
pub use symptom::Symptom;
pub use violation::{Block, Holder, Violation};
pub use whole::check_whole;
