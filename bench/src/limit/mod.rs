//! What an operation of `nbbs` costs against the least that it can cost.
//!
//! ```text
//! arena   metadata, filled and thinned out     bare    the floor: compare-and-swaps and nothing else
//! crew    threads that begin together          pairs   allocate one, free it, again and again
//! bulk    half the arena, freed in two orders  fail    allocations that find nothing
//! ways    pairs as users call them             row     a measured case
//! report  the tables, and the worst cases in plain words
//! ```

pub mod arena;
mod bare;
pub mod bulk;
pub mod crew;
pub mod fail;
pub mod pairs;
pub mod report;
pub mod row;
pub mod ways;
