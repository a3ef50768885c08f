//! A chunk: bitmaps that stay in place until the pool is dropped, and memory for slots, which comes and goes.
//!
//! ```text
//! claimed   a bit for each slot: it cannot be allocated. Set for a slot that is in use, that a `Local` keeps, or that
//!           does not exist, and for all slots of a chunk without memory
//! live      a bit for each slot: an object that was allocated by pointer is there
//! room      a bit for each word of `claimed`: some slot may be free. A hint
//! ```
//!
//! A slot belongs to the caller that changed its bit in `claimed` from 0 to 1, until that caller, or one to which the
//! slot was handed over, changes it back. No word names another slot, so there is no ABA: a compare-and-swap that finds
//! the word as expected finds those very slots free.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU8;

use crate::arrays::{element, extend, make_array};
use crate::sync::{Ordering, Pointer, Word};

/// Slots in a word.
pub(crate) const SLOTS: usize = u64::BITS as usize;

/// A chunk. The arrays follow it in the same block.
///
/// `claimed` and `live` lead to as many words as [`words`](Self::words) says, `room` to as many as it takes to have a
/// bit for each of these, and what is beside them to one element for each slot. [`make`](Self::make) has initialised
/// all of them; they and the table's word stay as long as the chunk, and are reached by shared references only. In
/// `room` only bits of words that there are get set.
#[repr(C)]
pub(crate) struct Chunk<T, W: Word> {
    /// Where slot 0 is; null while the chunk has no memory.
    memory: W::Pointer<u8>,
    claimed: NonNull<W>,
    live: NonNull<W>,
    room: NonNull<W>,
    beside: Beside<W>,
    /// The word of the table that says which chunks have room, and this chunk's bit in it.
    table: NonNull<W>,
    table_bit: u64,
    slots: usize,
    number: usize,
    /// Objects go in and come out through shared references, so the type is invariant: a box of `&'static str` must not
    /// become one of a shorter `&str`, which the pool would take for the former.
    objects: PhantomData<fn(T) -> T>,
}

/// What a chunk is to have for each slot beside its bits.
#[derive(Clone, Copy)]
pub(crate) enum Extra {
    Nothing,
    /// A word, in a pool of handles.
    Words,
    /// A byte for the user, in a pool of [marked](crate::Pool::with_marks) slots.
    Marks,
}

impl Extra {
    /// Returns the number of words that they take.
    fn words(self, slots: usize) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Words => slots,
            Self::Marks => slots.div_ceil(size_of::<u64>()),
        }
    }
}

/// What a chunk has for each slot beside its bits, and where.
enum Beside<W> {
    Nothing,
    Words(NonNull<W>),
    Marks(NonNull<AtomicU8>),
}

/// The number of a chunk, its slots, and the table entry that says whether it has room.
pub(crate) struct Place<W> {
    pub number: usize,
    pub slots: usize,
    pub table: NonNull<W>,
    pub table_bit: u64,
}

/// The positions of the arrays in a chunk's block.
struct Plan {
    layout: Layout,
    claimed: usize,
    live: usize,
    room: usize,
    extra: usize,
}

impl<T, W: Word> Chunk<T, W> {
    /// Bytes from one slot to the next. Slots of objects without size are kept apart too, so that an address names a
    /// slot.
    pub(crate) const STRIDE: usize =
        if size_of::<T>() == 0 { align_of::<T>() } else { size_of::<T>() };

    fn plan(slots: usize, extra: Extra) -> Option<Plan> {
        let words = slots.div_ceil(SLOTS);
        let mut layout = Layout::new::<Self>();
        let claimed = extend::<W>(&mut layout, words)?;
        let live = extend::<W>(&mut layout, words)?;
        let room = extend::<W>(&mut layout, words.div_ceil(SLOTS))?;
        // A word's marks are a cache line: who has the word's slots has it alone.
        let line = if matches!(extra, Extra::Marks) { SLOTS } else { align_of::<W>() };
        layout = layout.align_to(line).ok()?.pad_to_align();
        let extra = extend::<W>(&mut layout, extra.words(slots))?;
        Some(Plan { layout: layout.pad_to_align(), claimed, live, room, extra })
    }

    /// Returns the layout of a chunk with this many slots, without the memory of the slots.
    pub(crate) fn layout(slots: usize, extra: Extra) -> Option<Layout> {
        Self::plan(slots, extra).map(|plan| plan.layout)
    }

    /// Returns the layout of the slots' memory.
    pub(crate) fn memory_layout(slots: usize) -> Option<Layout> {
        Layout::from_size_align(slots.checked_mul(Self::STRIDE)?, align_of::<T>()).ok()
    }

    /// Makes a chunk without memory in `block`: every slot is claimed.
    ///
    /// # Safety
    /// The block has the [`layout`](Self::layout) of `place.slots`, and belongs to the caller. `place.table` stays
    /// valid as long as the chunk is used.
    pub(crate) unsafe fn make(
        block: NonNull<u8>,
        place: Place<W>,
        extra: Extra,
    ) -> Option<NonNull<Self>> {
        let Place { number, slots, table, table_bit } = place;
        let plan = Self::plan(slots, extra)?;
        let words = slots.div_ceil(SLOTS);
        let array = |begin, len, value| {
            // SAFETY: the array lies inside the block, by the plan, and is aligned; the block is ours.
            unsafe { make_array(block, begin, len, || W::new(value)) }
        };
        let chunk = Self {
            memory: W::Pointer::null(),
            claimed: array(plan.claimed, words, u64::MAX),
            live: array(plan.live, words, 0),
            room: array(plan.room, words.div_ceil(SLOTS), 0),
            beside: match extra {
                Extra::Nothing => Beside::Nothing,
                Extra::Words => Beside::Words(array(plan.extra, slots, 0)),
                Extra::Marks => Beside::Marks(array(plan.extra, extra.words(slots), 0).cast()),
            },
            table,
            table_bit,
            slots,
            number,
            objects: PhantomData,
        };
        // SAFETY: the chunk is first in the block, and the block is ours.
        unsafe { block.cast::<Self>().write(chunk) };
        Some(block.cast())
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn words(&self) -> usize {
        self.slots.div_ceil(SLOTS)
    }

    fn rooms(&self) -> usize {
        self.words().div_ceil(SLOTS)
    }

    /// # Safety
    /// `word` is less than [`words`](Self::words).
    #[inline(always)]
    pub(crate) unsafe fn claimed(&self, word: usize) -> &W {
        debug_assert!(word < self.words());
        // SAFETY: the array has `words()` words: see `Chunk`.
        unsafe { element(self.claimed, word) }
    }

    /// # Safety
    /// `word` is less than [`words`](Self::words).
    #[inline(always)]
    unsafe fn live(&self, word: usize) -> &W {
        debug_assert!(word < self.words());
        // SAFETY: the array has `words()` words: see `Chunk`.
        unsafe { element(self.live, word) }
    }

    /// # Safety
    /// `idx` is less than `rooms()`.
    #[inline(always)]
    unsafe fn room(&self, idx: usize) -> &W {
        debug_assert!(idx < self.rooms());
        // SAFETY: the array has `rooms()` words: see `Chunk`.
        unsafe { element(self.room, idx) }
    }

    #[inline(always)]
    fn table(&self) -> &W {
        // SAFETY: it stays as long as the chunk: see `Chunk`.
        unsafe { self.table.as_ref() }
    }

    /// Returns the word of a slot in a pool of handles.
    pub(crate) fn state(&self, slot: usize) -> Option<&W> {
        assert!(slot < self.slots);
        let Beside::Words(words) = self.beside else { return None };
        // SAFETY: the array has `slots` words: see `Chunk`.
        Some(unsafe { element(words, slot) })
    }

    /// Returns the bytes of the slots in a pool of marked slots; none in any other.
    pub(crate) fn marks(&self) -> &[AtomicU8] {
        let Beside::Marks(marks) = self.beside else { return &[] };
        // SAFETY: the array has a word of 64 bits for every 8 slots, initialised by `make`. It is reached in no other
        // way, and it stays as long as the chunk.
        unsafe { core::slice::from_raw_parts(marks.as_ptr(), self.slots) }
    }

    /// Returns the bits of `word` that stand for slots.
    pub(crate) fn real(&self, word: usize) -> u64 {
        match self.slots - word * SLOTS {
            left @ ..SLOTS => (1 << left) - 1,
            _ => u64::MAX,
        }
    }

    /// Returns the address of slot 0; null while the chunk has no memory.
    #[inline(always)]
    pub(crate) fn memory(&self) -> *mut u8 {
        // Acquire pairs with the Release in `install`: the block's contents, if anybody had put some there.
        self.memory.load(Ordering::Acquire)
    }

    /// Makes `block` the memory of a chunk that has none; fails if somebody else was faster.
    ///
    /// # Safety
    /// The block has the [layout](Self::memory_layout) of the chunk's slots, and belongs to the caller, who leaves it
    /// to the chunk if this succeeds.
    pub(crate) unsafe fn install(&self, block: NonNull<u8>) -> bool {
        // Release pairs with the Acquire in `memory`; Acquire: after the withdrawal that cleared it.
        let none = core::ptr::null_mut();
        let won =
            self.memory.compare_exchange(none, block.as_ptr(), Ordering::AcqRel, Ordering::Relaxed);
        won.is_ok()
    }

    /// Takes the memory from a chunk.
    ///
    /// # Safety
    /// The caller has claimed all slots, or is the only one that reaches the chunk.
    pub(crate) unsafe fn uninstall(&self) -> Option<NonNull<u8>> {
        let block = self.memory();
        // Release pairs with the Acquire of the next `install`.
        let none = core::ptr::null_mut();
        _ = self.memory.compare_exchange(block, none, Ordering::AcqRel, Ordering::Relaxed);
        NonNull::new(block)
    }

    /// Returns the address of a slot.
    ///
    /// # Safety
    /// The caller holds the claim of a slot of the chunk, and the chunk has `slot`.
    #[inline(always)]
    pub(crate) unsafe fn object(&self, slot: usize) -> NonNull<T> {
        let memory = self.memory();
        debug_assert!(!memory.is_null() && slot < self.slots);
        // SAFETY: while the caller holds a claim the chunk is not withdrawn, so its memory is there, and the claim
        // read what `open` released after `install`.
        let memory = unsafe { NonNull::new_unchecked(memory) };
        // SAFETY: the slot lies inside the memory.
        unsafe { memory.add(slot * Self::STRIDE) }.cast()
    }

    /// Returns the address of a slot, if the chunk has memory.
    pub(crate) fn address(&self, slot: usize) -> Option<NonNull<T>> {
        let memory = NonNull::new(self.memory())?;
        // Only an address: whether an object is there is another question.
        NonNull::new(memory.as_ptr().wrapping_add(slot * Self::STRIDE).cast())
    }

    /// Returns the slot of an object of this chunk.
    #[inline(always)]
    pub(crate) fn slot_of(&self, object: NonNull<T>) -> usize {
        (object.as_ptr() as usize - self.memory() as usize) / Self::STRIDE
    }

    /// Sets the live bit of a slot.
    ///
    /// # Safety
    /// The slot is claimed for the caller, who leaves to the pool the complete object that is there.
    pub(crate) unsafe fn set_live(&self, slot: usize) {
        // SAFETY: the chunk has the slot, which is claimed, and so its word.
        let live = unsafe { self.live(slot / SLOTS) };
        // Release pairs with the Acquire in `clear_live`: the object is complete.
        live.fetch_or(1 << (slot % SLOTS), Ordering::Release);
    }

    /// Clears the live bit of a slot. Of several callers that try, one succeeds: it owns the object, and the slot is
    /// claimed for it.
    ///
    /// # Safety
    /// The chunk has the slot.
    pub(crate) unsafe fn clear_live(&self, slot: usize) -> bool {
        let bit = 1 << (slot % SLOTS);
        // SAFETY: the chunk has the slot, by the contract, and so its word.
        let live = unsafe { self.live(slot / SLOTS) };
        // Acquire pairs with the Release in `set_live`.
        live.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// Returns the slots of a word with a live object.
    ///
    /// # Safety
    /// `word` is less than [`words`](Self::words).
    pub(crate) unsafe fn live_slots(&self, word: usize) -> u64 {
        // SAFETY: by the contract.
        let live = unsafe { self.live(word) };
        // Acquire pairs with the Release in `set_live`.
        live.load(Ordering::Acquire)
    }

    /// Returns whether there is a live object at a slot.
    ///
    /// # Safety
    /// The chunk has the slot.
    pub(crate) unsafe fn is_live(&self, slot: usize) -> bool {
        // SAFETY: the chunk has the slot, by the contract, and so its word.
        let live = unsafe { self.live_slots(slot / SLOTS) };
        live & 1 << (slot % SLOTS) != 0
    }

    /// Returns the slots of a word that are claimed.
    ///
    /// # Safety
    /// `word` is less than [`words`](Self::words).
    pub(crate) unsafe fn claimed_slots(&self, word: usize) -> u64 {
        // SAFETY: by the contract.
        let claimed = unsafe { self.claimed(word) };
        // Relaxed: a count, out of date as soon as it is taken.
        claimed.load(Ordering::Relaxed) & self.real(word)
    }

    /// Returns how many slots are claimed.
    pub(crate) fn claimed_in_all(&self) -> usize {
        // SAFETY: each word is less than `words()`.
        let claimed = |word| unsafe { self.claimed_slots(word) };
        (0..self.words()).map(|word| claimed(word).count_ones() as usize).sum()
    }

    /// Returns whether no slot of a word can be claimed.
    ///
    /// # Safety
    /// `word` is less than [`words`](Self::words).
    #[inline(always)]
    pub(crate) unsafe fn is_full(&self, word: usize) -> bool {
        // SAFETY: by the contract.
        let claimed = unsafe { self.claimed(word) };
        // Relaxed: a hint, out of date as soon as it is given.
        claimed.load(Ordering::Relaxed) == u64::MAX
    }

    pub(crate) fn hint(&self) -> Hint<'_, T, W> {
        Hint(self)
    }
}

/// A claimed slot that is given back when dropped, even if a constructor or a destructor panics.
pub(crate) struct Hold<'a, T, W: Word> {
    chunk: &'a Chunk<T, W>,
    slot: usize,
}

impl<'a, T, W: Word> Hold<'a, T, W> {
    /// # Safety
    /// The slot is claimed for the caller, who leaves it to the hold. When that is dropped, no object is in the slot.
    #[inline(always)]
    pub(crate) unsafe fn of(chunk: &'a Chunk<T, W>, slot: usize) -> Self {
        Self { chunk, slot }
    }
}

impl<T, W: Word> Drop for Hold<'_, T, W> {
    fn drop(&mut self) {
        // SAFETY: by the contract of `of`.
        unsafe { self.chunk.release_slot(self.slot) };
    }
}

/// The hints of a chunk: which of its words have room, and whether it has.
pub(crate) struct Hint<'c, T, W: Word>(&'c Chunk<T, W>);

/// All accesses are SeqCst: a caller that gives slots back writes `claimed`, then reads the hints; a caller that takes
/// the last ones clears a hint, then reads `claimed`. One of the two sees the other.
impl<T, W: Word> Hint<'_, T, W> {
    /// Records that `word` has room.
    ///
    /// # Safety
    /// The chunk has the word.
    #[inline(always)]
    pub(crate) unsafe fn raise(self, word: usize) {
        let Self(chunk) = self;
        let bit = 1 << (word % SLOTS);
        // SAFETY: the chunk has the word, by the contract, and so a bit for it.
        let room = unsafe { chunk.room(word / SLOTS) };
        if room.load(Ordering::SeqCst) & bit == 0 {
            room.fetch_or(bit, Ordering::SeqCst);
        }
        if chunk.table().load(Ordering::SeqCst) & chunk.table_bit == 0 {
            chunk.table().fetch_or(chunk.table_bit, Ordering::SeqCst);
        }
    }

    /// Records that `word` has no room, unless it has some by now.
    ///
    /// # Safety
    /// The chunk has the word.
    #[cold]
    pub(crate) unsafe fn lower(self, word: usize) {
        let Self(chunk) = self;
        let bit = 1 << (word % SLOTS);
        // SAFETY: the chunk has the word, by the contract, and so a bit for it.
        let room = unsafe { chunk.room(word / SLOTS) };
        // SAFETY: by the contract.
        let claimed = unsafe { chunk.claimed(word) };
        let others = room.fetch_and(!bit, Ordering::SeqCst) & !bit;
        if claimed.load(Ordering::SeqCst) != u64::MAX {
            // SAFETY: by the contract.
            return unsafe { self.raise(word) };
        }
        if others == 0 && !chunk.hint().any() {
            chunk.table().fetch_and(!chunk.table_bit, Ordering::SeqCst);
            if chunk.hint().any() {
                chunk.table().fetch_or(chunk.table_bit, Ordering::SeqCst);
            }
        }
    }

    /// Returns whether a word has room.
    fn any(self) -> bool {
        self.next(0).is_some()
    }

    /// Returns the first word with room, from `from` on. The chunk has it.
    pub(crate) fn next(self, from: usize) -> Option<usize> {
        let Self(chunk) = self;
        first_bit(from, chunk.rooms(), |idx| {
            // SAFETY: `first_bit` asks for words below `rooms()` only.
            unsafe { chunk.room(idx) }.load(Ordering::SeqCst)
        })
    }
}

/// Returns the first of some slots of a word, given by their bits.
#[inline(always)]
pub(crate) fn first_slot(word: usize, slots: u64) -> usize {
    word * SLOTS + slots.trailing_zeros() as usize
}

/// Returns the first bit that is set, from bit `from` on, of `words` words that `load` reads. It reads none beyond.
pub(crate) fn first_bit(from: usize, words: usize, load: impl Fn(usize) -> u64) -> Option<usize> {
    let mut mask = u64::MAX << (from % SLOTS);
    for idx in from / SLOTS..words {
        let found = load(idx) & mask;
        if found != 0 {
            return Some(idx * SLOTS + found.trailing_zeros() as usize);
        }
        mask = u64::MAX;
    }
    None
}
