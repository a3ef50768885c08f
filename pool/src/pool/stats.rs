//! What a pool has, in one look.

use core::fmt;

use super::Pool;
use crate::chunk::Chunk;
use crate::source::ChunkSource;
use crate::sync::Word;

/// What a pool has: see [`Pool::stats`].
///
/// ```
/// use nbbs_pool::{Config, Pool, Stats};
///
/// let pool = Pool::<u64>::with_config(Config::new().chunk_size(100));
/// let mut local = pool.local();
/// let _one = local.alloc(1)?;
/// let stats: Stats = pool.stats();
/// assert_eq!((stats.slots, stats.objects, stats.kept, stats.free), (100, 1, 63, 36));
/// # Ok::<(), nbbs_pool::Full<u64>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Slots for which there is memory; the next three counts add up to it.
    pub slots: usize,
    /// Objects, however they are held, and slots in the hands of calls under way.
    pub objects: usize,
    /// Slots that [`Local`](crate::Local)s keep.
    pub kept: usize,
    /// Slots that are free for all.
    pub free: usize,
    /// Chunks with memory.
    pub chunks: usize,
    /// The most slots for which there was memory at any time. Calls that add chunks beside others that give some back,
    /// and a source that has room for the bookkeeping of a chunk but not for its slots, may make it larger, by a chunk
    /// for each.
    pub peak_slots: usize,
    /// Bytes of the slots' memory, which the source has lent.
    pub bytes: usize,
    /// Bytes of bookkeeping, which the source has lent: of chunks with or without memory, and of the tables of chunks.
    pub bookkeeping: usize,
}

/// One line.
///
/// ```
/// use nbbs_pool::{Config, Pool};
///
/// let pool = Pool::<u64>::with_config(Config::new().chunk_size(100).reserve(100));
/// let _one = pool.alloc_box(1)?;
/// let said = pool.stats().to_string();
/// assert!(said.starts_with("100 slots: 1 in use, 0 kept by locals, 99 free; peak 100; 800 bytes, "), "{said}");
/// # Ok::<(), nbbs_pool::Full<u64>>(())
/// ```
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slots, objects, kept, free, chunks, peak_slots, bytes, bookkeeping } = self;
        write!(f, "{slots} slots: {objects} in use, {kept} kept by locals, {free} free; ")?;
        write!(f, "peak {peak_slots}; {bytes} bytes, {bookkeeping} of bookkeeping; chunks {chunks}")
    }
}

impl<T, S: ChunkSource, W: Word> Pool<T, S, W> {
    /// Returns what the pool has. Callable from anywhere, handlers included, while others use the pool: each chunk is
    /// counted as it is at some moment of the call. [`len`](Self::len) and [`capacity`](Self::capacity) tell the most
    /// important for less.
    ///
    /// Cost: no read-modify-write. A load for each 64 slots, three for each chunk, 17 for each of 32 lanes, and up to
    /// 29 for the tables.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// pool.reserve(3000)?;
    /// pool.shrink();
    /// let _one = pool.alloc_box(1).unwrap();
    /// let stats = pool.stats();
    /// assert_eq!((stats.objects, stats.slots, stats.peak_slots), (1, 1024, 3072));
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { bookkeeping: self.table.segment_bytes(), ..Stats::default() };
        let mut claimed = 0;
        for chunk in self.table.newest_first() {
            let own = Chunk::<T, W>::layout(chunk.slots(), self.extra);
            stats.bookkeeping += own.map_or(0, |layout| layout.size());
            stats.peak_slots += chunk.slots();
            if !chunk.memory().is_null() {
                stats.chunks += 1;
                stats.slots += chunk.slots();
                claimed += chunk.claimed_in_all();
            }
        }
        stats.bytes = stats.slots * Chunk::<T, W>::STRIDE;
        // Slots that were kept when they were counted may be objects by now, and gone.
        stats.kept = self.kept().min(claimed);
        stats.objects = claimed - stats.kept;
        stats.free = stats.slots - claimed;
        stats
    }
}
