//! Queries of an arena that may be in use. Nothing here writes, and the fast paths pay nothing for it.
//!
//! ```text
//! walk      every piece, in order          map      how full each stretch is
//! stats     how much is free, and in what  audit    every invariant
//! ```

mod audit;
mod map;
mod stats;
mod walk;

use crate::tree::Tree;
pub use audit::Audit;
pub use stats::Stats;
pub use walk::Piece;

/// An arena, for operations that only read.
pub(crate) struct Look<'b, W>(pub &'b Tree<'b, W>);

copy!(Look<'_, W>);
