//! The position of every unit and word: pure arithmetic, no atomics.
//!
//! ```text
//! shape     levels, orders, slots       geometry     where the words of an arena stand in its metadata
//! ```

pub(crate) mod geometry;
pub(crate) mod shape;
