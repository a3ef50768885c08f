//! Batches: one compare-and-swap claims or frees as many blocks as one word has.

use super::beside::Beside;
use super::{Blocks, level_and_log2};
use crate::error::AllocError;
use crate::lane::Path;
use crate::sync::Word;
use crate::word::{self, span};

impl<W: Word> Blocks<'_, W> {
    /// Allocates blocks of `order` into `blocks`, and returns how many.
    pub fn alloc_batch(self, order: u32, blocks: &mut [u64]) -> Result<usize, AllocError> {
        self.check_order(order)?;
        let level = W::SHAPE.level_of(order);
        let (mut from, mut done) = (self.lane.begin(order), 0);
        while done < blocks.len() {
            let Some((idx, got)) = self.claim_some(from, order, &mut blocks[done..]) else {
                if done > 0 {
                    break;
                }
                return Err(AllocError::Exhausted { units: 1 << order });
            };
            done += got;
            // The next word of the same parent is as good as any.
            let same_parent = W::SHAPE.parent(idx).0 == W::SHAPE.parent(idx + 1).0;
            let step = same_parent && idx + 1 < self.geometry().words_of(level);
            from = Some(idx + u64::from(step));
        }
        Ok(done)
    }

    /// Allocates as many blocks of `order` as one word has and `blocks` has room for, and returns how many.
    pub fn alloc_in_one_word(self, order: u32, blocks: &mut [u64]) -> Result<usize, AllocError> {
        self.check_order(order)?;
        let claimed = self.claim_some(self.lane.begin(order), order, blocks);
        claimed.map(|(_, got)| got).ok_or(AllocError::Exhausted { units: 1 << order })
    }

    /// Claims as many blocks of `order` as one word has and `blocks` has room for: word `from`, one beside it unless
    /// memory is tight, or the first that a search finds. Returns that word and how many.
    fn claim_some(self, from: Option<u64>, order: u32, blocks: &mut [u64]) -> Option<(u64, usize)> {
        let level = W::SHAPE.level_of(order);
        let mut claim = |idx| {
            let got = self.claim_many(level, idx, order, blocks);
            (got > 0).then_some((idx, got))
        };
        let Some(from) = from else {
            return self.search_by(self.lane.home(level), order, claim);
        };
        let claimed = match claim(from) {
            None if self.takes_first_fit(level) => {
                return self.search_by(self.lane.home(level), order, claim);
            }
            None => self.word_beside(from, order).and_then(&mut claim),
            claimed => claimed,
        };
        if let Some((idx, _)) = claimed {
            self.lane.notes().set_cursor(order, idx);
        }
        claimed.or_else(|| self.search_by(from, order, claim))
    }

    /// Returns a word beside word `from` in which blocks of `order` can perhaps be claimed.
    fn word_beside(self, from: u64, order: u32) -> Option<u64> {
        let beside = if order < W::SHAPE.word_order(0) {
            self.look_beside::<true>(from, order)
        } else {
            self.look_beside::<false>(from, order)
        };
        match beside {
            Beside::Room(room) => Some(room.idx),
            Beside::Free(idx) => Some(idx),
            Beside::Unknown => None,
        }
    }

    /// Claims blocks of `order` in one word, climbs, and returns how many.
    fn claim_many(self, level: usize, idx: u64, order: u32, blocks: &mut [u64]) -> usize {
        let log2 = order - W::SHAPE.slot_order(level);
        let inside = word::first_slots(self.geometry().whole_slots(level, idx));
        let claimed = self.tree().fill(level, idx, |codes| {
            let places = word::places(word::free_slots(codes) & inside, log2);
            let new = word::from_slot(places, 0)
                .take(blocks.len())
                .fold(0, |new, slot| new | word::block(log2) << (2 * slot));
            (new != 0).then_some((codes | new, new))
        });
        let Some((_, new)) = self.lane.noted(level, idx, claimed) else { return 0 };
        if !self.lane.knows_path(level, idx) && !self.lane.climb(Path::Claims, level, idx) {
            let heads = word::from_slot(span::heads(new), 0);
            heads.for_each(|slot| self.undo(W::SHAPE.first_unit(level, idx, slot), order));
            return 0;
        }
        let mut done = 0;
        for slot in word::from_slot(span::heads(new), 0) {
            blocks[done] = W::SHAPE.first_unit(level, idx, slot);
            done += 1;
        }
        done
    }

    /// Frees as many blocks of `order` at the beginning of the slice as lie in one word, and returns how many: 0 if the
    /// first cannot be freed in this way.
    pub fn free_many(self, order: u32, blocks: &[u64]) -> usize {
        if order > self.geometry().max_order() || blocks[0] >= self.geometry().units() {
            return 0;
        }
        let (level, log2) = level_and_log2::<false, W>(order);
        let (idx, _) = W::SHAPE.locate(level, blocks[0]);
        let (mut codes, mut count) = (0, 0);
        for &block in blocks {
            let (at, slot) = W::SHAPE.locate(level, block);
            let new = word::block(log2) << (2 * slot);
            if at != idx || codes & new != 0 || block & ((1 << order) - 1) != 0 {
                break;
            }
            (codes, count) = (codes | new, count + 1);
        }
        let cleared = if count > 0 { self.clear_many(level, idx, log2, codes) } else { None };
        cleared.map_or(0, |left| {
            self.tell_freed(level, idx, order, left);
            count
        })
    }

    /// Clears blocks of `2^log2` slots, given by their `codes`, from a word, and returns what the word holds now. Does
    /// not update the words above. Returns `None` if the blocks are not all there.
    fn clear_many(self, level: usize, idx: u64, log2: u32, codes: u64) -> Option<u64> {
        let heads = || word::from_slot(span::heads(codes), 0);
        let bits = heads().fold(0, |bits, slot| bits | word::block_bits(log2) << (2 * slot));
        let cleared = self.tree().rewrite(level, idx, |found| {
            let all_there = heads().all(|slot| word::is_block(found, slot, log2));
            all_there.then_some((found & !bits, ()))
        });
        self.lane.noted(level, idx, cleared).map(|(left, ())| left)
    }
}
