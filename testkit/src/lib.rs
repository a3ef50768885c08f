//! One oracle, one form of operation program and one stress driver for every allocator in this project.
//!
//! ```text
//! back_end    what is asked of any allocator
//! violation   what can go wrong, as a value
//! oracle      who holds which unit; exact under any number of threads
//! addresses   who holds which bytes of a heap
//! spec        the sequential specification: which blocks are free, hence which refusals are honest
//! checked     an allocator with the two above beside it
//! whole       after everything is returned, every order can be allocated in full
//! stress      threads, a mix of orders, blocks handed from thread to thread
//! program     operations as data, and two interpreters: in turn, and one thread per lane
//! history     who asked what when, held against the specification
//! hooked      a metadata word with a hook before every access
//! steered     such a word by which a test steers its threads: jitter, schedules, sudden death
//! ```
#![forbid(unsafe_code)]

mod addresses;
mod back_end;
mod checked;
pub mod history;
pub mod hooked;
mod oracle;
pub mod program;
mod spec;
pub mod steered;
mod stress;
mod violation;
mod whole;

pub use addresses::Addresses;
pub use back_end::BackEnd;
pub use checked::Checked;
pub use oracle::Oracle;
pub use spec::{Spec, Unit};
pub use stress::{Load, Report, stress, stress_beside};
pub use violation::{Block, Holder, Violation};
pub use whole::check_whole;
