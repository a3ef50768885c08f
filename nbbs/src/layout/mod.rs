//! Which unit is where: pure arithmetic, no atomics.
//!
//! ```text
//! shape     levels, orders, slots       geometry     where the words of an arena stand in its metadata
//! ```

pub(crate) mod geometry;
pub(crate) mod shape;
