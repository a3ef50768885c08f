//! The configuration of a pool's growth.

use core::fmt;

use crate::error::Exhausted;
use crate::table::MOST_CHUNKS;

/// How a pool grows: the size of a chunk, the slots it starts with, its limit, and when a chunk is added ahead of
/// demand.
///
/// ```
/// use nbbs_pool::{Config, Pool};
///
/// let config = Config::new().chunk_size(256).reserve(1000).limit(4096).ahead(32);
/// let pool = Pool::<[u8; 48]>::with_config(config);
/// assert_eq!(pool.capacity(), 1024); // whole chunks
/// assert_eq!(pool.max_len(), 4096);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Config {
    pub(crate) chunk_size: usize,
    pub(crate) reserve: usize,
    /// 0: none.
    pub(crate) limit: usize,
    pub(crate) ahead: usize,
    pub(crate) by_helper: bool,
}

impl Config {
    /// Creates the default: chunks of 1,024 slots, nothing reserved, no limit, no growth before it is needed.
    ///
    /// ```
    /// use nbbs_pool::{Config, Pool};
    ///
    /// let pool = Pool::<u32>::with_config(Config::new());
    /// assert_eq!(pool.capacity(), 0);
    /// pool.reserve(1)?;
    /// assert_eq!(pool.capacity(), 1024); // a chunk
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { chunk_size: 1024, reserve: 0, limit: 0, ahead: 0, by_helper: false }
    }

    /// Sets the slots in a chunk, from 1 to 2^24: 0 counts as 1, and more than 2^24 as 2^24. Bitmaps consist of words
    /// of 64 slots.
    ///
    /// ```
    /// use nbbs_pool::{Config, Pool};
    ///
    /// let pool = Pool::<u32>::with_config(Config::new().chunk_size(100).reserve(150));
    /// assert_eq!(pool.capacity(), 200);
    /// assert_eq!(Config::new().chunk_size(0), Config::new().chunk_size(1));
    /// assert_eq!(Config::new().chunk_size(usize::MAX), Config::new().chunk_size(1 << 24));
    /// ```
    #[must_use]
    pub const fn chunk_size(mut self, slots: usize) -> Self {
        self.chunk_size = match slots {
            0 => 1,
            1..=MAX_CHUNK_SIZE => slots,
            _ => MAX_CHUNK_SIZE,
        };
        self
    }

    /// Sets how many slots get memory when [`Pool::with_config`] makes the pool, and how many [`Pool::shrink`] leaves.
    /// Pools that are made otherwise get that memory with the first allocation, or by [`Pool::reserve`].
    ///
    /// More than the [limit](Self::limit) counts as the limit. If the source has too little memory, the pool has as
    /// many slots as the source could serve. More slots than [any such pool can have](Self::check_slots) are refused
    /// whole: the pool takes no memory ahead, and grows when it has to. [`Pool::reserve`] says why slots are missing.
    ///
    /// ```
    /// use nbbs_pool::{Config, Pool};
    ///
    /// let pool = Pool::<u32>::with_config(Config::new().reserve(1000).limit(150));
    /// assert_eq!(pool.capacity(), 150);
    /// let pool = Pool::<u32>::with_config(Config::new().reserve(usize::MAX));
    /// assert_eq!(pool.capacity(), 0);
    /// assert!(pool.reserve(pool.config().reserved()).is_err());
    /// ```
    ///
    /// [`Pool::with_config`]: crate::Pool::with_config
    /// [`Pool::shrink`]: crate::Pool::shrink
    /// [`Pool::reserve`]: crate::Pool::reserve
    #[must_use]
    pub const fn reserve(mut self, slots: usize) -> Self {
        self.reserve = slots;
        self
    }

    /// Sets the most slots that the pool may ever have. 0 is no limit, as in [`new`](Self::new): the pool grows as long
    /// as its source has memory.
    ///
    /// ```
    /// use nbbs_pool::{Config, Exhausted, Pool};
    ///
    /// let pool = Pool::<u32>::with_config(Config::new().limit(1));
    /// assert!(pool.alloc(1).is_ok());
    /// assert_eq!(pool.alloc(2).unwrap_err().reason, Exhausted::Limit { limit: 1 });
    /// assert_eq!(Config::new().limit(0), Config::new());
    /// ```
    #[must_use]
    pub const fn limit(mut self, slots: usize) -> Self {
        self.limit = slots;
        self
    }

    /// Sets the number of free slots below which a chunk is added; 0: when none is free.
    ///
    /// The caller whose allocation fills a word of 64 slots, or comes to another word, checks this and adds the chunk;
    /// nobody else waits for it. [`by_helper`](Self::by_helper) leaves that to another thread.
    ///
    /// ```
    /// use nbbs_pool::{Config, Pool};
    ///
    /// let pool = Pool::<u32>::with_config(Config::new().chunk_size(64).ahead(32));
    /// for number in 0..64 {
    ///     pool.alloc(number).unwrap();
    /// }
    /// assert_eq!(pool.capacity(), 128); // though a chunk was enough so far
    /// ```
    #[must_use]
    pub const fn ahead(mut self, slots: usize) -> Self {
        self.ahead = slots;
        self
    }

    /// Leaves growth ahead of demand to callers of [`Pool::tend`], such as a helper thread.
    ///
    /// [`Pool::tend`]: crate::Pool::tend
    ///
    /// ```
    /// use nbbs_pool::{Config, Pool};
    ///
    /// let pool = Pool::<u32>::with_config(Config::new().chunk_size(64).ahead(32).by_helper());
    /// for number in 0..64 {
    ///     pool.alloc(number).unwrap();
    /// }
    /// assert_eq!(pool.capacity(), 64);
    /// pool.tend()?; // by another thread
    /// assert_eq!(pool.capacity(), 128);
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[must_use]
    pub const fn by_helper(mut self) -> Self {
        self.by_helper = true;
        self
    }

    /// Checks whether a pool could ever have `slots` slots of `stride` bytes each, whatever memory its source has: its
    /// limit allows so many, they take `isize::MAX` bytes at most, and they lie in 2^31 - 8 chunks at most.
    ///
    /// # Errors
    /// [`Exhausted::Slots`] with the most slots that the pool could have.
    ///
    /// ```
    /// use nbbs_pool::{Config, Exhausted};
    ///
    /// let refused = Config::new().limit(150).check_slots(1000, 8).unwrap_err();
    /// assert_eq!(refused, Exhausted::Slots { slots: 1000, limit: 150 });
    /// assert!(Config::new().check_slots(1000, 8).is_ok());
    /// assert!(Config::new().check_slots(usize::MAX / 8, 8).is_err());
    /// ```
    pub const fn check_slots(&self, slots: usize, stride: usize) -> Result<(), Exhausted> {
        let by_bytes = isize::MAX as usize / if stride == 0 { 1 } else { stride };
        let by_chunks = self.chunk_size.saturating_mul(MOST_CHUNKS);
        let limit = least(self.max_len(), least(by_bytes, by_chunks));
        if slots > limit { Err(Exhausted::Slots { slots, limit }) } else { Ok(()) }
    }

    /// Returns how many slots are [reserved](Self::reserve): no more than the [limit](Self::limit).
    ///
    /// ```
    /// # use nbbs_pool::Config;
    /// assert_eq!(Config::new().reserve(1000).limit(150).reserved(), 150);
    /// ```
    #[must_use]
    pub const fn reserved(&self) -> usize {
        least(self.reserve, self.max_len())
    }

    /// Returns the most slots, as a number.
    pub(crate) const fn max_len(&self) -> usize {
        if self.limit == 0 { usize::MAX } else { self.limit }
    }

    /// Returns the slots of chunk `number`; 0 beyond the limit.
    pub(crate) const fn slots_of(&self, number: usize) -> usize {
        let left = self.max_len().saturating_sub(number.saturating_mul(self.chunk_size));
        least(left, self.chunk_size)
    }
}

const fn least(one: usize, other: usize) -> usize {
    if one < other { one } else { other }
}

/// The most slots of a chunk.
const MAX_CHUNK_SIZE: usize = 1 << 24;

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chunk_size, reserve, limit, ahead, by_helper } = self;
        let mut said = f.debug_struct("Config");
        said.field("chunk_size", chunk_size).field("reserve", reserve);
        match limit {
            0 => said.field("limit", &format_args!("none")),
            limit => said.field("limit", limit),
        };
        said.field("ahead", ahead).field("by_helper", by_helper).finish()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::Config;
    use crate::error::Exhausted;

    #[test]
    fn no_limit_is_printed_as_none() {
        let said = format!("{:?}", Config::new());
        let rest = "ahead: 0, by_helper: false }";
        assert_eq!(said, format!("Config {{ chunk_size: 1024, reserve: 0, limit: none, {rest}"));
        assert!(format!("{:?}", Config::new().limit(7)).contains("limit: 7,"));
    }

    #[test]
    fn a_chunk_has_so_many_slots() {
        let slots = |asked, number| Config::new().chunk_size(asked).slots_of(number);
        let most = 1 << 24;
        assert_eq!((slots(0, 3), slots(1, 3), slots(70, 3)), (1, 1, 70));
        assert_eq!(
            (slots(most - 1, 0), slots(most, 0), slots(most + 1, 0)),
            (most - 1, most, most)
        );
        assert_eq!(slots(usize::MAX, usize::MAX), 0);
        let config = Config::new().chunk_size(10).limit(25);
        assert_eq!([0, 1, 2, 3, 4].map(|number| config.slots_of(number)), [10, 10, 5, 0, 0]);
        assert_eq!(Config::default(), Config::new().reserve(0).limit(0).ahead(0));
    }

    /// The least of three decides: the limit, the bytes, and the chunks that the table has room for.
    #[test]
    fn a_pool_has_so_many_slots_at_most() {
        let check = |config: Config, stride, limit: usize| {
            assert_eq!(config.check_slots(limit, stride), Ok(()));
            let refused = Err(Exhausted::Slots { slots: limit + 1, limit });
            assert_eq!(config.check_slots(limit + 1, stride), refused);
        };
        let (config, bytes) = (Config::new(), isize::MAX as usize);
        check(config.limit(150), 8, 150);
        check(config.limit(usize::MAX).chunk_size(1 << 24), 1024, bytes / 1024);
        let large = bytes / 8 + 1;
        check(config.chunk_size(1 << 24), large, 7);
        assert_eq!(config.chunk_size(1 << 24).check_slots(1 << 30, 0), Ok(()));
        check(config.chunk_size(1), 1, (1 << 31) - 8);
    }
}
