//! Checks on real threads and processes: `stress` (delays between atomic steps, sanitizers), `signals` and `processes`.
//!
//! ```text
//! systems      the systems that are checked: nbbs and the others, on words of any kind
//! hooked       a word that calls a function before every access
//! delays       such a function that lets time pass
//! payload      an allocator whose holders write to their memory, for the sanitizers to see
//! cached       caches in front of nbbs
//! hands        what an actor holds: a thread with its handlers, or a process
//! blocks       an actor that allocates and frees blocks, of any system
//! everything   an actor that makes every call of nbbs      calls   those calls
//! shared       a system in memory that several processes share
//! ```

mod blocks;
mod cached;
mod calls;
mod delays;
mod everything;
mod hands;
mod hooked;
mod payload;
mod shared;
mod systems;

pub use blocks::Blocks;
pub use delays::{Delays, delayed, random};
pub use everything::Everything;
pub use hands::{Actor, Hands, Stake};
pub use hooked::{Hooked, with_hook};
pub use payload::Payload;
pub use shared::{Member, Shared, marks};
pub use systems::{SYSTEMS, System, find};
