//! What an operation of `nbbs` costs against the least that it can cost.
//!
//! ```text
//! arena   metadata, filled and thinned out     bare    the floor: compare-and-swaps and nothing else
//! pairs   allocate one, free it, again and again
//! ways    the same as users call them          fail    allocations that find nothing
//! bulk    half the arena, freed in two orders  row     the cases, as rows
//! report  the tables, and the worst cases in plain words
//! ```

pub mod arena;
mod bare;
pub mod bulk;
pub mod fail;
pub mod pairs;
pub mod report;
pub mod row;
pub mod ways;
