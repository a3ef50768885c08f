//! Slabs: which slots are free, and which slabs have some. The protocol of the heap.
//!
//! A slab has a word, with a bit for each free slot and the mark `LISTED`, and a link, which says its class. For each
//! class there are two stacks of slabs that have free slots. There are four rules:
//!
//! - A caller that holds slots gives them back by setting their bits, and the mark with them. If the mark was not set,
//!   the caller now has the slab in hand, and lists it.
//! - A caller that takes a slab off a stack has it in hand, and takes all its slots and the mark at once.
//! - So a slab without the mark has no free slots, and nobody but the holders of its slots can reach it.
//! - A caller that holds all slots of such a slab holds its memory, and may return it.
//!
//! Slots are never claimed one by one: a thread takes all that a slab has, keeps them in its cache, and gives back what
//! it does not need. So no compare-and-swap can mistake a slab that was returned and made anew for what it was before.
//!
//! Slabs are listed on one of the two stacks, the current one. To find the slabs that are whole, a caller makes the
//! other stack current and takes the slabs off the former one, a few at a time. It returns those that are whole and
//! lists the others on the current stack. So it meets each slab once, or twice if others make the stacks change places
//! meanwhile; several callers can share the work, and anybody can take slots meanwhile, from either stack. The stacks
//! change places only once the one that becomes current has been empty.
//!
//! A thread that stops between two steps withholds the slabs that it has in hand: as many as it takes at once (see
//! [`Slabs::take`]), and those that it has yet to list. If it stops once it has made a listed slab whole, but before it
//! has recorded that, others take slots of the slab, but its memory is withheld until another slab of the class is
//! recorded as whole.

mod lot;

pub use lot::Lot;

use nbbs::sync::{Ordering, Word};

use crate::class::{CLASSES, Class};

#[cfg(test)]
mod handlers;
#[cfg(all(test, not(miri), target_pointer_width = "64"))]
mod races;

/// Set in a slab's word while the slab is on a stack or in somebody's hands.
const LISTED: u64 = 1 << 63;

/// The low half of a stack's word: the number of the first slab's first unit plus one, or 0. The high half counts the
/// takes, so that a stack that looks unchanged is unchanged.
const FIRST: u64 = u32::MAX as u64;

/// In a class's state: set if some listed slab may have all its slots free.
const MAY_BE_WHOLE: u64 = 1;

/// In a class's state: the number of the stack that is current.
const CURRENT: u64 = 2;

/// In a class's state: one of its version, which each record of a whole slab raises, so that a compare-and-swap notices
/// the record.
const VERSION_ONE: u64 = 4;

/// The words of all slabs of a region, by the number of their first unit.
#[derive(Debug)]
pub struct Slabs<'a, W> {
    /// A bit for each free slot, and [`LISTED`].
    slots: &'a [W],
    /// The next slab on the stack, as in [`FIRST`], and the slab's class plus one in the high half: 0 if no slab begins
    /// there. Then the low half says which slab last contained the unit behind its first: log2 of its units in the low
    /// byte, and above that its class plus one.
    links: &'a [W],
    /// Two stacks for each class.
    stacks: &'a [W],
    /// The state of each class: [`MAY_BE_WHOLE`], [`CURRENT`] and [`VERSION_ONE`].
    states: &'a [W],
}

/// The most slabs that a caller of the heap takes at once.
pub const AT_ONCE: usize = 4;

/// How often a caller that takes slabs looks at both stacks, if they change places meanwhile.
const LOOKS: usize = 3;

/// How often a caller that looks for whole slabs tries to make the stacks change places, which fails if a slab becomes
/// whole meanwhile.
const SWAPS: usize = 1000;

/// The number of words that all classes take, beside those of each unit.
pub const WORDS_OF_CLASSES: usize = 3 * CLASSES;

impl<W> Clone for Slabs<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Slabs<'_, W> {}

/// What became of slots that were given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// They can be taken again.
    Free,
    /// They were the last: all slots of the slab can be taken, as far as is known, and its memory may go back. One caller
    /// is told each time that a slab becomes whole.
    LastFree,
    /// They were all slots of the slab, which nobody else can reach: the caller holds its memory, and must return it.
    Whole,
    /// There is no slab of this class, or one of them was free already. Nothing has changed.
    Refused,
}

impl<'a, W: Word> Slabs<'a, W> {
    /// Creates the slabs over these words, all zero at first: `slots` and `links` have one for each unit, `classes` has
    /// [`WORDS_OF_CLASSES`].
    pub fn new(slots: &'a [W], links: &'a [W], classes: &'a [W]) -> Self {
        let (stacks, states) = classes.split_at(2 * CLASSES);
        Self { slots, links, stacks, states }
    }

    /// Makes a slab of the block at `unit`, which the caller holds. The caller then holds all its slots.
    ///
    /// Cost: a store for each unit.
    pub fn make(&self, class: Class, unit: u64) {
        let order = class.slab_order();
        for behind in 0..1 << order {
            let Some(link) = self.link(unit + behind) else { return };
            let value = if behind == 0 { tag(class) } else { u64::from(order) | tag(class) >> 24 };
            // Relaxed: only holders of its slots rely on it, and they have them from the caller.
            link.store(value, Ordering::Relaxed);
        }
    }

    /// Takes up to `most` slabs off a stack of `class`, with all their free slots. Calls `visit` with each slab's unit,
    /// and a bit for each of its slots. Misses the slabs that others have in hand, and may miss any if the stacks
    /// change places during each of [`LOOKS`] looks at both.
    ///
    /// Cost: a read-modify-write, and one for each slab.
    pub fn take(&self, class: Class, most: usize, mut visit: impl FnMut(u64, u64)) {
        let Some(word) = self.states.get(class.number()) else { return };
        let mut state = load_state(word);
        for _ in 0..LOOKS {
            // In the order in which others move slabs: those that are on the former stack no more are on the other.
            let former = usize::from(state & CURRENT == 0);
            if self.take_from(class, former, most, &mut visit) > 0
                || self.take_from(class, 1 - former, most, &mut visit) > 0
            {
                return;
            }
            // If it is the same, the stacks have not changed places, not even twice: in between the version is raised.
            let now = load_state(word);
            if now == state {
                return;
            }
            state = now;
        }
    }

    /// Iterates over the classes that have a listed slab of which all slots may be free, or for which others are looking
    /// for such slabs.
    ///
    /// Cost: two loads for each class.
    pub fn maybe_whole(&self) -> impl Iterator<Item = Class> {
        let words = self.states.iter().zip(self.stacks.chunks_exact(2)).zip(Class::all());
        words.filter_map(|((state, stacks), class)| may_be_whole(state, stacks).then_some(class))
    }

    /// Takes all slabs of `class`, up to `most` at a time, like [`take`](Self::take), until all slots of none of them
    /// may be free. `visit` gives back what it is called with. This includes the slabs that other callers have yet to
    /// look at, but not those that they have in hand. Gives up if a slab becomes whole during each of [`SWAPS`] tries to
    /// make the stacks change places.
    ///
    /// Takes no more than `left` slabs, or up to `most` more, and subtracts them there. Those that remain then are found
    /// by the next call, as if another caller had yet to look at them.
    pub fn take_all(
        &self,
        class: Class,
        most: usize,
        left: &mut usize,
        mut visit: impl FnMut(u64, u64),
    ) {
        let Some(word) = self.states.get(class.number()) else { return };
        let mut has_changed_places = false;
        // Each slab is met twice at most: on the stack that others left half done, and on the one that was current.
        let (mut looks, mut swaps) = (2 * self.links.len(), SWAPS);
        while looks > 0 && swaps > 0 && *left > 0 {
            let state = load_state(word);
            let former = usize::from(state & CURRENT == 0);
            let taken = self.take_from(class, former, most, &mut visit);
            if taken > 0 {
                looks -= 1;
                *left = left.saturating_sub(taken);
                continue;
            }
            if has_changed_places || state & MAY_BE_WHOLE == 0 {
                return;
            }
            swaps -= 1;
            // Fails if a slab has been recorded since, which may be on the stack that was found empty. Release: pairs
            // with the Acquire in `load_state`, for slabs that others have moved to the stack that becomes the former
            // one.
            has_changed_places = self.is_still_empty(class, former)
                && word
                    .compare_exchange(
                        state,
                        state ^ (MAY_BE_WHOLE | CURRENT),
                        Ordering::Release,
                        Ordering::Relaxed,
                    )
                    .is_ok();
        }
    }

    /// [Takes all](Self::take_all) slabs of a class, if it is one of [`maybe_whole`](Self::maybe_whole).
    #[cfg(test)]
    fn take_all_if_whole(&self, class: Class, most: usize, visit: impl FnMut(u64, u64)) {
        let number = class.number();
        if may_be_whole(&self.states[number], &self.stacks[2 * number..][..2]) {
            self.take_all(class, most, &mut { usize::MAX }, visit);
        }
    }

    /// Takes nothing off a stack, if it is empty. Returns whether it is.
    fn is_still_empty(&self, class: Class, number: usize) -> bool {
        let Some(stack) = self.stack(class, number) else { return false };
        // Relaxed: the exchange fails if it has changed.
        let seen = stack.load(Ordering::Relaxed);
        // Release: pairs with the Acquire in `list`: a caller that lists a slab later sees what was recorded before.
        seen & FIRST == 0
            && stack
                .compare_exchange(
                    seen,
                    seen.wrapping_add(FIRST + 1),
                    Ordering::Release,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// Takes up to `most` slabs off one of the stacks of `class`. Returns how many there were.
    fn take_from(
        &self,
        class: Class,
        number: usize,
        most: usize,
        visit: &mut impl FnMut(u64, u64),
    ) -> usize {
        let (mut next, end) = self.detach(class, number, most);
        let mut taken = 0;
        while next != end {
            let Some(unit) = next.checked_sub(1) else { break };
            // Before the slab is listed anew. Relaxed: `detach` has acquired it.
            next = self.link(unit).map_or(0, |link| link.load(Ordering::Relaxed) & FIRST);
            let slots = self.take_slots(unit);
            visit(unit, slots);
            taken += 1;
        }
        taken
    }

    /// Takes the first `most` slabs off a stack. Returns the first of them, and the one behind the last.
    fn detach(&self, class: Class, number: usize, most: usize) -> (u64, u64) {
        let Some(stack) = self.stack(class, number) else { return (0, 0) };
        // Acquire, here and below: pairs with the Release in `list`, for links.
        let mut seen = stack.load(Ordering::Acquire);
        loop {
            let first = seen & FIRST;
            if first == 0 {
                return (0, 0);
            }
            let end = self.walk(first, most);
            let new = (seen & !FIRST).wrapping_add(FIRST + 1) | end;
            // Release: pairs with the Acquire here and above of a `take` that finds the stack empty: it sees the slabs
            // that the caller has moved to the other one before, and that the stacks have changed places.
            match stack.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return (first, end),
                Err(found) => seen = found,
            }
        }
    }

    /// Returns what is `steps` links behind `first`. The result is meaningless if the stack changes in the meantime.
    fn walk(&self, first: u64, steps: usize) -> u64 {
        let mut at = first;
        for _ in 0..steps {
            let Some(link) = at.checked_sub(1).and_then(|unit| self.link(unit)) else { break };
            // Relaxed: the exchange in `detach` fails if the stack has changed.
            at = link.load(Ordering::Relaxed) & FIRST;
        }
        at
    }

    /// Takes all slots of a slab that the caller has in hand, and the mark.
    fn take_slots(&self, unit: u64) -> u64 {
        let Some(word) = self.word(unit) else { return 0 };
        // Relaxed: the exchange fails if it has changed.
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            // Acquire: pairs with the Release in `give`: the former holders have finished with the slots. Release:
            // pairs with the Acquire in `give` of the caller that lists the slab next and writes its link, which this
            // caller has read.
            match word.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return seen & !LISTED,
                Err(found) => seen = found,
            }
        }
    }

    /// Gives back `slots` of the slab at `unit`, which the caller holds.
    ///
    /// Cost: a read-modify-write, one more if the slab has to be listed, and one if it has become whole; none if the
    /// slots are all of it.
    pub fn give(&self, class: Class, unit: u64, slots: u64) -> Given {
        let (Some(word), Some(link)) = (self.word(unit), self.link(unit)) else {
            return Given::Refused;
        };
        // Relaxed: a holder of slots has the class from whoever gave it the slots.
        if link.load(Ordering::Relaxed) & !FIRST != tag(class) {
            return Given::Refused;
        }
        // Acquire: pairs with the Release in `take_slots`. A caller that holds all of the slab has seen that before,
        // from whoever gave it the slots.
        let mut seen = word.load(Ordering::Acquire);
        loop {
            if seen & slots != 0 || seen & LISTED != 0 && slots == class.all_slots() {
                return Given::Refused;
            }
            if slots == class.all_slots() {
                // Relaxed: nobody else can reach the slab, and its memory is returned by a Release.
                link.store(0, Ordering::Relaxed);
                return Given::Whole;
            }
            let new = seen | slots | LISTED;
            // Release: pairs with the Acquire in `take_slots`, after all use of the slots. Acquire: pairs with the
            // Release there, as the link is now the caller's if the mark was not set.
            match word.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(found) => seen = found,
            }
        }
        let mut now = seen | slots;
        if seen & LISTED == 0 {
            self.list(class, unit);
            // Another caller may have made the slab whole, and recorded that before it was listed. Relaxed: `list` has
            // acquired it if whoever saw the record found the stack empty.
            now = word.load(Ordering::Relaxed);
        }
        if now & !LISTED != class.all_slots() {
            return Given::Free;
        }
        self.record_whole(class);
        // Who listed the slab gave back its first slots; who gave the last is told by itself.
        if seen & LISTED != 0 { Given::LastFree } else { Given::Free }
    }

    /// Records that all slots of a listed slab of `class` may be free.
    fn record_whole(&self, class: Class) {
        let Some(word) = self.states.get(class.number()) else { return };
        // Relaxed: the exchange fails if it has changed.
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let new = (seen | MAY_BE_WHOLE).wrapping_add(VERSION_ONE);
            // Release: pairs with the Acquire in `load_state`, so that the slab is found on a stack. It is an exchange,
            // as a store would hide earlier records from those that see it.
            match word.compare_exchange(seen, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(found) => seen = found,
            }
        }
    }

    /// Puts a slab that the caller has in hand on the current stack of `class`.
    fn list(&self, class: Class, unit: u64) {
        // Relaxed: on the stack that was current a moment ago it is found, too.
        let state = self.states.get(class.number()).map_or(0, |word| word.load(Ordering::Relaxed));
        let stack = self.stack(class, usize::from(state & CURRENT != 0));
        let (Some(stack), Some(link)) = (stack, self.link(unit)) else { return };
        // Relaxed: as above.
        let mut seen = stack.load(Ordering::Relaxed);
        loop {
            // Relaxed: the slab is in hand, and the exchange below releases it.
            link.store(tag(class) | seen & FIRST, Ordering::Relaxed);
            let new = seen & !FIRST | (unit + 1);
            // Release: pairs with the Acquire in `detach`, for the link. Acquire: pairs with the Release in
            // `is_still_empty`.
            match stack.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(found) => seen = found,
            }
        }
    }

    /// Returns the class of the slab that begins at `unit`, if one does, and its free slots that nobody keeps, at this
    /// moment.
    pub fn look(&self, unit: u64) -> Option<(Class, u64)> {
        Some((self.class_at(unit)?, self.free_at(unit)?))
    }

    /// Returns the class of the slab that begins at `unit`, if one does, at this moment.
    fn class_at(&self, unit: u64) -> Option<Class> {
        // Relaxed, here and in what follows: an answer for this moment.
        class_of(self.link(unit)?.load(Ordering::Relaxed))
    }

    /// Returns the free slots of the slab that begins at `unit`, at this moment.
    fn free_at(&self, unit: u64) -> Option<u64> {
        Some(self.word(unit)?.load(Ordering::Relaxed) & !LISTED)
    }

    /// Returns whether the mark of a slab is set.
    pub fn is_listed(&self, unit: u64) -> bool {
        self.word(unit).is_some_and(|word| word.load(Ordering::Relaxed) & LISTED != 0)
    }

    /// Returns how many slabs with the mark the stacks of a class have; `usize::MAX` if one has no end, or leads to
    /// anything else.
    pub fn on_stacks(&self, class: Class) -> usize {
        self.on_stack(class, 0).saturating_add(self.on_stack(class, 1))
    }

    fn on_stack(&self, class: Class, number: usize) -> usize {
        let stack = self.stack(class, number);
        let mut next = stack.map_or(0, |stack| stack.load(Ordering::Relaxed) & FIRST);
        let mut count = 0;
        while let Some(unit) = next.checked_sub(1) {
            let is_of = self.look(unit).is_some_and(|(found, _)| found == class);
            if !is_of || !self.is_listed(unit) || count > self.links.len() {
                return usize::MAX;
            }
            count += 1;
            next = self.link(unit).map_or(0, |link| link.load(Ordering::Relaxed) & FIRST);
        }
        count
    }

    /// Returns the slab to which a unit belongs, if any: its first unit, its class, and its free slots as
    /// [`look`](Self::look) sees them. For holders of one of its slots; others may see a slab that no longer exists.
    ///
    /// Cost: three loads.
    #[inline]
    pub fn of(&self, unit: u64) -> Option<(u64, Class, u64)> {
        // Relaxed: a holder of a slot has it from the maker of the slab.
        let link = self.link(unit)?.load(Ordering::Relaxed);
        // Nobody could foretell a branch here.
        let (number, order) = match (link >> 32, link as u32) {
            (0, inside) => (u64::from(inside >> 8), inside % u64::BITS),
            (number, _) => (number, 0),
        };
        let first = unit >> order << order;
        let is_its = self.link(first)?.load(Ordering::Relaxed) >> 32 == number;
        let class = class_numbered(number)?;
        Some((first, class, self.free_at(first)?)).filter(|_| is_its)
    }

    /// Returns the first or the second stack of a class, numbers 0 and 1.
    #[inline]
    fn stack(&self, class: Class, number: usize) -> Option<&'a W> {
        self.stacks.get(2 * class.number() + number)
    }

    fn word(&self, unit: u64) -> Option<&'a W> {
        self.slots.get(usize::try_from(unit).ok()?)
    }

    fn link(&self, unit: u64) -> Option<&'a W> {
        self.links.get(usize::try_from(unit).ok()?)
    }
}

/// Returns whether all slots of a listed slab of a class may be free, or others are looking for such slabs.
#[inline]
fn may_be_whole<W: Word>(state: &W, stacks: &[W]) -> bool {
    let state = load_state(state);
    let former = stacks.get(usize::from(state & CURRENT == 0));
    // Relaxed: `load_state` has acquired what others had moved there before the stacks changed places.
    let is_left = former.is_some_and(|stack| stack.load(Ordering::Relaxed) & FIRST != 0);
    is_left || state & MAY_BE_WHOLE != 0
}

/// Loads a class's state, before a look at its stacks.
#[inline]
fn load_state<W: Word>(state: &W) -> u64 {
    // Acquire: pairs with the Release in `record_whole`: all slabs recorded so far as whole have been listed, or their
    // listers will see that they are whole. Pairs with the Release of the caller that made the stacks change places, in
    // `take_all`, too: what others had moved to the former stack is found there.
    state.load(Ordering::Acquire)
}

/// Returns the class that a link records, if a slab begins there.
#[inline]
fn class_of(link: u64) -> Option<Class> {
    class_numbered(link >> 32)
}

/// Returns the class of a number plus one, as links have it.
#[inline]
fn class_numbered(number: u64) -> Option<Class> {
    Class::numbered((number as usize).checked_sub(1)?)
}

/// Returns the class as a link records it, in its high half.
const fn tag(class: Class) -> u64 {
    (class.number() as u64 + 1) << 32
}
