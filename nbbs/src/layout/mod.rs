//! The position of every unit and word: pure arithmetic, no atomics.
//!
//! ```text
//! shape     levels, orders, slots       geometry     positions of an arena's words in its metadata
//! ```

pub(crate) mod geometry;
pub(crate) mod shape;
