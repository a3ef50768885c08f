//! What users call.
//!
//! ```text
//! buddy     an arena: make it, reserve in it, look at it      lane      every operation, from one lane
//! look      what is in it                                     units     exactly so many units, here or anywhere
//! reserve   what is never handed out                          resize    shrink, grow, split
//! owned     blocks that free themselves                       number    which lane a thread has
//! mend      what the dead left behind
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
pub use owned::Block;
