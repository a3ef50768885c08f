//! Checks on real threads: `stress` (delays between atomic steps, sanitizers) and `signals`.
//!
//! ```text
//! systems   what is checked: nbbs and the others, on words of any kind
//! hooked    a word that calls a function before every access
//! delays    such a function that lets time pass
//! payload   a back-end whose holders write to their memory, for the sanitizers to see
//! ```

mod delays;
mod hooked;
mod payload;
mod systems;

pub use delays::{Delays, delayed, random};
pub use hooked::{Hooked, with_hook};
pub use payload::Payload;
pub use systems::{SYSTEMS, System, find};
