//! From an address to a chunk: a table of buckets of 8 chunks, indexed by stretches of addresses.
//!
//! A chunk is listed under the stretch in which it begins. A stretch is at least as long as a chunk, so an address
//! belongs to a chunk listed under its own stretch or under the one before. A caller that has a chunk to itself, with
//! all slots claimed, lists it and strikes it out. A chunk that finds its bucket full is not listed, and the segment is
//! marked: it is searched from end to end.

use crate::sync::{Ordering, Word};

/// Entries of a bucket: a cache line.
const BUCKET: usize = 8;

/// An entry is 0, or a chunk's place in its segment, plus 1.
pub(crate) struct Index<'s, W> {
    pub entries: &'s [W],
    /// Not 0 if a chunk is missing.
    pub crowded: &'s W,
}

/// Returns the stretch that contains an address.
fn stretch(address: usize, chunk_bytes: usize) -> usize {
    let bits = usize::BITS - chunk_bytes.saturating_sub(1).leading_zeros();
    address.checked_shr(bits).unwrap_or(0)
}

impl<'s, W: Word> Index<'s, W> {
    fn bucket(&self, stretch: usize) -> &'s [W] {
        let buckets = self.entries.len() / BUCKET;
        let Some(mask) = buckets.checked_sub(1) else { return &[] };
        let hash = (stretch as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let first = (hash as usize & mask) * BUCKET;
        &self.entries[first..first + BUCKET]
    }

    /// Returns the chunks that may hold the address, by place.
    pub(crate) fn near(
        &self,
        address: usize,
        chunk_bytes: usize,
    ) -> impl Iterator<Item = usize> + use<'s, W> {
        let stretch = stretch(address, chunk_bytes);
        let buckets = [self.bucket(stretch), self.bucket(stretch.wrapping_sub(1))];
        // Acquire pairs with the Release in `enlist`: the chunk's memory is there.
        let entries = buckets.into_iter().flatten().map(|entry| entry.load(Ordering::Acquire));
        entries.filter_map(|entry| (entry as usize).checked_sub(1))
    }

    /// Lists the chunk at `place`, whose memory begins at `address`.
    pub(crate) fn enlist(&self, place: usize, address: usize, chunk_bytes: usize) {
        let listed = self.bucket(stretch(address, chunk_bytes)).iter().any(|entry| {
            // Release pairs with the Acquire in `near`.
            let new = place as u64 + 1;
            entry.compare_exchange(0, new, Ordering::Release, Ordering::Relaxed).is_ok()
        });
        if !listed {
            // Relaxed: anybody who looks for an object of the chunk got it after this.
            self.crowded.store(1, Ordering::Relaxed);
        }
    }

    /// Removes the entry that [`enlist`](Self::enlist) made.
    pub(crate) fn strike(&self, place: usize, address: usize, chunk_bytes: usize) {
        for entry in self.bucket(stretch(address, chunk_bytes)) {
            let old = place as u64 + 1;
            // Relaxed: a stale entry only leads to a chunk that does not hold the address.
            _ = entry.compare_exchange(old, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Index;
    use crate::sync::{AtomicU64, Ordering, Word};

    #[test]
    fn finds_what_is_listed_and_says_when_it_does_not() {
        let entries: [AtomicU64; 16] = core::array::from_fn(|_| AtomicU64::new(0));
        let crowded = AtomicU64::new(0);
        let index = Index { entries: &entries, crowded: &crowded };
        let bytes = 3000;
        let addresses = |place: usize| 0x10_0000 + place * 5000;
        for place in 0..17 {
            index.enlist(place, addresses(place), bytes);
        }
        assert_eq!(Word::load(&crowded, Ordering::Relaxed), 1, "17 chunks in 16 entries");
        let found = |place: usize, offset| {
            index.near(addresses(place) + offset, bytes).any(|other| other == place)
        };
        let listed: std::vec::Vec<usize> = (0..17).filter(|&place| found(place, 0)).collect();
        assert!(listed.len() >= 8, "{listed:?}");
        for &place in &listed {
            assert!(found(place, 1) && found(place, 2999));
            index.strike(place, addresses(place), bytes);
            assert!(!found(place, 0));
        }
        assert!(entries.iter().all(|entry| Word::load(entry, Ordering::Relaxed) == 0));
    }

    /// A chunk that begins in one stretch is found by an address in the next, and by few further, in whose bucket it
    /// happens to be.
    #[test]
    fn a_chunk_may_begin_anywhere_in_its_stretch() {
        let entries: [AtomicU64; 64] = core::array::from_fn(|_| AtomicU64::new(0));
        let crowded = AtomicU64::new(0);
        let index = Index { entries: &entries, crowded: &crowded };
        for bytes in [1_usize, 32, 1 << 12, (1 << 12) + 1] {
            let stretch = bytes.next_power_of_two();
            let places = if cfg!(miri) { 3 } else { 16 };
            for begin in (0..stretch).step_by(stretch.div_ceil(places)).map(|at| 100 * stretch + at)
            {
                index.enlist(5, begin, bytes);
                let found = |address| index.near(address, bytes).any(|place| place == 5);
                assert!(found(begin) && found(begin + bytes - 1), "{bytes} from {begin}");
                let far = (2..40).filter(|n| found(begin + n * stretch)).count();
                assert!(far < 30, "all chunks are in one bucket");
                index.strike(5, begin, bytes);
            }
        }
        assert_eq!(Word::load(&crowded, Ordering::Relaxed), 0);
    }
}
