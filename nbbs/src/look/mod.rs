//! Queries, which write nothing, and for which the fast paths pay nothing. All but the audit may run while the arena
//! is in use.
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
