//! Looking at a heap while others use it.
//!
//! ```text
//! stats    what its memory is used for             audit   whether its bookkeeping is in order
//! profile  what is in use, block by block
//! ```

mod audit;
mod profile;
mod stats;

pub use audit::AuditError;
pub use profile::{LiveBlock, Profile};
pub use stats::{ClassStats, Stats};
