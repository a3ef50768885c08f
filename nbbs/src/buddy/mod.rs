//! The operations of the buddy allocator, over the words of a [`Tree`].
//!
//! ```text
//! alloc     claim a block in the lane's word
//! climb     see to the words above a claim, by what the lane knows of them
//! search    find a word worth claiming in
//! free      find a block, clear it
//! hints     what a lane remembers, to save loads      lane   all operations, from one lane
//! reserve   holes
//! batch     many blocks at once
//! units     so many units, here or there     place    find a place for a run
//! exact     claim a run, word by word        run      how far a run goes; free it
//! resize    shrink, grow, split              hold     keep a run to oneself while it changes
//! cut       give a run an end or a beginning where it has none
//! stats     walk, count, map                 audit    check every invariant
//! ```
//!
//! DESIGN.md at the root of the repository explains the protocol and why it is safe.

mod alloc;
mod audit;
mod batch;
mod climb;
mod cut;
mod exact;
mod free;
mod hints;
mod hold;
mod lane;
mod place;
mod reserve;
mod resize;
mod run;
mod search;
mod slots;
mod stats;
mod units;

use crate::sync::AtomicU64;

use crate::error::MetadataError;
use crate::geometry::Geometry;
use crate::sync::Word;
use crate::tree::{LaneWords, Tree};
pub use audit::Audit;
pub use lane::Lane;
pub use stats::{Piece, Stats};

/// A lock-free buddy allocator of blocks of `2^order` units, by unit index.
///
/// A handle over borrowed words: cheap to copy, and any number of handles may work on the same words.
/// Every method takes `&self`, waits for nobody, and may be called from interrupt and signal handlers
/// that interrupt any other method.
///
/// `W` is the atomic that the words are made of; leave it at its default unless you observe or steer
/// the allocator's steps (see [`sync`](crate::sync)).
///
/// # Cost
/// In the steady state one read-modify-write for an allocation and one for a free, and a handful of loads,
/// whatever the size of the arena. A lane that comes to another part of the arena loads a word for each
/// level above it (log16 of the arena's size). A block that splits or empties a word pays one or two
/// read-modify-writes for each word that it splits or merges.
///
/// # Source
/// The non-blocking buddy system of Marotta et al. (IEEE TPDS 2021, section III), repaired: see
/// DESIGN.md, "What was wrong".
#[derive(Debug)]
pub struct Buddy<'a, W = AtomicU64> {
    tree: Tree<'a, W>,
    lanes: &'a [LaneWords<W>],
}

impl<W> Clone for Buddy<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Buddy<'_, W> {}

impl<'a, W: Word> Buddy<'a, W> {
    /// A back-end for `units` units over `words`, of which it uses the first
    /// [`metadata_words(units)`](crate::metadata_words).
    ///
    /// All words zero: an empty arena. Words that another handle of the same number of units works on:
    /// a second handle to the same arena. Lanes stay off each other's cache lines if the words begin on
    /// a 64-byte boundary, as [`Metadata`](crate::Metadata) does.
    ///
    /// Words that hold anything else are no arena: what the methods then answer means nothing, and they
    /// may panic or never return. Memory safety is not at stake, there is no `unsafe` in the back-end.
    ///
    /// # Errors
    /// [`MetadataError::Units`] if `units` is 0 or above [`MAX_UNITS`](crate::MAX_UNITS),
    /// [`MetadataError::TooShort`] if the slice is too short.
    ///
    /// ```
    /// use nbbs::{Buddy, MetadataError, metadata_words};
    /// use std::sync::atomic::AtomicU64;
    ///
    /// let words: Vec<AtomicU64> = (0..metadata_words(100)).map(|_| AtomicU64::new(0)).collect();
    /// assert_eq!(Buddy::new(&words, 100)?.max_order(), 6);
    /// assert_eq!(Buddy::new(&words, 0).unwrap_err(), MetadataError::Units { units: 0, max: 1 << 40 });
    /// # Ok::<(), MetadataError>(())
    /// ```
    pub const fn new(words: &'a [W], units: u64) -> Result<Self, MetadataError> {
        match Tree::new(words, units) {
            Ok((tree, lanes)) => Ok(Self { tree, lanes }),
            Err(error) => Err(error),
        }
    }

    /// A further handle to an arena of `units` units that is already in use, from another thread,
    /// process or mapping. Like [`Buddy::new`], with a check that the words can belong to such an arena.
    ///
    /// Costs a load for each word that pads a level: a few dozen.
    ///
    /// # Errors
    /// Those of [`Buddy::new`], and [`MetadataError::Foreign`] if a word that an arena of this many
    /// units never writes is not zero. A mismatch that shows in no such word goes unnoticed.
    ///
    /// ```
    /// use nbbs::{Buddy, Metadata};
    ///
    /// let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// let one = Buddy::new(metadata.words(), 64)?;
    /// let two = Buddy::attach(metadata.words(), 64)?;
    /// let block = one.alloc(2)?;
    /// assert_eq!(two.free(block)?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attach(words: &'a [W], units: u64) -> Result<Self, MetadataError> {
        let buddy = Self::new(words, units)?;
        match buddy.tree.first_foreign_word() {
            Some(word) => Err(MetadataError::Foreign { units, word }),
            None => Ok(buddy),
        }
    }

    /// Units in the arena.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// assert_eq!(nbbs::Buddy::new(metadata.words(), 64)?.units(), 64);
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.geometry().units()
    }

    /// The largest order of which a block fits into the arena: log2 of its units, rounded down.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(100) }>::new();
    /// assert_eq!(nbbs::Buddy::new(metadata.words(), 100)?.max_order(), 6);
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub const fn max_order(&self) -> u32 {
        self.geometry().max_order()
    }

    /// The same back-end, as seen from `lane`: a CPU or thread number, any value.
    ///
    /// A lane remembers where it last allocated, so callers with different lanes keep off each other's
    /// cache lines. A wrong or shared lane costs speed, never safety.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(3);
    /// let block = cpu.alloc(0)?;
    /// cpu.free(block)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn on(&self, lane: usize) -> Lane<'a, W> {
        Lane { buddy: *self, lane }
    }

    #[inline(always)]
    const fn geometry(&self) -> &Geometry<W> {
        &self.tree.geometry
    }

    /// Remembers for `lane` what it left in word `idx` of `level`, if it changed it.
    fn noted<T>(
        &self,
        lane: usize,
        level: usize,
        idx: u64,
        changed: Option<(u64, T)>,
    ) -> Option<(u64, T)> {
        if let Some((new, _)) = &changed {
            self.hints(lane).note(self.geometry().place(level, idx), *new);
        }
        changed
    }
}
