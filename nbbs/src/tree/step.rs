//! The transitions: each is one compare-and-swap of one word, and nothing else changes the words of a level while the
//! arena is in use.
//!
//! ```text
//! claim    free slots become a block                                  fill      free slots become held
//! clear    a block's slots become free                                rewrite   held slots become free, or held otherwise
//! open     a free slot becomes split, the bound allows for it         hide      a word below a held slot is written
//! raise    the bound rises                                            uncover   a held slot becomes split
//! mark     an inspection begins                                       commit    it ends: split slots become free and
//!                                                                               the bound falls, or a free slot over
//!                                                                               claims becomes split
//! ```
//!
//! Each transition but `mark` leaves the word unmarked, so that a commit under an earlier mark fails. Only
//! [`Marked::commit`] turns a split slot free or lowers a bound, and only [`At::mark`] makes a [`Marked`]: the other
//! transitions never write a word in which a slot that was split no longer is.

use super::Tree;
use crate::sync::{AFTER_FENCE, BETWEEN_FENCES, Ordering, Word};
use crate::word;

/// A word of the protocol.
pub(crate) struct At<'a, W>(&'a W);

copy!(At<'_, W>);

/// A word that is being inspected, as it was when it was marked.
pub(super) struct Marked<'a, W> {
    word: &'a W,
    pub value: u64,
}

impl<'a, W: Word> At<'a, W> {
    #[inline(always)]
    pub(super) const fn new(word: &'a W) -> Self {
        Self(word)
    }

    /// Returns what the word holds.
    #[inline(always)]
    pub fn load(self) -> u64 {
        // Pairs with `swap`, which wrote what is read. AFTER_FENCE: a caller that has changed a word before has a fence
        // between.
        self.0.load(AFTER_FENCE)
    }

    /// Loads the word where a fence comes before anything that follows from it.
    #[inline(always)]
    pub fn load_before_fence(self) -> u64 {
        // Pairs with `swap`; the fence that follows acquires, not the load.
        self.0.load(BETWEEN_FENCES)
    }

    /// Performs one compare-and-swap, the only kind of write in the protocol.
    ///
    /// SeqCst: acquires what the last holder of the units released here and releases what this one did. It is the write
    /// of every pair "claim, clear or mark, then read the word above or below"; DESIGN.md lists both ends.
    #[inline(always)]
    fn swap(self, old: u64, new: u64) -> Result<u64, u64> {
        self.0.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst)?;
        Ok(new)
    }

    /// Claims a block of `2^log2` slots at `slot`, which are free in `old`. Returns the new word, or what was found
    /// instead of `old`.
    #[inline(always)]
    pub fn claim(self, level: usize, old: u64, slot: u32, log2: u32) -> Result<u64, u64> {
        if !word::is_free(word::codes(level, old), slot, log2) {
            return Err(old);
        }
        self.swap(old, word::claim(level, old, slot, log2))
    }

    /// Clears the block of `2^log2` slots at `slot`. Returns the new word and the codes left in it, or what was found
    /// instead of `old`; `None` if `old` has no such block.
    #[inline(always)]
    pub fn clear(
        self,
        level: usize,
        old: u64,
        slot: u32,
        log2: u32,
    ) -> Option<Result<(u64, u64), u64>> {
        let (new, left) = word::without_block(level, old, slot, log2)?;
        Some(self.swap(old, new).map(|new| (new, left)))
    }

    /// Changes the codes to what `change` makes of them, as long as `allowed` accepts that. Returns the new word and
    /// the value that `change` returned; `None` as soon as `change` or `allowed` refuses.
    fn update<T>(
        self,
        level: usize,
        change: impl Fn(u64) -> Option<(u64, T)>,
        allowed: impl Fn(u64, u64) -> bool,
    ) -> Option<(u64, T)> {
        let mut old = self.load();
        loop {
            let codes = word::codes(level, old);
            let (to, found) = change(codes).filter(|&(to, _)| allowed(codes, to))?;
            match self.swap(old, word::with_codes(level, old, to)) {
                Ok(new) => return Some((new, found)),
                Err(current) => old = current,
            }
        }
    }

    /// Begins the inspection of an inner word that holds `old`. Returns `None` if the word was changed before the mark
    /// was set.
    fn mark(self, old: u64) -> Option<Marked<'a, W>> {
        if old & word::MARK != 0 {
            // Another inspection is under way, or has died. A mark of our own would undo it for nothing;
            // reads that come after its mark are as good under that one.
            return Some(Marked { word: self.0, value: old });
        }
        // The write of the pair "mark, then read the word below" against claims and clears.
        let value = self.swap(old, word::marked(old)).ok()?;
        Some(Marked { word: self.0, value })
    }

    /// Splits `slot` of inner word `old`, which is not held, and sets another bound. Returns the new word, or what was
    /// found instead of `old`.
    fn split(self, old: u64, slot: u32, bound: u64) -> Result<u64, u64> {
        let new = word::inner(old, word::codes(1, old) | word::SPLIT << (2 * slot), bound);
        // SeqCst: leaves no mark, which makes a concurrent `commit` fail.
        let split = self.swap(old, new);
        // Before the look at the word above: "Orderings" in DESIGN.md, `open`.
        W::store_load_fence();
        split
    }
}

impl<W: Word> Marked<'_, W> {
    /// Ends the inspection: split slots that are free in `codes` become free, and the bound may fall; free slots that
    /// are split in `codes` become split. Returns `false` if somebody has changed the word since the mark; then nothing
    /// was committed.
    pub fn commit(self, codes: u64, bound: u64) -> bool {
        let new = word::inner(self.value, codes, bound);
        // Passes on what the reads below acquired, to the claimer of a slot that was merged.
        At(self.word).swap(self.value, new).is_ok()
    }
}

impl<'a, W: Word> Tree<'a, W> {
    /// Changes free slots of a word to what `change` makes of its codes. Returns `None` if `change` refuses, or would
    /// change anything else.
    pub fn fill<T>(
        &self,
        level: usize,
        idx: u64,
        change: impl Fn(u64) -> Option<(u64, T)>,
    ) -> Option<(u64, T)> {
        let allowed = |from, to| word::only_fills(level, from, to);
        self.word(level, idx).update(level, change, allowed)
    }

    /// Changes slots of a word, of which the caller holds some, to what `change` makes of its codes: they become free,
    /// or held otherwise, and free slots of the word may become the caller's. Returns `None` if `change` refuses, or
    /// would change a split slot.
    pub fn rewrite<T>(
        &self,
        level: usize,
        idx: u64,
        change: impl Fn(u64) -> Option<(u64, T)>,
    ) -> Option<(u64, T)> {
        let allowed = |from, to| word::keeps_split(level, from, to);
        let changed = self.word(level, idx).update(level, change, allowed);
        // Before the look at the bound above: "Orderings" in DESIGN.md, `rewrite`.
        W::store_load_fence();
        changed
    }

    /// Writes `codes` into a word below a slot that the caller holds, after which the word has no free slots. Returns
    /// `false` if a claim about to be undone stands in it.
    pub fn hide(&self, level: usize, idx: u64, codes: u64) -> bool {
        // Such a claim may have split one of the same slots.
        let same = if level == 0 { 0 } else { word::split_slots(codes) };
        let change = |found| (found & !same == 0).then_some((codes, ()));
        self.word(level, idx).update(level, change, |_, _| true).is_some()
    }

    /// Splits the held `slot` of an inner word, over a word that is [hidden](Self::hide) below it. Returns `false` if
    /// the slot does not hold `code`.
    pub fn uncover(&self, level: usize, idx: u64, slot: u32, code: u64) -> bool {
        let change = |found| {
            let held = word::code(found, slot) == code && matches!(code, word::HEAD | word::REST);
            held.then(|| (found ^ (code ^ word::SPLIT) << (2 * slot), ()))
        };
        self.word(level, idx).update(level, change, |_, _| true).is_some()
    }

    /// Splits a slot of an inner word, and makes its bound allow for what a claim below leaves of the slot. Returns
    /// `false` if a block or run holds the slot.
    pub(super) fn open(&self, level: usize, idx: u64, slot: u32) -> bool {
        let word = self.word(level, idx);
        // Pairs with the mark: if the inspection missed the claim, this sees its mark.
        let mut old = word.load();
        loop {
            let bound = match word::code(old, slot) {
                word::HEAD | word::REST => return false,
                // What the claim left of the slot: at most its largest half.
                word::FREE => word::bound(old).max(u64::from(W::SHAPE.slot_order(level))),
                _ if old & word::MARK == 0 => {
                    // Another's claim may have split it, and not have reached its own fence: this one keeps the look at
                    // the word above behind this look.
                    W::store_load_fence();
                    return true;
                }
                _ => word::bound(old),
            };
            match word.split(old, slot, bound) {
                Ok(_) => return true,
                Err(found) => old = found,
            }
        }
    }

    /// Raises the bound of an inner word to `offer`, and leaves no mark. Returns the word as it was then.
    pub(super) fn raise(&self, level: usize, idx: u64, offer: u64) -> u64 {
        let word = self.word(level, idx);
        // Pairs with the mark and the commit: the inspection sees the free, or this sees its mark.
        let mut old = word.load();
        while !word::allows(old, offer) {
            let new = word::inner(old, word::codes(level, old), word::bound(old).max(offer));
            // SeqCst: leaves no mark, which makes a concurrent `commit` fail.
            old = word.swap(old, new).unwrap_or_else(|found| found);
        }
        // Before the look at the word above, whoever raised the bound.
        W::store_load_fence();
        old
    }

    /// Begins the inspection of an inner word. Returns `None` if the word was changed before the mark was set.
    pub(super) fn mark(&self, level: usize, idx: u64) -> Option<Marked<'a, W>> {
        let word = self.word(level, idx);
        let marked = word.mark(word.load());
        if level > 1 && marked.is_some() {
            // Between the mark and the epoch.
            W::store_load_fence();
            self.end_epoch();
        }
        // Between the mark, or the epoch, and the reads below.
        W::store_load_fence();
        marked
    }
}
