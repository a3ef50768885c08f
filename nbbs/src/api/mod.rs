//! The public interface.
//!
//! ```text
//! buddy     an arena: creation, short forms                lane      operations on blocks, from one lane
//! look      queries, statistics, the audit                 units     runs of an exact number of units
//! reserve   reserving units, adding memory                 resize    shrink, grow, split
//! owned     blocks that free themselves                    number    which lane a thread has
//! mend      repairs what dead threads left behind
//! ```

mod buddy;
mod lane;
mod look;
mod mend;
mod number;
mod owned;
mod reserve;
mod resize;
mod units;

pub use buddy::Buddy;
pub use lane::Lane;
pub use number::default_lane;
#[cfg(feature = "std")]
pub use number::next_lane;
#[cfg(feature = "std")]
pub(crate) use number::process;
pub use owned::Block;
