//! Finding a word in which a block can be claimed.
//!
//! The search starts near a given word, the lane's cursor or home: at the lowest word above it that no slot hides. It
//! goes down wherever a bound promises a block, and up where nothing is left. Once the words beside the cursor are full
//! it starts again. A block smaller than a leaf word is first looked for in the area from which the lane takes single
//! units; anything else from the top, first towards the lane's home, then in what follows it in each word. So areas
//! next to a lane's home fill up, and areas far from it empty and become whole.
//!
//! Other lanes can deceive a search for ever. One that allocates a unit in an empty area and frees it again and again
//! leaves a promise that all of the area may be merged, and has broken it whenever the search comes to merge. So a
//! search takes the areas in turn, free ones as well as split ones, once a promise is still there after it was found
//! false, or once it has failed to claim in four words of the order's level. It then comes back to such a word only
//! when it has been everywhere else. Other false promises are lowered; only a completed free renews them.
//!
//! As long as whole areas are free, the search first enters only areas that promise a larger block: an area that yields
//! one block and no more would cost a search for each. After a few that promised in vain it asks for larger ones still.
//! Once no area is whole, every area is used to the last block, so that the larger blocks last. The top word's answer
//! ends the search: one load decides that nothing is left.

use super::Blocks;
use crate::layout::geometry::Geometry;
use crate::sync::Word;
use crate::word;

/// How many orders more than needed an area must offer for a search to enter it first, as long as memory is not tight.
const ROOM: u64 = 1;

/// After how many words that had less than they promised a search takes the areas in turn.
const FEW: u32 = 4;

/// After how many ascents from words that have nothing a search asks for an order more.
const ASCENTS: u32 = 4;

/// The state of a search, which has reached word `idx` of level `at`.
struct Search {
    /// The level of the words in which it claims.
    level: usize,
    /// What a word of that level must offer: the order of the block, plus 1.
    need: u64,
    /// What an area, that is, a word directly above words of that level, or a word above areas must offer for the
    /// search to enter it. A free slot is entered in any case.
    room: u64,
    /// The word of `level` near which it looks.
    from: u64,
    /// In how many words of `level` it found less than they promised, up to [`FEW`]: then it takes the areas in turn.
    misses: u32,
    /// How often it has gone up since it last asked for more.
    ascents: u32,
    /// Whether it has begun again at the top, and so looks for the first fit from home on.
    has_restarted: bool,
    at: usize,
    idx: u64,
}

impl Search {
    /// Returns what the word at which the search stands must offer.
    #[inline(always)]
    fn ask(&self) -> u64 {
        if self.at > self.level + 1 { self.room } else { self.need }
    }

    #[inline(always)]
    fn goes_in_turn(&self) -> bool {
        self.misses == FEW
    }

    /// Notes that a word had less than it promised.
    fn miss(&mut self) {
        self.misses = FEW.min(self.misses + 1);
    }

    /// Takes the areas in turn from now on.
    fn go_in_turn(&mut self) {
        self.misses = FEW;
    }

    /// Asks for an order more every [`ASCENTS`] ascents, as long as memory is not tight: large promises are seldom old.
    fn ask_for_more(&mut self) {
        self.ascents = (self.ascents + 1) % ASCENTS;
        if self.room > self.need && self.ascents == 0 {
            self.room += 1;
        }
    }

    /// Goes on behind the word at which it stands: from the lowest word above both.
    fn skip<W: Word>(&mut self, geometry: &Geometry<W>) {
        self.from = self.behind(geometry);
        while self.at < geometry.top() {
            (self.at, self.idx) = (self.at + 1, W::SHAPE.parent(self.idx).0);
            if self.idx == W::SHAPE.ancestor(self.from, self.at - self.level) {
                break;
            }
        }
    }

    /// Returns the first word of its level behind the word at which it stands, or, after the last word, the first of
    /// all.
    fn behind<W: Word>(&self, geometry: &Geometry<W>) -> u64 {
        let behind = W::SHAPE.first_below(self.at - self.level, self.idx + 1);
        if behind < geometry.words_of(self.level) { behind } else { 0 }
    }
}

impl<W: Word> Blocks<'_, W> {
    /// Claims a block of `order` anywhere, beginning near word `from` of its level. Returns `None` if the top word
    /// offers none.
    ///
    /// A round that does not claim leaves a word that does not offer what is asked or, in turn, one to which it comes
    /// back last. It lowers that word's bound if the bound was wrong, or splits the slot above if that was free: the
    /// word above does not choose it again until somebody changes it. A search begins again at most twice, and falls
    /// back to `need` once. A tour of the arena in turn passes a word once, and lowers the bound of each word that it
    /// looks at from the first slot on. So without others it ends; with others, each further round follows from a
    /// change that another operation has completed.
    #[cold]
    pub(super) fn search(self, from: u64, order: u32) -> Option<u64> {
        let level = W::SHAPE.level_of(order);
        self.search_by(from, order, |idx| self.claim(level, idx, order))
    }

    /// [Searches](Self::search) by calling `claim` for each word that promises a block, and returns what that claimed.
    pub(super) fn search_by<T>(
        self,
        from: u64,
        order: u32,
        mut claim: impl FnMut(u64) -> Option<T>,
    ) -> Option<T> {
        self.look_by(from, order, |idx| {
            let claimed = claim(idx);
            if claimed.is_some() {
                self.lane.notes().set_cursor(order, idx);
            }
            claimed
        })
    }

    /// Calls `look` for each word that promises a block, until it returns something.
    pub(super) fn look_by<T>(
        self,
        from: u64,
        order: u32,
        mut look: impl FnMut(u64) -> Option<T>,
    ) -> Option<T> {
        let level = W::SHAPE.level_of(order);
        let need = u64::from(order) + 1;
        let (at, idx) = self.lowest_in_use(level, from);
        let mut search = Search {
            level,
            need,
            room: need,
            from,
            misses: 0,
            ascents: 0,
            has_restarted: false,
            at,
            idx,
        };
        loop {
            if search.at > level {
                if self.descend(&mut search) {
                    continue;
                }
            } else {
                if let found @ Some(_) = look(search.idx) {
                    return found;
                }
                self.tree().settle(level, search.idx);
                search.miss();
            }
            if !self.leave_word(&mut search) {
                return None;
            }
        }
    }

    /// Goes down to the next word that promises a block, or, in turn, past this one. Returns `false` if no word below
    /// this one does; its bound then says so.
    #[inline(always)]
    fn descend(self, search: &mut Search) -> bool {
        let Search { level, from, at, idx, .. } = *search;
        let slot = if search.goes_in_turn() {
            self.choose_in_turn(search)
        } else {
            self.choose(
                at,
                idx,
                search.ask(),
                first_slot::<W>(self.lane.number(), level, from, at, idx),
            )
        };
        if let Some(slot) = slot {
            (search.at, search.idx) = (at - 1, W::SHAPE.child(idx, slot));
        } else if search.goes_in_turn() && from > W::SHAPE.first_below(at - level, idx) {
            // What is left lies in front: after everything behind.
            search.skip(self.geometry());
        } else {
            self.tighten_if_misled(at, idx, search.ask());
            return false;
        }
        true
    }

    /// Goes on from a word in which nothing was claimed. Returns `false` if the whole arena offers no such block.
    #[inline(always)]
    fn leave_word(self, search: &mut Search) -> bool {
        let Search { level, need, at, idx, .. } = *search;
        let top = self.geometry().top();
        if self.offers(at, idx, search.ask()) {
            // More came free, or a lane is at work there, which should not be driven away as long as there is room
            // elsewhere.
            search.go_in_turn();
            search.from = search.behind(self.geometry());
            // Or the claim met a larger block, and everything below that seems free.
            (search.at, search.idx) = self.lowest_in_use(level, search.from);
        } else if at == top {
            if search.ask() == need {
                return false;
            }
            search.room = need;
        } else {
            // So that it does not take the slot for an empty one again.
            self.tree().split_over(at, idx);
            if search.goes_in_turn() {
                search.skip(self.geometry());
            } else if at == level + 1 && !search.has_restarted {
                // The words beside it are full, too: first fit, from home.
                search.from = self.lane.home(level);
                search.room = if self.is_spacious(level) { need + ROOM } else { need };
                (search.at, search.idx) = self.restart(level, need, idx);
                search.has_restarted = search.at == top;
            } else {
                search.ask_for_more();
                (search.at, search.idx) = (at + 1, W::SHAPE.parent(idx).0);
            }
        }
        true
    }

    /// Returns where a search for a word of `level` begins again, which has found nothing in area `left`. That is the
    /// top; for a block smaller than a leaf word it is the area from which the lane takes single units, if that is
    /// another one in use, and promises such a block. Frees left it there, and areas that are emptier are spared.
    fn restart(self, level: usize, need: u64, left: u64) -> (usize, u64) {
        if level == 0 {
            let (at, area) = self.lowest_in_use(0, self.lane.cursor(0));
            if at == 1 && area != left && self.offers(1, area, need) {
                return (at, area);
            }
        }
        (self.geometry().top(), 0)
    }

    /// Returns whether a block of `level` is looked for from the lane's home on once there is no room at its cursor: if
    /// it is at least as large as a leaf word, and memory is tight. To go on from the cursor would be next fit, which
    /// breaks up what is large. Smaller blocks would pay more for the search than they gain.
    #[inline(always)]
    pub(super) fn takes_first_fit(self, level: usize) -> bool {
        level > 0 && !self.is_spacious(level)
    }

    /// Returns whether an area, that is, a word directly above words of `level`, may be free as a whole. Then memory is
    /// not tight, and the areas that a search passes need not be used to the last unit.
    fn is_spacious(self, level: usize) -> bool {
        let top = self.geometry().top();
        let area = W::SHAPE.word_order(level + 1);
        top > level && self.offers(top, 0, u64::from(area) + 1)
    }

    #[inline(always)]
    fn offers(self, level: usize, idx: u64, need: u64) -> bool {
        self.tree().offers(level, idx, self.tree().read(level, idx), need)
    }

    /// Returns the lowest word above word `from` of `level` that no slot above hides; if `level` is the top, `from`
    /// itself.
    fn lowest_in_use(self, level: usize, from: u64) -> (usize, u64) {
        let mut at = self.geometry().top();
        while at > level + 1 {
            let (idx, slot) = W::SHAPE.parent(W::SHAPE.ancestor(from, at - level - 1));
            if word::code(self.tree().read(at, idx), slot) != word::SPLIT {
                return (at, idx);
            }
            at -= 1;
        }
        (at, W::SHAPE.ancestor(from, at - level))
    }

    /// Chooses the slot of an inner word to enter for a block of order `need` - 1: a split slot rather than a free one,
    /// the first that offers it from slot `near` on.
    fn choose(self, level: usize, idx: u64, need: u64, near: u32) -> Option<u32> {
        let word = self.tree().read(level, idx);
        let codes = word::codes(level, word);
        let mut split = word::from_slot(self.promising(level, idx, word, need), near);
        // Tested here, so that the loop over leaf words does not test each of them.
        let found = if level == 1 {
            let below = self.tree().below(1, idx);
            split.find(|&slot| below.offers(slot, below.read(slot), need))
        } else {
            let below = self.tree().below(level, idx);
            split.find(|&slot| below.offers(slot, below.read(slot), need))
        };
        found.or_else(|| self.choose_free(level, idx, codes, need, near))
    }

    /// Chooses the first slot that is free or offers what the search asks for, behind what it has passed.
    #[cold]
    fn choose_in_turn(self, search: &Search) -> Option<u32> {
        let Search { level, from, at, idx, .. } = *search;
        let need = search.ask();
        let word = self.tree().read(at, idx);
        let codes = word::codes(at, word);
        let part = self.partial_fit(at, idx, codes, need).map_or(0, |slot| 1 << (2 * slot));
        let free = self.tree().free_slots(at, idx, codes) | part;
        let split = self.promising(at, idx, word, need);
        let (on_path, slot) = W::SHAPE.parent(W::SHAPE.ancestor(from, at - level - 1));
        let passed = if idx == on_path { word::first_slots(slot) } else { 0 };
        let below = self.tree().below(at, idx);
        word::from_slot((free | split) & !passed, 0).find(|&slot| {
            word::code(codes, slot) == word::FREE || below.offers(slot, below.read(slot), need)
        })
    }

    /// Chooses a free slot of an inner word: the partial one if it suffices, else `near`, else one whose buddy is in
    /// use.
    pub(super) fn choose_free(
        self,
        level: usize,
        idx: u64,
        codes: u64,
        need: u64,
        near: u32,
    ) -> Option<u32> {
        let free = self.tree().free_slots(level, idx, codes);
        let partial = self.partial_fit(level, idx, codes, need);
        if partial.is_some() {
            return partial;
        }
        if free >> (2 * near) & 1 == 1 {
            return Some(near);
        }
        word::fit(free, 0)
    }

    /// Returns the slot that is only partly inside the arena, if it is free and suffices.
    fn partial_fit(self, level: usize, idx: u64, codes: u64, need: u64) -> Option<u32> {
        let (slot, order) = self.tree().free_partial_slot(level, idx, codes)?;
        (u64::from(order) + 1 >= need).then_some(slot)
    }

    /// Returns the split slots of an inner word below which its bound promises a block of order `need` - 1.
    fn promising(self, level: usize, idx: u64, word: u64, need: u64) -> u64 {
        if word::bound(word) < need {
            return 0;
        }
        self.tree().split_slots(level, idx, word::codes(level, word))
    }

    /// [Splits](crate::tree::Tree::split_over) the free slots above every word in use that describes `unit`: claims
    /// that a look from the top would not see.
    #[cold]
    pub fn split_over_all(self, unit: u64) {
        for level in 0..self.geometry().top() {
            self.tree().split_over(level, W::SHAPE.locate(level, unit).0);
        }
    }

    /// Tightens an inner word whose bound promises a block that was not found.
    pub(super) fn tighten_if_misled(self, level: usize, idx: u64, need: u64) {
        if word::bound(self.tree().read(level, idx)) >= need {
            self.tree().tighten(level, idx);
        }
    }
}

/// Returns the slot at which to begin in word `idx` of level `at`, in a search for a word of `level`. On the path to
/// word `from` it is the slot of that path; in any other word, neighbouring lanes begin on different cache lines.
fn first_slot<W: Word>(lane: usize, level: usize, from: u64, at: usize, idx: u64) -> u32 {
    match W::SHAPE.parent(W::SHAPE.ancestor(from, at - level - 1)) {
        (on_path, slot) if on_path == idx => slot,
        _ => (lane as u32).reverse_bits() >> (32 - W::SHAPE.slots_log2(at)),
    }
}
