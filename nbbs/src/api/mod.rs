//! The public interface.
//!
//! ```text
//! buddy     an arena: creation, short forms                lane      operations on blocks, from one lane
//! look      queries, statistics, the audit                 units     runs of an exact number of units
//! reserve   reserving units, adding memory                 resize    shrink, grow, split
//! owned     blocks that free themselves                    thread    the lane of the calling thread
//! mend      repairs what dead threads left behind
//! ```

mod buddy;
mod lane;
mod look;
mod mend;
mod owned;
mod reserve;
mod resize;
mod thread;
mod units;

pub use buddy::Buddy;
pub use lane::Lane;
pub use owned::Block;
pub use thread::default_lane;
#[cfg(feature = "std")]
pub use thread::next_lane;
#[cfg(feature = "std")]
pub(crate) use thread::process;
