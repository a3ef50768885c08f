//! The field's workloads on every back-end.
//!
//! ```text
//! args        the command line       workloads  what each thread does, by source
//! worker      one thread: allocating, freeing, timed stretches
//! round       a workload on one allocator: its threads, its times, an owner map of what it left
//! measure     rounds of all contenders in turn; verification, latencies, read-modify-writes
//! counted     contenders on words that count
//! row         a measured case        report     tables
//! ```

pub mod args;
mod counted;
pub mod measure;
pub mod report;
mod round;
pub mod row;
pub mod worker;
pub mod workloads;

#[cfg(test)]
mod tests;
