//! Locals: slots that one thread keeps for itself.

use core::fmt;
use core::mem::{ManuallyDrop, forget};
use core::ptr::NonNull;

use crate::boxed::PoolBox;
use crate::chunk::{Chunk, Hold, SLOTS, first_slot};
use crate::error::{Exhausted, Full};
use crate::lane::{LANES, Lane, WAYS, thread_number};
use crate::pool::{Claimed, Pool};
use crate::source::{ChunkSource, Global};
use crate::sync::{AtomicU64, Ordering, Word};

/// A place in a pool to allocate from, for one thread at a time. It claims the free slots of a word, up to 64, by one
/// read-modify-write, hands them out without any, and keeps what is freed to it.
///
/// It keeps slots of at most 16 words, and the one freed last: 1,025, or as many as [`Pool::local_of`] was told. Nobody
/// else can allocate those, so a pool may be [`Full`] for others. They are given back by [`flush`](Self::flush), and
/// when the local is dropped. A local that is forgotten costs what it keeps, and its place in the pool. One whose
/// thread dies costs, too, the slot that it is freeing. Nobody waits for it.
///
/// A pool has 32 places for what locals keep. Locals that find none work, but keep nothing, and take a
/// read-modify-write for each operation: with more threads than that, share locals, or divide the threads among pools.
/// [`keeps_slots`](Self::keeps_slots) tells.
///
/// ```
/// let pool = nbbs_pool::Pool::<u32>::new();
/// let mut local = pool.local();
/// let one = local.alloc(1)?;
/// local.free(one);
/// assert_eq!((pool.len(), local.kept()), (0, 64));
/// # Ok::<(), nbbs_pool::Full<u32>>(())
/// ```
// Each slot that the lane counts as kept is claimed for this local, and no object is in it: those of a way are slots of
// the way's chunk and word, and the last one is where `last` says.
pub struct Local<'a, T, S: ChunkSource = Global, W: Word = AtomicU64> {
    pool: &'a Pool<T, S, W>,
    ways: [Way<'a, T, W>; WAYS],
    /// The way that is allocated from.
    current: usize,
    /// The object whose slot is kept apart: freed last, allocated first. `lane.last` says where it is.
    last: Option<(NonNull<T>, &'a Chunk<T, W>)>,
    most: usize,
    /// Says which slots are kept; written by this local only.
    lane: &'a Lane,
    /// Whether other locals have all lanes, so that nothing is kept.
    keeps_nothing: bool,
    from: (usize, usize),
}

/// A word of which slots are kept.
struct Way<'a, T, W: Word> {
    chunk: Option<&'a Chunk<T, W>>,
    word: usize,
    /// The address of the word's first slot.
    first: NonNull<T>,
}

/// The most slots that a local keeps.
const MOST: usize = WAYS * SLOTS + 1;

/// The lane of locals that have none of their own.
static NO_LANE: Lane = Lane::new();

// SAFETY: what it keeps belongs to the holder of the local; the pool may be used by any thread.
unsafe impl<T: Send, S: ChunkSource + Sync, W: Word + Sync> Send for Local<'_, T, S, W> {}

impl<T, S: ChunkSource, W: Word> Pool<T, S, W> {
    /// Creates a local: a place to allocate from, for one thread at a time.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let mut local = pool.local();
    /// assert_eq!(*local.alloc(1)?, 1);
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    #[must_use]
    pub fn local(&self) -> Local<'_, T, S, W> {
        self.local_of(MOST)
    }

    /// Creates a [`local`](Self::local) that keeps at most `most` slots, 2 or more: for small pools that many threads
    /// share.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let mut local = pool.local_of(4);
    /// let _one = local.alloc(1)?;
    /// assert!(local.kept() < 4);
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    #[must_use]
    pub fn local_of(&self, most: usize) -> Local<'_, T, S, W> {
        let first = thread_number();
        let own = (0..LANES).map(|n| (first + n) % LANES).find(|&n| self.lanes()[n].enter());
        Local {
            pool: self,
            ways: core::array::from_fn(|_| Way::empty()),
            current: 0,
            last: None,
            // One is kept apart.
            most: most.clamp(2, MOST) - 1,
            lane: own.map_or(&NO_LANE, |number| &self.lanes()[number]),
            keeps_nothing: own.is_none(),
            from: self.home(own.unwrap_or(first % LANES)),
        }
    }
}

impl<T, W: Word> Way<'_, T, W> {
    const fn empty() -> Self {
        Self { chunk: None, word: 0, first: NonNull::dangling() }
    }

    #[inline(always)]
    fn is_of(&self, chunk: &Chunk<T, W>) -> bool {
        self.chunk.is_some_and(|own| core::ptr::eq(own, chunk))
    }

    /// Returns the position of an object in the word, in bytes, if it is in it.
    #[inline(always)]
    fn offset(&self, object: NonNull<T>) -> Option<usize> {
        let offset = (object.as_ptr() as usize).wrapping_sub(self.first.as_ptr() as usize);
        (offset < SLOTS.saturating_mul(Chunk::<T, W>::STRIDE)).then_some(offset)
    }
}

impl<'a, T, S: ChunkSource, W: Word> Local<'a, T, S, W> {
    /// Allocates an object that the box owns. Cost: a read-modify-write where it keeps no slot, which claims up to 64.
    ///
    /// # Errors
    /// There is no free slot, and the pool cannot grow. The error has the value.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let mut local = pool.local();
    /// let one = local.alloc(1)?;
    /// assert_eq!(*one, 1);
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    #[inline]
    pub fn alloc(&mut self, value: T) -> Result<PoolBox<'a, T, W>, Full<T>> {
        match self.take_slot() {
            Ok((object, chunk)) => {
                // SAFETY: a kept slot is claimed, and no longer kept: memory for a T that nobody else has.
                unsafe { object.write(value) };
                // SAFETY: the object was just made in that slot.
                Ok(unsafe { PoolBox::new(object, chunk) })
            }
            Err(reason) => Err(Full { value, reason }),
        }
    }

    /// Drops the object and keeps its slot, whichever thread allocated it. A box of another pool is dropped. Cost: a
    /// read-modify-write where it keeps slots of so many words that it has to give back those of one.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let one = pool.alloc_box(1)?;
    /// let mut local = pool.local();
    /// local.free(one);
    /// assert_eq!(local.kept(), 1);
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    #[inline]
    pub fn free(&mut self, object: PoolBox<'a, T, W>) {
        let object = ManuallyDrop::new(object);
        let (at, chunk) = (object.object(), object.chunk());
        if core::mem::needs_drop::<T>() {
            // SAFETY: the slot was claimed for the box, which is not dropped. The hold is dropped only if the destructor
            // panics, and then this is the object's end.
            let hold = unsafe { Hold::of(chunk, chunk.slot_of(at)) };
            // SAFETY: the box owned a complete object, and this is its end; if it panics, `hold` frees the slot.
            unsafe { at.drop_in_place() };
            forget(hold);
        }
        // SAFETY: the slot was claimed for the box, which is not dropped, and its object has gone.
        unsafe { self.keep(at, chunk) };
    }

    /// Frees the slot and returns the object. Cost: that of [`free`](Self::free).
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let mut local = pool.local();
    /// let one = local.alloc(1)?;
    /// assert_eq!(local.take(one), 1);
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    pub fn take(&mut self, object: PoolBox<'a, T, W>) -> T {
        let object = ManuallyDrop::new(object);
        // SAFETY: the box owned a complete object, and is not dropped.
        let value = unsafe { object.object().read() };
        // SAFETY: as above: the slot was claimed for the box, and its object has been taken from it.
        unsafe { self.keep(object.object(), object.chunk()) };
        value
    }

    /// Returns how many slots are kept: claimed, and not in use. Cost: 17 loads.
    ///
    /// ```
    /// assert_eq!(nbbs_pool::Pool::<u32>::new().local().kept(), 0);
    /// ```
    #[must_use]
    pub fn kept(&self) -> usize {
        self.lane.kept()
    }

    /// Returns whether the local keeps slots at all: whether it found one of the pool's 32 places when it was made. It
    /// has the place until it is dropped; one that found none never gets one. Cost: a load.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let locals: [_; 33] = core::array::from_fn(|_| pool.local());
    /// assert!(locals[..32].iter().all(|local| local.keeps_slots()));
    /// assert!(!locals[32].keeps_slots()); // it takes a read-modify-write for each operation
    /// drop(locals);
    /// assert!(pool.local().keeps_slots());
    /// ```
    #[must_use]
    pub const fn keeps_slots(&self) -> bool {
        !self.keeps_nothing
    }

    /// Gives all kept slots back, with one read-modify-write for each word of them.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let mut local = pool.local();
    /// drop(local.alloc(1)?);
    /// local.flush();
    /// assert_eq!(local.kept(), 0);
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    pub fn flush(&mut self) {
        (0..WAYS).for_each(|way| self.give_back(way));
        if let Some((object, chunk)) = self.take_last() {
            // SAFETY: it was kept, so it is claimed for us and empty, and it is not kept any more.
            unsafe { chunk.release_slot(chunk.slot_of(object)) };
        }
    }

    /// Returns the kept slots of a way.
    #[inline(always)]
    fn kept_of(&self, way: usize) -> u64 {
        // Relaxed: this local's own.
        self.lane.kept[way].load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn set_kept(&self, way: usize, slots: u64) {
        // Relaxed: this local's own; others only count them.
        self.lane.kept[way].store(slots, Ordering::Relaxed);
    }

    /// Takes the slot that was kept apart.
    #[inline(always)]
    fn take_last(&mut self) -> Option<(NonNull<T>, &'a Chunk<T, W>)> {
        let last = self.last.take();
        if last.is_some() {
            // Relaxed: this local's own; others only count it.
            self.lane.last.store(0, Ordering::Relaxed);
        }
        last
    }

    /// Takes a slot that is no longer kept.
    #[inline(always)]
    fn take_slot(&mut self) -> Result<(NonNull<T>, &'a Chunk<T, W>), Exhausted> {
        match self.take_last() {
            Some(last) => Ok(last),
            None => self.take_kept(),
        }
    }

    #[inline(always)]
    fn take_kept(&mut self) -> Result<(NonNull<T>, &'a Chunk<T, W>), Exhausted> {
        let current = self.current % WAYS;
        let (way, slots) = (&self.ways[current], self.kept_of(current));
        if let Some(chunk) = way.chunk.filter(|_| slots != 0) {
            let slot = slots.trailing_zeros() as usize;
            self.set_kept(current, slots & (slots - 1));
            // SAFETY: the slot is one of the word's, so it lies inside the chunk's memory, which stays
            // while a slot of it is claimed.
            let object = unsafe { way.first.cast::<u8>().add(slot * Chunk::<T, W>::STRIDE) };
            return Ok((object.cast(), chunk));
        }
        self.refill()
    }

    /// Makes a way with slots the current one, and takes one of them.
    #[cold]
    fn refill(&mut self) -> Result<(NonNull<T>, &'a Chunk<T, W>), Exhausted> {
        if let Some(way) = (0..WAYS).find(|&way| self.kept_of(way) != 0) {
            self.current = way;
            return self.take_kept();
        }
        let most = if self.keeps_nothing { 1 } else { self.most.min(SLOTS) as u32 };
        let Claimed { chunk, word, slots } = self.pool.claim(self.from, most)?;
        self.from = (chunk.number(), word);
        // SAFETY: the slot is claimed.
        let object = unsafe { chunk.object(first_slot(word, slots)) };
        if !self.keeps_nothing {
            self.current = way_of(chunk, word);
            // SAFETY: a slot of the word is claimed, and so the chunk has the word's first, too.
            let first = unsafe { chunk.object(word * SLOTS) };
            self.ways[self.current] = Way { chunk: Some(chunk), word, first };
            self.set_kept(self.current, slots & (slots - 1));
        }
        Ok((object, chunk))
    }

    /// Keeps a slot.
    ///
    /// # Safety
    /// `object` is the address of a slot of the chunk that is claimed for the caller and empty.
    #[inline(always)]
    unsafe fn keep(&mut self, object: NonNull<T>, chunk: &'a Chunk<T, W>) {
        let mut at = self.current % WAYS;
        if self.last.is_none() && self.ways[at].is_of(chunk) {
            self.last = Some((object, chunk));
            // Relaxed: this local's own; others only count it.
            return self.lane.last.store(object.as_ptr() as usize, Ordering::Relaxed);
        }
        let bit = match self.ways[at].offset(object) {
            Some(offset) if self.ways[at].is_of(chunk) => 1 << (offset / Chunk::<T, W>::STRIDE),
            _ => {
                let slot = chunk.slot_of(object);
                at = way_of(chunk, slot / SLOTS);
                if !(self.ways[at].word == slot / SLOTS && self.ways[at].is_of(chunk)) {
                    // SAFETY: by the contract.
                    return unsafe { self.keep_first(chunk, slot) };
                }
                1 << (slot % SLOTS)
            }
        };
        let slots = self.kept_of(at);
        if slots == 0 {
            // SAFETY: by the contract.
            return unsafe { self.keep_first(chunk, chunk.slot_of(object)) };
        }
        self.set_kept(at, slots | bit);
        if self.most < MOST - 1 {
            self.shed();
        }
    }

    /// Keeps the first slot of a word, in the place of another word.
    ///
    /// This is also used for a word of which nothing is kept any more: its chunk may have been withdrawn in the
    /// meantime, and have other memory by now.
    ///
    /// # Safety
    /// The slot of the chunk is claimed for the caller, and empty.
    #[inline(never)]
    unsafe fn keep_first(&mut self, chunk: &'a Chunk<T, W>, slot: usize) {
        let (word, bit) = (slot / SLOTS, 1 << (slot % SLOTS));
        let own = self.pool.table().get(chunk.number());
        if self.keeps_nothing || !own.is_some_and(|own| core::ptr::eq(own, chunk)) {
            // SAFETY: by the contract.
            return unsafe { chunk.release(word, bit) };
        }
        let way = way_of(chunk, word);
        self.give_back(way);
        // SAFETY: a slot of the word is claimed, and so the chunk has the word's first, too.
        let first = unsafe { chunk.object(word * SLOTS) };
        self.ways[way] = Way { chunk: Some(chunk), word, first };
        self.set_kept(way, bit);
        if self.most < MOST - 1 {
            self.shed();
        }
    }

    /// Gives back the excess slots, those of the current word last.
    #[cold]
    fn shed(&mut self) {
        let mut way = self.current;
        while self.kept() > self.most {
            way = (way + 1) % WAYS;
            self.give_back(way);
        }
    }

    /// Gives the kept slots of a way back.
    fn give_back(&mut self, way: usize) {
        let slots = self.kept_of(way);
        if let Some(chunk) = self.ways[way].chunk.filter(|_| slots != 0) {
            self.set_kept(way, 0);
            // SAFETY: they were kept, so they are claimed for us and empty, and are not kept any more.
            unsafe { chunk.release(self.ways[way].word, slots) };
        }
    }
}

/// Returns the way for the slots of a word.
#[inline(always)]
fn way_of<T, W: Word>(chunk: &Chunk<T, W>, word: usize) -> usize {
    (chunk.number() + word) % WAYS
}

impl<T, S: ChunkSource, W: Word> Drop for Local<'_, T, S, W> {
    fn drop(&mut self) {
        self.flush();
        if !self.keeps_nothing {
            self.lane.leave();
        }
    }
}

impl<T, S: ChunkSource, W: Word> fmt::Debug for Local<'_, T, S, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kept, keeps_slots) = (self.kept(), self.keeps_slots());
        let mut said = f.debug_struct("Local");
        said.field("kept", &kept).field("keeps_slots", &keeps_slots).finish_non_exhaustive()
    }
}
