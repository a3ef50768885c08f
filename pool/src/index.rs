//! From an address to a chunk: a table of buckets of 7 chunks, indexed by stretches of addresses.
//!
//! A chunk is listed under the stretch in which it begins. A stretch is at least as long as a chunk, so an address
//! belongs to a chunk listed under its own stretch or under the one before. A chunk that finds its bucket full is
//! counted there and goes on to the next bucket, from the last to the first. A look-up goes on as long as the count is
//! not 0.
//!
//! A caller that has a chunk to itself, with all slots claimed, lists it and strikes it out. Between the two its entry
//! stays where it is, and no count on the way there is 0: the holder of an object of the chunk finds it, whatever
//! others list and strike out. A caller that dies half way leaves counts too high, which costs look-ups there a bucket
//! more.
//!
//! Each chunk of a segment has one entry at most, and there is a bucket for each 4 of them, so 3 of 7 entries are free.
//! In a full segment a look-up reads 1.08 buckets for a stretch on average, and among 60,000 chunks a dozen at most, as
//! far as hashes are random.

use crate::sync::{Ordering, Word, update};

/// Chunks of a segment for each of its buckets.
const CHUNKS: usize = 4;
/// Entries of a bucket. With the count it takes as much as a cache line.
const ENTRIES: usize = 7;

/// Returns the number of buckets in the index of so many chunks.
pub(crate) const fn buckets(chunks: usize) -> usize {
    chunks / CHUNKS
}

pub(crate) struct Bucket<W> {
    /// 0, or the tag of the stretch in which a chunk begins, and above it the chunk's place in its segment.
    entries: [W; ENTRIES],
    /// The chunks that found the bucket full, and went on.
    passed: W,
}

impl<W: Word> Bucket<W> {
    pub(crate) fn new() -> Self {
        Self { entries: core::array::from_fn(|_| W::new(0)), passed: W::new(0) }
    }
}

pub(crate) struct Index<'s, W> {
    pub buckets: &'s [Bucket<W>],
}

/// A stretch of addresses, in which few chunks begin.
#[derive(Clone, Copy)]
pub(crate) struct Stretch {
    /// The lower bits of its number, and a bit that is always set.
    tag: u32,
    /// Stands for the number, spread over 32 bits.
    hash: u32,
}

impl Stretch {
    #[inline]
    fn numbered(number: usize) -> Self {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let hash = (number as u64).wrapping_mul(ODD);
        // A second time, so that no distance between chunks leads all of them to a few buckets.
        let hash = (hash ^ hash >> u32::BITS).wrapping_mul(ODD) >> u32::BITS;
        Self { tag: number as u32 | 1 << 31, hash: hash as u32 }
    }

    #[inline]
    fn number(address: usize, chunk_bytes: usize) -> usize {
        let bits = usize::BITS - chunk_bytes.saturating_sub(1).leading_zeros();
        address.checked_shr(bits).unwrap_or(0)
    }

    /// Returns the stretch that contains an address.
    pub(crate) fn of(address: usize, chunk_bytes: usize) -> Self {
        Self::numbered(Self::number(address, chunk_bytes))
    }

    /// Returns the stretches in which a chunk begins that holds the address.
    #[inline]
    pub(crate) fn around(address: usize, chunk_bytes: usize) -> [Self; 2] {
        let own = Self::number(address, chunk_bytes);
        [own, own.wrapping_sub(1)].map(Self::numbered)
    }

    /// Returns the entry of a chunk that begins here.
    fn entry(self, place: usize) -> u64 {
        (place as u64) << u32::BITS | u64::from(self.tag)
    }
}

impl<'s, W: Word> Index<'s, W> {
    /// Returns all buckets in the order in which a chunk that begins in the stretch asks them for room.
    #[inline]
    fn buckets_from(
        &self,
        stretch: Stretch,
    ) -> impl Iterator<Item = &'s Bucket<W>> + Clone + use<'s, W> {
        let (buckets, mask) = (self.buckets, self.buckets.len().wrapping_sub(1));
        let first = stretch.hash as usize & mask;
        (first..first + buckets.len()).filter_map(move |at| buckets.get(at & mask))
    }

    /// Returns what `check` returns for the first chunk, given by its place, that begins in the stretch and passes.
    #[inline]
    pub(crate) fn find<C>(
        &self,
        stretch: Stretch,
        check: impl Fn(usize) -> Option<C>,
    ) -> Option<C> {
        for bucket in self.buckets_from(stretch) {
            for entry in &bucket.entries {
                // Acquire pairs with the Release in `enlist`: the chunk's memory is there.
                let entry = entry.load(Ordering::Acquire);
                if entry as u32 == stretch.tag {
                    let found = check((entry >> u32::BITS) as usize);
                    if found.is_some() {
                        return found;
                    }
                }
            }
            // Relaxed: whoever has an object of the chunk got it after the chunk was counted.
            if bucket.passed.load(Ordering::Relaxed) == 0 {
                break;
            }
        }
        None
    }

    /// Lists the chunk at `place`, which begins in the stretch.
    pub(crate) fn enlist(&self, place: usize, stretch: Stretch) {
        let new = stretch.entry(place);
        // There is room, and a caller that finds none has seen others list chunks.
        for bucket in self.buckets_from(stretch).cycle() {
            let listed = bucket.entries.iter().any(|entry| {
                // Release pairs with the Acquire in `find`.
                entry.compare_exchange(0, new, Ordering::Release, Ordering::Relaxed).is_ok()
            });
            if listed {
                return;
            }
            // Relaxed: see `find`.
            update(&bucket.passed, Ordering::Relaxed, |passed| Some(passed + 1));
        }
    }

    /// Removes the entry that [`enlist`](Self::enlist) made.
    pub(crate) fn strike(&self, place: usize, stretch: Stretch) {
        let old = stretch.entry(place);
        for bucket in self.buckets_from(stretch) {
            let struck = bucket.entries.iter().any(|entry| {
                // Relaxed: a stale entry only leads to a chunk that does not hold the address.
                entry.compare_exchange(old, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            });
            if struck {
                return;
            }
            // Relaxed: a count that is too high for a while costs look-ups a bucket more.
            update(&bucket.passed, Ordering::Relaxed, |passed| Some(passed - 1));
        }
    }
}

#[cfg(test)]
mod tests;
