//! The systems of the paper: R. Marotta et al., "A Non-blocking Buddy System for Scalable Memory Allocation on
//! Multi-core Machines", 2018. They follow its text and its Algorithms 1 to 4.
//!
//! **`nb1` and `nb4` are unsafe: they hand out memory that is held.** They are here to be measured, and to be caught by
//! every check. A coalescing bit does not say which release set it, so a release that stalls takes the bit of a later
//! release for its own:
//!
//! | step | thread A | thread B | thread C | parent P | root R |
//! |---|---|---|---|---|---|
//! | 1 | frees n1: marks P, R; clears n1; unmarks P; stalls before R | | | 0 | OCC_L, COAL_L |
//! | 2 | | allocs n2, then starts to free it: marks P, stalls before R | | OCC_R, COAL_R | OCC_L |
//! | 3 | | | allocs n1, climbs, returns | OCC_L, OCC_R, COAL_R | OCC_L |
//! | 4 | | marks R | | | OCC_L, COAL_L |
//! | 5 | resumes: R has COAL_L, so clears OCC_L and COAL_L | | | | 0 |
//! | 6 | allocs R: succeeds while C holds n1 | | | | BUSY |
//!
//! `sl1` and `sl4` are the same code with a spin lock around every attempt: one thread at a time is safe.
//!
//! ```text
//! status        a node's five bits
//! bunch         four levels of them in a word
//! discipline    compare-and-swap or a lock
//! one_level     Algorithms 2 to 4: a word per node
//! four_levels   Algorithms 2 to 4: a word per bunch
//! search        where NBAlloc begins its search
//! ```

mod bunch;
mod discipline;
mod four_levels;
mod one_level;
mod search;
mod status;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::sync::atomic::AtomicU64;

use nbbs::sync::{Ordering, Word};
use testkit::BackEnd;

use crate::lock::Apart;
pub use discipline::{Discipline, NonBlocking, SpinLocked};
pub use four_levels::FourLevels;
pub use one_level::OneLevel;
use search::Cursors;

/// The largest block that the paper measures: 16 KiB in units of 8 bytes.
pub const MAX_ORDER: u32 = 11;

/// The most units of an arena: its 1-level tree takes 64 GiB.
pub const MAX_UNITS: u64 = 1 << 32;

/// The non-blocking buddy, 1 level per word. **Unsafe: overlaps under three threads.**
pub type Nb1<W = AtomicU64> = Paper<W, OneLevel<W, NonBlocking>, NonBlocking>;

/// The non-blocking buddy, 4 levels per word. **Unsafe: overlaps under three threads.**
pub type Nb4<W = AtomicU64> = Paper<W, FourLevels<W, NonBlocking>, NonBlocking>;

/// The 1-level buddy with a spin lock around each attempt.
pub type Sl1<W = AtomicU64> = Paper<W, OneLevel<W, SpinLocked<W>>, SpinLocked<W>>;

/// The 4-level buddy with a spin lock around each attempt.
pub type Sl4<W = AtomicU64> = Paper<W, FourLevels<W, SpinLocked<W>>, SpinLocked<W>>;

/// The status of all nodes, and Algorithms 2 to 4 on it.
pub trait Tree: Sync {
    /// Creates a tree of `depth` levels below the root, all free.
    fn new(depth: u32) -> Self;

    /// Returns how many words it has.
    fn words(&self) -> usize;

    /// Returns whether the node looks neither allocated nor split.
    fn is_free(&self, node: u64) -> bool;

    /// Allocates the node and marks its ancestors up to `max_level`, or changes nothing in effect.
    ///
    /// # Errors
    /// The node that made it fail.
    fn try_alloc(&self, node: u64, max_level: u32) -> Result<(), u64>;

    /// Frees the node and unmarks its ancestors up to the level `upper_bound`.
    fn free_node(&self, node: u64, upper_bound: u32);
}

/// Returns the level of a node: the root's is 0.
fn level(node: u64) -> u32 {
    node.ilog2()
}

/// `NBAlloc` and `NBFree` on a tree of either kind, with or without a lock.
///
/// The tree is complete, like the paper's; if the number of units is not a power of two, blocks that do not fit are
/// never tried.
#[derive(Debug)]
pub struct Paper<W, T, D> {
    units: u64,
    depth: u32,
    max_level: u32,
    tree: T,
    /// For each unit, the node that was allocated there last, or 0 if none was.
    index: Box<[W]>,
    discipline: Apart<D>,
    cursors: Cursors,
}

impl<W: Word + Default, T: Tree, D: Discipline<W>> Paper<W, T, D> {
    /// Creates an arena of `units` free units that serves orders 0 to `max_order`, or to the largest of which a block
    /// fits.
    ///
    /// # Panics
    /// If `units` is 0 or above [`MAX_UNITS`].
    #[must_use]
    pub fn new(units: u64, max_order: u32) -> Self {
        assert!((1..=MAX_UNITS).contains(&units), "1 to {MAX_UNITS} units, not {units}");
        let depth = units.next_power_of_two().ilog2();
        Self {
            units,
            depth,
            max_level: depth - max_order.min(units.ilog2()),
            tree: T::new(depth),
            index: (0..units).map(|_| W::default()).collect(),
            discipline: Apart::default(),
            cursors: Cursors::new(units),
        }
    }

    /// Algorithm 1, from a scattered point on and once around.
    fn nb_alloc(&self, lane: usize, order: u32) -> Option<u64> {
        let level = self.depth - order;
        let first = 1 << level;
        let end = first + (self.units >> order);
        let start = (first + (self.cursors.at(lane) >> order)).min(end - 1);
        let node = self.scan(level, start, end).or_else(|| self.scan(level, first, start))?;
        let unit = (node - first) << order;
        // Relaxed: a thread that frees the block got it from its holder.
        self.index[unit as usize].store(node, Ordering::Relaxed);
        self.cursors.set(lane, unit);
        Some(unit)
    }

    /// A11 to A22: allocates one of these nodes of a level.
    fn scan(&self, of_level: u32, mut node: u64, end: u64) -> Option<u64> {
        while node < end {
            if !self.tree.is_free(node) {
                node += 1;
                continue;
            }
            let attempt = || self.tree.try_alloc(node, self.max_level);
            match self.discipline.attempt(attempt) {
                Ok(()) => return Some(node),
                // A18, A19: after everything below the node that failed.
                Err(failed_at) => node = (failed_at + 1) << (of_level - level(failed_at)),
            }
        }
        None
    }

    /// `NBFree`, as published: a second free of the same block is not noticed, and frees memory that others hold.
    fn nb_free(&self, node: u64) {
        self.discipline.attempt(|| self.tree.free_node(node, self.max_level));
    }
}

impl<W: Word + Default, T: Tree, D: Discipline<W>> BackEnd for Paper<W, T, D> {
    fn units(&self) -> u64 {
        self.units
    }

    fn max_order(&self) -> u32 {
        self.depth - self.max_level
    }

    fn metadata_bytes(&self) -> usize {
        let words = self.tree.words() + self.index.len();
        size_of::<Self>() + size_of::<W>() * words + self.cursors.heap_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        if order <= self.max_order() { self.nb_alloc(lane, order) } else { None }
    }

    /// The paper's free takes no order; here a wrong one is refused.
    fn free(&self, _lane: usize, index: u64, order: u32) -> Result<(), String> {
        let entry = usize::try_from(index).ok().and_then(|unit| self.index.get(unit));
        let entry = entry.ok_or_else(|| format!("{index} is outside {} units", self.units))?;
        let node = entry.load(Ordering::Relaxed);
        if node == 0 || self.depth - level(node) != order {
            return Err(format!("no block of order {order} was allocated at {index}"));
        }
        self.nb_free(node);
        Ok(())
    }
}
