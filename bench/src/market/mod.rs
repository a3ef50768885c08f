//! The market: everything that can be measured, this project's first.
//!
//! A system joins the tests, the replay and the benchmarks with one entry: in [`CONTENDERS`], in [`POOLS`] if all its
//! blocks are of one size, or in [`HEAPS`] if they are of any size. **Some are unsafe, on purpose**: faithful copies of
//! systems that hand out memory twice. They are marked `safe: false`.
//!
//! ```text
//! contender   the tables of back-ends and pools      heap    memory by size: what crates.io has, the system's
//! c_interface the back-end as C programs call it     cached  the back-end behind caches of threads
//! frame       the frame allocator of buddy_system_allocator      frame_alloc  frame-alloc's core and depot
//! ```
//!
//! Contenders from other crates, and the C interface, need the feature `suite`.

#[cfg(feature = "suite")]
mod c_interface;
mod cached;
mod contender;
#[cfg(feature = "suite")]
mod frame;
#[cfg(feature = "suite")]
mod frame_alloc;
mod heap;

use crate::args::command_line;

pub use contender::{
    Build, CONTENDERS, Contender, Kind, POOLS, WithBackEnd, WithHeap, WithPool, find,
};
pub use heap::table::HEAPS;
pub use heap::{CheckedHeap, Heap};

/// Allocators that one would look for here, and why they are not among the contenders.
const ABSENT: &[(&str, &str)] = &[
    ("llfree", "it is not on crates.io"),
    ("frusa", "up to 0.1.3 it does not build with stable Rust: it has #![feature(test)]"),
    (
        "ferroc",
        "up to 1.0.0-pre.3 it does not build with stable Rust: it uses the unstable trait Allocator",
    ),
    #[cfg(not(feature = "native"))]
    ("mimalloc", NATIVE),
    #[cfg(not(feature = "native"))]
    ("snmalloc", NATIVE),
    #[cfg(not(feature = "native"))]
    ("jemalloc", NATIVE),
];

#[cfg(not(feature = "native"))]
const NATIVE: &str = "it needs --features native, a C++ compiler and CMake";

/// The allocators, pools included, that only a build with the feature `suite` has.
const OF_SUITE: &[&str] = &[
    "nbbs-c",
    "frame-allocator",
    "frame-alloc",
    "frame-alloc-depot",
    "linked-list",
    "galloc",
    "talc",
    "rlsf",
    "buddy-system",
    "buddy-alloc",
    "rusty-alloc",
    "sharded-slab",
    "slab",
    "typed-arena",
];

/// Says why an allocator of that name is not among the contenders, if the reason is known.
#[must_use]
pub fn absent(name: &str) -> Option<String> {
    if !cfg!(feature = "suite") && OF_SUITE.contains(&name) {
        let words = command_line();
        return Some(format!(
            "{name} needs the feature `suite`: cargo run --release --features suite -- {words}"
        ));
    }
    let (name, why) = ABSENT.iter().find(|absent| absent.0 == name)?;
    Some(format!("{name} is not measured: {why}"))
}

#[cfg(test)]
mod tests {
    use super::{ABSENT, CONTENDERS, HEAPS, OF_SUITE, absent, find};
    use crate::suite::args::known;

    #[test]
    fn who_is_absent_is_not_a_contender_and_has_a_reason() {
        assert!(ABSENT.iter().all(|(name, _)| find(name).is_none()));
        assert!(absent("frusa").is_some_and(|why| why.contains("stable Rust")));
        assert_eq!(absent("nbbs"), None);
    }

    /// A build without the suite has nothing but the list to tell who is in it.
    #[test]
    fn who_needs_the_suite_is_listed() {
        for name in OF_SUITE {
            assert_eq!(known(name).is_ok(), cfg!(feature = "suite"), "{name}");
        }
        let of_crates = CONTENDERS.iter().chain(HEAPS);
        for contender in of_crates.filter(|contender| contender.source.starts_with("crate ")) {
            let is_native = ["mimalloc", "snmalloc", "jemalloc"].contains(&contender.name);
            assert!(is_native || OF_SUITE.contains(&contender.name), "{}", contender.name);
        }
    }
}
