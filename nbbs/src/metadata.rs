//! Storage for the words of a back-end.

use crate::sync::AtomicU64;

/// `WORDS` zeroed metadata words on a cache-line boundary: the state of an empty arena.
///
/// All zero, so a `static` of this type lives in `.bss` and needs no start-up code.
///
/// ```
/// use nbbs::{Buddy, Metadata, metadata_words};
///
/// static WORDS: Metadata<{ metadata_words(1000) }> = Metadata::new();
/// static FRAMES: Buddy = match Buddy::new(WORDS.words(), 1000) {
///     Ok(buddy) => buddy,
///     Err(_) => panic!("metadata_words() and new() disagree"),
/// };
/// assert_eq!(FRAMES.alloc_on(0, 9)?, 0);
/// # Ok::<(), nbbs::AllocError>(())
/// ```
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Metadata<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Metadata<WORDS> {
    /// All words zero.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    /// The words, to lend to [`Buddy::new`](crate::Buddy::new).
    #[must_use]
    pub const fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl<const WORDS: usize> Default for Metadata<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}
