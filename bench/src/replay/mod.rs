//! Replaying a trace on an allocator.
//!
//! ```text
//! plan     which thread does what        course   threads that follow a plan, in step where they must
//! timing   how long each operation took  verify   whether the oracle has anything against it
//! row      the figures of one allocator  report   the table, and who was faster in plain words
//! ```

pub mod course;
mod plan;
pub mod report;
pub mod row;
pub mod timing;
pub mod verify;

pub use plan::Plan;
