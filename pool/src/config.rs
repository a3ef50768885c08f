//! The configuration of a pool's growth.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub(crate) chunk_size: usize,
    pub(crate) reserve: usize,
    pub(crate) limit: usize,
    pub(crate) ahead: usize,
    pub(crate) by_helper: bool,
}

impl Config {
    /// Creates the default: chunks of 1,024 slots, nothing reserved, no limit, no growth before it is needed.
    #[must_use]
    pub const fn new() -> Self {
        Self { chunk_size: 1024, reserve: 0, limit: 0, ahead: 0, by_helper: false }
    }

    /// Sets the slots in a chunk: at least 1, at most 2^24; other values become the nearest of these. Bitmaps consist
    /// of words of 64 slots.
    #[must_use]
    pub const fn chunk_size(mut self, slots: usize) -> Self {
        self.chunk_size = match slots {
            0 => 1,
            1..=MAX_CHUNK_SIZE => slots,
            _ => MAX_CHUNK_SIZE,
        };
        self
    }

    /// Sets how many slots get memory when the pool is made; [`Pool::shrink`] leaves that many.
    ///
    /// [`Pool::shrink`]: crate::Pool::shrink
    #[must_use]
    pub const fn reserve(mut self, slots: usize) -> Self {
        self.reserve = slots;
        self
    }

    /// Sets the most slots that the pool may ever have; 0: as many as there is memory for.
    #[must_use]
    pub const fn limit(mut self, slots: usize) -> Self {
        self.limit = slots;
        self
    }

    /// Sets the number of free slots below which a chunk is added; 0: when none is free.
    ///
    /// The caller whose allocation fills a word of 64 slots, or comes to another word, checks this and adds the chunk;
    /// nobody else waits for it. [`by_helper`](Self::by_helper) leaves that to another thread.
    #[must_use]
    pub const fn ahead(mut self, slots: usize) -> Self {
        self.ahead = slots;
        self
    }

    /// Leaves growth ahead of demand to callers of [`Pool::tend`], such as a helper thread.
    ///
    /// [`Pool::tend`]: crate::Pool::tend
    #[must_use]
    pub const fn by_helper(mut self) -> Self {
        self.by_helper = true;
        self
    }

    /// Returns the most slots, as a number.
    pub(crate) const fn max_len(&self) -> usize {
        if self.limit == 0 { usize::MAX } else { self.limit }
    }

    /// Returns the slots of chunk `number`; 0 beyond the limit.
    pub(crate) const fn slots_of(&self, number: usize) -> usize {
        let left = self.max_len().saturating_sub(number.saturating_mul(self.chunk_size));
        if left < self.chunk_size { left } else { self.chunk_size }
    }
}

/// The most slots of a chunk.
const MAX_CHUNK_SIZE: usize = 1 << 24;

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::Config;

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
}
