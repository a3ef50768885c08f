//! Measures objects of 48 bytes: allocated, freed, handed over and freed in disorder.
//!
//! ```text
//! subject   what is asked of an allocator      contenders   the table of them
//! course    the cases, and timing them         measure      all contenders in turn
//! row       a measured case, as a row          args         what the command line asks for
//! ```

pub mod args;
mod contenders;
mod course;
mod measure;
mod row;
mod subject;

pub use contenders::{CONTENDERS, Contender};
pub use course::ObjectCase;
pub use measure::CASES;

/// Returns the names of all allocators.
pub fn names(separator: &str) -> String {
    let names: Vec<&str> = CONTENDERS.iter().map(|contender| contender.name).collect();
    names.join(separator)
}
