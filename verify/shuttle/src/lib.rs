//! Races under the schedules of shuttle.
//!
//! ```text
//! word       a metadata word: before each access to it shuttle may let another thread go on
//! schedule   random and PCT schedules, and how to run a race under them
//! races      races made from a seed: all orders, reservations, statistics
//! caches     races of CPUs with caches, made from a seed
//! arguments  the command line: the parts and the share of the races that are run
//! patients   the allocators that are known to be broken, and their sound twins
//! ```

pub mod arguments;
pub mod caches;
pub mod patients;
pub mod races;
pub mod schedule;
pub mod word;
