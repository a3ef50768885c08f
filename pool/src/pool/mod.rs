//! The pool.
//!
//! ```text
//! mod      making one, claiming a slot
//! object   alloc, free, boxes, batches         count   len, capacity, is_valid
//! grow     grow, tend, shrink                  live    iterating, clearing, dropping
//! stats    all counts in one look
//! ```

mod count;
mod grow;
mod live;
mod object;
mod stats;

use core::cell::Cell;
use core::fmt;

use crate::chunk::{Chunk, Extra, SLOTS, first_slot};
use crate::config::Config;
use crate::error::Exhausted;
use crate::lane::{LANES, Lane};
use crate::source::{ChunkSource, Global};
use crate::sync::{AtomicU64, Word};
use crate::table::Table;
pub use live::Pointers;
pub use stats::Stats;

/// A pool of objects of type `T`, in chunks of slots that come from `S`.
///
/// Every method that takes `&self` may be called by any thread at any time, and waits for no other thread. An
/// allocation and a free are O(1): an allocation looks at one word, and, when that is full, at hints that stand for 64
/// words and for 64 chunks each; before it refuses, and where a pool grows [ahead](Config::ahead), it may look at all
/// words. A free by pointer finds the chunk by its address, in O(1) on average over the chunks and in O(log chunks)
/// where it is one of the oldest. Growing and shrinking call `S`, and take as long as that takes. Other methods say
/// what they look at.
///
/// A thread that dies, or stalls for good, inside a method costs the slots that it was claiming or giving back: at most
/// those of one word, or of one chunk if it was growing or shrinking the pool, or of both if an allocation had just
/// claimed and was growing it [ahead](Config::ahead). A [`Local`](crate::Local) that is never dropped costs what it
/// keeps, and its place.
///
/// ```
/// use nbbs_pool::Pool;
///
/// let pool = Pool::<String>::new();
/// let name = pool.alloc("a name".to_owned())?;
/// // SAFETY: nobody else has the pointer.
/// assert_eq!(unsafe { name.as_ref() }, "a name");
/// pool.free(name)?; // drops the string
/// assert!(pool.free(name).is_err()); // a double free is refused, and changes nothing
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pool<T, S: ChunkSource = Global, W: Word = AtomicU64> {
    table: Table<T, W>,
    source: S,
    config: Config,
    /// What chunks have for each slot.
    extra: Extra,
    lanes: [Lane; LANES],
}

/// A pool for one thread: the same on plain cells. It allocates and frees objects without atomic instructions.
///
/// ```
/// use nbbs_pool::{Config, Global, SinglePool};
///
/// let pool = SinglePool::<u32>::with_words(Global, Config::new());
/// let mut local = pool.local();
/// let seven = local.alloc(7)?;
/// local.free(seven);
/// # Ok::<(), nbbs_pool::Full<u32>>(())
/// ```
///
/// ```compile_fail
/// # use nbbs_pool::{Config, Global, SinglePool};
/// let pool = SinglePool::<u32>::with_words(Global, Config::new());
/// std::thread::scope(|scope| _ = scope.spawn(|| pool.len())); // it is not `Sync`
/// ```
pub type SinglePool<T, S = Global> = Pool<T, S, Cell<u64>>;

// SAFETY: an object is moved in by one thread and out by another, so it has to be Send; nobody gets a reference to an
// object that somebody else has. The table's pointers lead to chunks and segments, which are changed through words and
// pointers that are Sync if W is. (W::Pointer comes with W.)
unsafe impl<T: Send, S: ChunkSource + Sync, W: Word + Sync> Sync for Pool<T, S, W> {}
// SAFETY: the pool owns its objects and its chunks, which no other value reaches while it moves.
unsafe impl<T: Send, S: ChunkSource + Send, W: Word + Send> Send for Pool<T, S, W> {}

/// Slots of one word of the chunk that have been claimed for whoever has this.
pub(crate) struct Claimed<'a, T, W: Word> {
    pub chunk: &'a Chunk<T, W>,
    pub word: usize,
    pub slots: u64,
}

#[cfg(feature = "alloc")]
impl<T> Pool<T> {
    /// Creates a pool that grows by the usual [`Config`], from the global allocator.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// assert_eq!((pool.len(), pool.capacity()), (0, 0));
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::with_config(Config::new())
    }

    /// Creates a pool that grows as `config` says, from the global allocator, and reserves what it says.
    ///
    /// ```
    /// use nbbs_pool::{Config, Pool};
    ///
    /// let pool = Pool::<u32>::with_config(Config::new().reserve(2000));
    /// assert_eq!(pool.capacity(), 2048);
    /// ```
    #[must_use]
    pub fn with_config(config: Config) -> Self {
        let pool = Self::with_source(Global, config);
        // What is missing here is asked for again by the first allocation that needs a chunk, which reports it.
        _ = pool.reserve(config.reserved());
        pool
    }
}

#[cfg(feature = "alloc")]
impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: ChunkSource> Pool<T, S> {
    /// Creates a pool without memory yet, which may be in a `static`. What `config` reserves comes with the first
    /// allocation, or by [`reserve`](Self::reserve).
    ///
    /// ```
    /// use nbbs_pool::{Config, Global, Pool};
    ///
    /// static NAMES: Pool<&str> = Pool::with_source(Global, Config::new().chunk_size(64));
    /// let name = NAMES.alloc_box("a name").expect("there is memory");
    /// assert_eq!(*name, "a name");
    /// ```
    #[must_use]
    pub const fn with_source(source: S, config: Config) -> Self {
        Self::of(Table::new(), source, config, Extra::Nothing)
    }
}

impl<T, S: ChunkSource, W: Word> Pool<T, S, W> {
    /// Creates a pool as [`with_source`](Pool::with_source) does, on words of another kind: a single thread's, or a
    /// checker's.
    ///
    /// See [`SinglePool`] for an example.
    ///
    /// ```
    /// use nbbs_pool::{Config, Global, Pool};
    /// use std::cell::Cell;
    ///
    /// let pool = Pool::<u32, Global, Cell<u64>>::with_words(Global, Config::new());
    /// assert_eq!(*pool.alloc_box(7)?, 7);
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    #[must_use]
    pub fn with_words(source: S, config: Config) -> Self {
        Self::of(Table::with_words(), source, config, Extra::Nothing)
    }

    /// Creates a pool whose chunks have a word for each slot: see [`Handles`](crate::Handles).
    pub(crate) fn with_states(source: S, config: Config) -> Self {
        Self::of(Table::with_words(), source, config, Extra::Words)
    }

    pub(crate) const fn of(table: Table<T, W>, source: S, config: Config, extra: Extra) -> Self {
        let lanes = [const { Lane::new() }; LANES];
        Self { table, source, config, extra, lanes }
    }

    /// Returns how the pool grows.
    ///
    /// ```
    /// use nbbs_pool::{Config, Pool};
    ///
    /// let config = Config::new().limit(100);
    /// assert_eq!(*Pool::<u32>::with_config(config).config(), config);
    /// ```
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the source of its memory.
    ///
    /// ```
    /// use nbbs_pool::{ChunkSource, Pool};
    /// use std::alloc::Layout;
    ///
    /// let pool = Pool::<u32>::new();
    /// let layout = Layout::new::<u64>();
    /// let block = pool.source().alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// unsafe { pool.source().free(block, layout) };
    /// ```
    #[must_use]
    pub fn source(&self) -> &S {
        &self.source
    }

    pub(crate) fn table(&self) -> &Table<T, W> {
        &self.table
    }

    pub(crate) fn lanes(&self) -> &[Lane; LANES] {
        &self.lanes
    }

    /// Claims one slot of a chunk for the caller, near the lane's last one.
    #[inline]
    pub(crate) fn claim_slot(&self, lane: usize) -> Result<(&Chunk<T, W>, usize), Exhausted> {
        let number = lane % LANES;
        let lane = &self.lanes[number];
        let (at, word) = lane.cursor().unwrap_or_else(|| self.home(number));
        let chunk = self.table.get(at);
        if let Some(chunk) = chunk.filter(|chunk| word < chunk.words()) {
            // SAFETY: less than `words()`.
            let slots = unsafe { chunk.claim(word, 1) };
            if slots != 0 {
                // SAFETY: as above.
                if self.looks_ahead() && unsafe { chunk.is_full(word) } {
                    self.look_ahead();
                }
                return Ok((chunk, first_slot(word, slots)));
            }
        }
        let Claimed { chunk, word, slots } = self.claim_for(lane, (at, word), 1)?;
        Ok((chunk, first_slot(word, slots)))
    }

    /// [Claims](Self::claim) slots, and moves the lane's cursor there.
    pub(crate) fn claim_for(
        &self,
        lane: &Lane,
        from: (usize, usize),
        most: u32,
    ) -> Result<Claimed<'_, T, W>, Exhausted> {
        let claimed = self.claim(from, most)?;
        lane.set_cursor(claimed.chunk.number(), claimed.word);
        Ok(claimed)
    }

    /// Returns where a lane begins: each has a cache line of words, as far as they go.
    pub(crate) fn home(&self, lane: usize) -> (usize, usize) {
        let words = self.config.chunk_size.div_ceil(SLOTS);
        (0, lane * 8 % words)
    }

    /// Claims up to `most` free slots of one word, looking from a chunk and word on. Grows the pool if there is none,
    /// and ahead of demand if the configuration says so.
    #[cold]
    pub(crate) fn claim(
        &self,
        from: (usize, usize),
        most: u32,
    ) -> Result<Claimed<'_, T, W>, Exhausted> {
        let claimed = match self.claim_near(from, most) {
            Some(claimed) => claimed,
            None => self.claim_or_grow(most)?,
        };
        if self.looks_ahead() {
            self.look_ahead();
        }
        Ok(claimed)
    }

    #[inline(always)]
    fn looks_ahead(&self) -> bool {
        self.config.ahead > 0 && !self.config.by_helper
    }

    /// Adds a chunk if too few slots are left.
    #[cold]
    fn look_ahead(&self) {
        if self.is_low() {
            // A caller that finds nothing later tries again, and reports it.
            _ = self.grow();
        }
    }

    /// Claims where the hints say that there is room: in the chunk, or else in the nearest one before or after it,
    /// which is the likeliest to be in a cache still.
    fn claim_near(&self, from: (usize, usize), most: u32) -> Option<Claimed<'_, T, W>> {
        let (number, word) = from;
        let here = self.table.get(number).and_then(|chunk| claim_in(chunk, word, most));
        here.or_else(|| self.claim_around(number, most))
    }

    fn claim_around(&self, number: usize, most: u32) -> Option<Claimed<'_, T, W>> {
        let (mut before, mut after) = (number, number + 1);
        loop {
            let (down, up) = (self.table.last_with_room(before), self.table.next_with_room(after));
            let is_nearer = |down: &&Chunk<T, W>| {
                up.is_none_or(|up| number - down.number() < up.number() - number)
            };
            let chunk = down.filter(is_nearer).or(up)?;
            if let Some(claimed) = claim_in(chunk, 0, most) {
                return Some(claimed);
            }
            match chunk.number() {
                below if below < number => before = below,
                above => after = above + 1,
            }
        }
    }

    /// Grows the pool and claims there. If it cannot grow, looks at every word before it reports that: a hint may be
    /// missing where a thread died.
    fn claim_or_grow(&self, most: u32) -> Result<Claimed<'_, T, W>, Exhausted> {
        loop {
            match self.grow_for_demand() {
                Ok(number) => {
                    if let Some(claimed) = self.claim_near((number, 0), most) {
                        return Ok(claimed);
                    }
                }
                Err(reason) => {
                    let found = self.table.newest_first().find_map(|chunk| {
                        let (word, slots) = chunk.claim_anywhere(most)?;
                        Some(Claimed { chunk, word, slots })
                    });
                    return found.ok_or(reason);
                }
            }
        }
    }
}

fn claim_in<T, W: Word>(chunk: &Chunk<T, W>, word: usize, most: u32) -> Option<Claimed<'_, T, W>> {
    let (word, slots) = chunk.claim_near(word, most)?;
    Some(Claimed { chunk, word, slots })
}

impl<T, S: ChunkSource, W: Word> fmt::Debug for Pool<T, S, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
