//! The workloads, and the rounds that measure them.
//!
//! ```text
//! args        the command line       workloads  what each thread does, by source; what is measured by itself
//! plan        tables of cases, with memory that they fit into
//! room        how much memory a case takes, and the machine has     asked    what has no effect
//! worker      one thread: allocating, freeing, timed stretches
//! gauge       a timed stretch, times of its operations       instructions  of a case, counted by callgrind
//! round       a workload on one allocator: its threads, its times, an owner map of what it left
//! measure     rounds of all contenders in turn; verification, latencies, read-modify-writes
//! spurious    refusals that are wrong for certain
//! suspended   a thread asleep in the middle of an operation
//! on_heap     heaps as the workloads see them       heap_worker  one thread of a workload for heaps
//! row         what was measured of a contender, as rows
//! own         what rows of one workload alone have           report        tables
//! ```

pub mod args;
mod asked;
mod gauge;
mod heap_worker;
pub mod instructions;
pub mod measure;
pub mod on_heap;
pub mod own;
pub mod plan;
pub mod report;
pub mod room;
mod round;
mod row;
mod spurious;
#[cfg(unix)]
mod suspended;
pub mod worker;
pub mod workloads;

#[cfg(test)]
mod tests;
