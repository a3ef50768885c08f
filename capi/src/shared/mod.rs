//! Shared memory that outlives its processes: segments of `nbbs-shared`, for Linux, with the feature `shared`.
//!
//! ```text
//! segment   made, attached, looked at      member   alloc, free, take, recover      refusal   the codes
//! heap      memory of any size
//! ```

mod heap;
mod member;
mod refusal;
mod segment;

pub use heap::*;
pub use member::*;
pub use segment::*;
