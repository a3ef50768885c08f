//! Measures what an operation of `nbbs` costs beside the least that it can cost.
//!
//! ```text
//! arena   metadata, filled and thinned out     bare    the floor: compare-and-swaps and nothing else
//! pairs   allocate one, free it, again and again
//! ways    the same as users call them          heap    the same by the heap
//! fail    allocations that find nothing
//! bulk    half the arena, freed in two orders  row     the cases, as rows
//! report  the tables, and the worst cases in plain words
//! measure all of them, arena by arena              args    what the command line asks for
//! ```

pub mod arena;
pub mod args;
mod bare;
mod bulk;
mod fail;
mod heap;
mod measure;
mod pairs;
pub mod report;
mod row;
mod ways;

pub use measure::CASES;

use crate::suite::workloads::Usual;

/// The defaults: arenas of 1 GiB, 64 GiB and 1 TiB.
pub const USUAL: Usual = Usual {
    threads: &[1, 2],
    orders: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    sizes: &[],
    arena_units: &[1 << 18, 1 << 24, 1 << 28],
    heap_bytes: 0,
    rounds: 101,
};

/// The defaults with `--quick`: less than half a minute.
pub const QUICK: Usual = Usual { arena_units: &[1 << 18, 1 << 24], rounds: 15, ..USUAL };

/// The largest order that can be asked for: a block of half of the smallest arena, 1 GiB.
pub const MAX_ORDER: u32 = 17;
