//! Batches: one compare-and-swap claims or frees as many blocks as one word has.

use super::Blocks;
use crate::error::AllocError;
use crate::sync::Word;
use crate::word::{self, span};

impl<W: Word> Blocks<'_, W> {
    /// Allocates blocks of `order` into `blocks`, and returns how many.
    pub fn alloc_batch(self, order: u32, blocks: &mut [u64]) -> Result<usize, AllocError> {
        if order > self.geometry().max_order() {
            return Err(AllocError::OrderTooLarge { order, max: self.geometry().max_order() });
        }
        let level = W::SHAPE.level_of(order);
        let mut done = 0;
        let mut idx = self.lane.cursor(order);
        while done < blocks.len() {
            let claimed = self.claim_many(level, idx, order, &mut blocks[done..]);
            done += claimed;
            if claimed > 0 {
                self.lane.notes().set_cursor(order, idx);
                // The next word of the same parent is as good as any.
                let same_parent = W::SHAPE.parent(idx).0 == W::SHAPE.parent(idx + 1).0;
                idx += u64::from(same_parent && idx + 1 < self.geometry().words_of(level));
                continue;
            }
            let found = self.search_by(idx, order, |idx| {
                let claimed = self.claim_many(level, idx, order, &mut blocks[done..]);
                (claimed > 0).then_some((idx, claimed))
            });
            match found {
                Some((at, claimed)) => (idx, done) = (at, done + claimed),
                None if done == 0 => return Err(AllocError::Exhausted { units: 1 << order }),
                None => break,
            }
        }
        Ok(done)
    }

    /// Allocates as many blocks of `order` as one word has and `blocks` has room for, and returns how many. It is the word
    /// at the cursor, or else the first that a search finds.
    pub fn alloc_near(self, order: u32, blocks: &mut [u64]) -> Result<usize, AllocError> {
        if order > self.geometry().max_order() {
            return Err(AllocError::OrderTooLarge { order, max: self.geometry().max_order() });
        }
        let level = W::SHAPE.level_of(order);
        let from = self.lane.cursor(order);
        let mut claim =
            |idx| Some(self.claim_many(level, idx, order, blocks)).filter(|&got| got > 0);
        let got = claim(from).or_else(|| self.search_by(from, order, claim));
        got.ok_or(AllocError::Exhausted { units: 1 << order })
    }

    /// Claims blocks of `order` in one word, climbs, and returns how many.
    fn claim_many(self, level: usize, idx: u64, order: u32, blocks: &mut [u64]) -> usize {
        let slots = order - W::SHAPE.slot_order(level);
        let inside = word::first_slots(self.geometry().whole_slots(level, idx));
        let claimed = self.tree().fill(level, idx, |codes| {
            let runs = word::runs(word::free_slots(codes) & inside, slots);
            let new = word::from_slot(runs, 0)
                .take(blocks.len())
                .fold(0, |new, slot| new | word::block(slots) << (2 * slot));
            (new != 0).then_some((codes | new, new))
        });
        let Some((_, new)) = self.lane.noted(level, idx, claimed) else { return 0 };
        if !self.lane.climb(level, idx) {
            // Below somebody's block: nothing may stay split there.
            if let Some(left) = self.clear_many(level, idx, slots, new) {
                self.tree().merge_or_publish(level, idx, left);
            }
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
        let level = W::SHAPE.level_of(order);
        let slots = order - W::SHAPE.slot_order(level);
        let (idx, _) = W::SHAPE.locate(level, blocks[0]);
        let (mut codes, mut count) = (0, 0);
        for &block in blocks {
            let (at, slot) = W::SHAPE.locate(level, block);
            let new = word::block(slots) << (2 * slot);
            if at != idx || codes & new != 0 || block & ((1 << order) - 1) != 0 {
                break;
            }
            (codes, count) = (codes | new, count + 1);
        }
        let cleared = if count > 0 { self.clear_many(level, idx, slots, codes) } else { None };
        cleared.map_or(0, |left| {
            self.tell_freed(level, idx, order, left);
            count
        })
    }

    /// Clears blocks of `2^slots` slots, given by their `codes`, from a word, and returns what the word holds now. Does
    /// not update the words above. Returns `None` if the blocks are not all there.
    fn clear_many(self, level: usize, idx: u64, slots: u32, codes: u64) -> Option<u64> {
        let heads = || word::from_slot(span::heads(codes), 0);
        let area = heads().fold(0, |area, slot| area | word::area(slots) << (2 * slot));
        let cleared = self.tree().rewrite(level, idx, |found| {
            let all_there = heads().all(|slot| word::is_block(found, slot, slots));
            all_there.then_some((found & !area, ()))
        });
        self.lane.noted(level, idx, cleared).map(|(left, ())| left)
    }
}
