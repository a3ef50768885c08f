//! The chunks of a pool, by number, in segments of 8, 16, 32 ... chunks, which stay in place.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::AtomicPtr;

use crate::arrays::{element, extend, make_array};
use crate::chunk::{Chunk, Extra, Place, SLOTS, first_bit};
use crate::error::Exhausted;
use crate::index::{self, Bucket, Index, Stretch};
use crate::source::ChunkSource;
use crate::sync::{AtomicU64, Ordering, Pointer, Word};

/// Chunks in the first segment.
const FIRST: usize = 8;
/// The number of segments: enough chunks for any address space.
const SEGMENTS: usize = 28;
/// Chunks in all segments.
pub(crate) const MOST_CHUNKS: usize = FIRST * ((1 << SEGMENTS) - 1);

pub(crate) struct Table<T, W: Word> {
    segments: [W::Pointer<Segment<T, W>>; SEGMENTS],
    count: W,
    /// Slots with memory.
    pub capacity: W,
    /// Chunks without memory, give or take those being counted: may be below 0, wrapped.
    pub without_memory: W,
}

/// A segment. The arrays follow it in the same block: `chunks` has `len` pointers, `room` a word for each 64 of these,
/// and there are as many buckets as the index of so many chunks has. [`Plan::make`] has initialised all of them; they
/// stay as long as the segment, and are reached by shared references only.
pub(crate) struct Segment<T, W: Word> {
    chunks: NonNull<W::Pointer<Chunk<T, W>>>,
    /// A bit for each chunk: it may have room.
    room: NonNull<W>,
    buckets: NonNull<Bucket<W>>,
    len: usize,
}

/// Returns which segment a chunk is in, and its position there. For a number that no chunk can have there may be no such
/// segment.
#[inline]
fn place(number: usize) -> (usize, usize) {
    let shifted = number.saturating_add(FIRST);
    let segment = (shifted.ilog2() - FIRST.ilog2()) as usize;
    (segment, shifted - (FIRST << segment))
}

impl<T> Table<T, AtomicU64> {
    pub(crate) const fn new() -> Self {
        let segments = [const { AtomicPtr::new(core::ptr::null_mut()) }; SEGMENTS];
        let [count, capacity, without_memory] = [const { AtomicU64::new(0) }; 3];
        Self { segments, count, capacity, without_memory }
    }
}

impl<T, W: Word> Table<T, W> {
    /// Creates the same as `new`, outside constant expressions.
    pub(crate) fn with_words() -> Self {
        let segments = core::array::from_fn(|_| W::Pointer::null());
        Self { segments, count: W::new(0), capacity: W::new(0), without_memory: W::new(0) }
    }

    /// Returns the number of chunks, with or without memory.
    pub(crate) fn count(&self) -> usize {
        // Acquire pairs with the Release in `append`.
        self.count.load(Ordering::Acquire) as usize
    }

    fn segment(&self, segment: usize) -> Option<&Segment<T, W>> {
        // Acquire pairs with the Release in `segment_or_new`.
        let found = self.segments.get(segment)?.load(Ordering::Acquire);
        // SAFETY: a segment that the table names is complete, and stays until the pool is dropped.
        unsafe { found.as_ref() }
    }

    /// Returns a chunk by its number.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&Chunk<T, W>> {
        let (segment, at) = place(number);
        self.segment(segment)?.get(at)
    }

    /// Iterates over all chunks, the last one first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Chunk<T, W>> {
        (0..self.count()).rev().filter_map(|number| self.get(number))
    }

    /// Returns the first chunk from `from` on that may have room.
    pub(crate) fn next_with_room(&self, from: usize) -> Option<&Chunk<T, W>> {
        let (first, mut at) = place(from);
        for segment in (first..SEGMENTS).map_while(|segment| self.segment(segment)) {
            if let Some(found) = segment.next_with_room(at) {
                return segment.get(found);
            }
            at = 0;
        }
        None
    }

    /// Returns the last chunk before `to` that may have room.
    pub(crate) fn last_with_room(&self, to: usize) -> Option<&Chunk<T, W>> {
        let (last, mut to) = place(to);
        for segment in (0..=last).rev() {
            let found =
                self.segment(segment).and_then(|found| found.get(found.last_with_room(to)?));
            if found.is_some() {
                return found;
            }
            to = usize::MAX;
        }
        None
    }

    /// Ensures that chunk `number`, the next one, exists, and returns whether this call has counted it.
    pub(crate) fn append(
        &self,
        number: usize,
        slots: usize,
        extra: Extra,
        source: &impl ChunkSource,
    ) -> Result<(&Chunk<T, W>, bool), Exhausted> {
        let (segment, at) = place(number);
        let segment = self.segment_or_new(segment, source)?;
        let chunk = match segment.get(at) {
            Some(chunk) => chunk,
            None => segment.chunk_or_new(at, (number, slots), extra, source)?,
        };
        // Release pairs with the Acquire in `count`. On failure somebody else has counted it.
        let (old, new) = (number as u64, number as u64 + 1);
        let counted = self.count.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed);
        Ok((chunk, counted.is_ok()))
    }

    fn segment_or_new(
        &self,
        segment: usize,
        source: &impl ChunkSource,
    ) -> Result<&Segment<T, W>, Exhausted> {
        if let Some(found) = self.segment(segment) {
            return Ok(found);
        }
        let place = self.segments.get(segment).ok_or(Exhausted::ENDLESS)?;
        let plan = Plan::<T, W>::of(segment).ok_or(Exhausted::ENDLESS)?;
        let block = source.alloc(plan.layout).ok_or(Exhausted::of(plan.layout))?;
        // SAFETY: the block has the plan's layout and is ours.
        let new = unsafe { plan.make(block) };
        let none = core::ptr::null_mut();
        // Release pairs with the Acquire in `segment`.
        let won =
            place.compare_exchange(none, new.as_ptr(), Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if !won {
            // SAFETY: nobody else has seen the block, which came from this source with this layout.
            unsafe { source.free(block, plan.layout) };
        }
        self.segment(segment).ok_or(Exhausted::ENDLESS)
    }

    /// Returns the bytes of all segments.
    pub(crate) fn segment_bytes(&self) -> usize {
        let made = (0..SEGMENTS).filter(|&number| self.segment(number).is_some());
        made.filter_map(Plan::<T, W>::of).map(|plan| plan.layout.size()).sum()
    }

    /// Returns the chunk whose memory contains the address.
    pub(crate) fn find(&self, address: usize, chunk_bytes: usize) -> Option<&Chunk<T, W>> {
        let holds = |chunk: &&Chunk<T, W>| {
            let memory = chunk.memory() as usize;
            memory != 0 && address.wrapping_sub(memory) < chunk.slots() * Chunk::<T, W>::STRIDE
        };
        let stretches = Stretch::around(address, chunk_bytes);
        // The segments with the most chunks first.
        for segment in (0..=place(self.count()).0).rev() {
            let Some(segment) = self.segment(segment) else { continue };
            for stretch in stretches {
                let found = segment.index().find(stretch, |at| segment.get(at).filter(holds));
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// Makes a chunk that has just got memory findable by address.
    pub(crate) fn enlist(&self, chunk: &Chunk<T, W>, chunk_bytes: usize) {
        let (segment, at) = place(chunk.number());
        if let Some(segment) = self.segment(segment) {
            segment.index().enlist(at, Stretch::of(chunk.memory() as usize, chunk_bytes));
        }
    }

    /// Undoes [`enlist`](Self::enlist).
    pub(crate) fn strike(&self, chunk: &Chunk<T, W>, chunk_bytes: usize) {
        let (segment, at) = place(chunk.number());
        if let Some(segment) = self.segment(segment) {
            segment.index().strike(at, Stretch::of(chunk.memory() as usize, chunk_bytes));
        }
    }

    /// Gives everything back: memory, chunks and segments.
    pub(crate) fn dispose(&mut self, extra: Extra, source: &impl ChunkSource) {
        for number in 0..self.count() {
            let (segment, at) = place(number);
            // As the source made it, not by a reference: it is given back whole, with its arrays.
            let Some(chunk) = self.segment(segment).and_then(|segment| segment.block(at)) else {
                continue;
            };
            // SAFETY: the chunk is complete, and stays until its block is freed below.
            let whole = unsafe { chunk.as_ref() };
            let slots = whole.slots();
            // SAFETY: `&mut self` means that nobody else reaches it.
            let memory = unsafe { whole.uninstall() };
            let free = |block, layout: Option<Layout>| {
                if let (Some(block), Some(layout)) = (block, layout) {
                    // SAFETY: the block came from this source with this layout, and this is the end of it.
                    unsafe { source.free(block, layout) };
                }
            };
            free(memory, Chunk::<T, W>::memory_layout(slots));
            free(Some(chunk.cast()), Chunk::<T, W>::layout(slots, extra));
        }
        for (number, segment) in self.segments.iter().enumerate() {
            // Relaxed: `&mut self` comes after all that others did.
            let block = NonNull::new(segment.load(Ordering::Relaxed));
            if let (Some(block), Some(plan)) = (block, Plan::<T, W>::of(number)) {
                // SAFETY: the block came from this source with this layout, and this is the end of it.
                unsafe { source.free(block.cast(), plan.layout) };
            }
        }
    }
}

impl<T, W: Word> Segment<T, W> {
    fn slot(&self, at: usize) -> Option<&W::Pointer<Chunk<T, W>>> {
        // SAFETY: the array has `len` pointers: see `Segment`.
        (at < self.len).then(|| unsafe { element(self.chunks, at) })
    }

    /// Returns a chunk's block.
    #[inline]
    fn block(&self, at: usize) -> Option<NonNull<Chunk<T, W>>> {
        // Acquire pairs with the Release in `chunk_or_new`.
        NonNull::new(self.slot(at)?.load(Ordering::Acquire))
    }

    #[inline]
    fn get(&self, at: usize) -> Option<&Chunk<T, W>> {
        // SAFETY: a chunk that the segment names is complete, and stays until the pool is dropped.
        self.block(at).map(|chunk| unsafe { chunk.as_ref() })
    }

    fn chunk_or_new(
        &self,
        at: usize,
        (number, slots): (usize, usize),
        extra: Extra,
        source: &impl ChunkSource,
    ) -> Result<&Chunk<T, W>, Exhausted> {
        let layout = Chunk::<T, W>::layout(slots, extra).ok_or(Exhausted::ENDLESS)?;
        let block = source.alloc(layout).ok_or(Exhausted::of(layout))?;
        // SAFETY: the array has a word for each 64 of the `len` chunks.
        let table = unsafe { self.room.add(at / SLOTS) };
        let place = Place { number, slots, table, table_bit: 1 << (at % SLOTS) };
        // SAFETY: the block has that layout and is ours; the segment stays as long as its chunks.
        let chunk = unsafe { Chunk::make(block, place, extra) }.ok_or(Exhausted::ENDLESS)?;
        let pointer = self.slot(at).ok_or(Exhausted::ENDLESS)?;
        let none = core::ptr::null_mut();
        // Release pairs with the Acquire in `block`.
        let won =
            pointer.compare_exchange(none, chunk.as_ptr(), Ordering::AcqRel, Ordering::Relaxed);
        if won.is_err() {
            // SAFETY: nobody else has seen the block, which came from this source with this layout.
            unsafe { source.free(block, layout) };
        }
        self.get(at).ok_or(Exhausted::ENDLESS)
    }

    /// Returns the first chunk from `from` on that may have room.
    fn next_with_room(&self, from: usize) -> Option<usize> {
        // SAFETY: `first_bit` asks for no word behind the last.
        first_bit(from, self.len.div_ceil(SLOTS), |idx| unsafe { self.room(idx) })
    }

    /// Returns the last chunk before `to` that may have room.
    fn last_with_room(&self, to: usize) -> Option<usize> {
        let to = to.min(self.len);
        let mut mask = !(u64::MAX << (to % SLOTS));
        for idx in (0..=to / SLOTS).rev() {
            // SAFETY: `to` is at most `len`. The word that begins at `to`, which there may not be, has no bit below it.
            let found = if mask == 0 { 0 } else { mask & unsafe { self.room(idx) } };
            if found != 0 {
                return Some(idx * SLOTS + found.ilog2() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// Returns which of 64 chunks may have room, a bit for each.
    ///
    /// # Safety
    /// `idx` is that of a word: less than a 64th of `len`, rounded up.
    unsafe fn room(&self, idx: usize) -> u64 {
        debug_assert!(idx < self.len.div_ceil(SLOTS));
        // SAFETY: the array has a word for each 64 chunks: see `Segment`.
        let room = unsafe { element(self.room, idx) };
        // SeqCst: as all accesses to hints, see `Hint`.
        room.load(Ordering::SeqCst)
    }

    fn index(&self) -> Index<'_, W> {
        // SAFETY: the array has that many buckets: see `Segment`.
        let buckets =
            unsafe { core::slice::from_raw_parts(self.buckets.as_ptr(), index::buckets(self.len)) };
        Index { buckets }
    }
}

/// The positions of the arrays in a segment's block.
struct Plan<T, W: Word> {
    layout: Layout,
    chunks: usize,
    room: usize,
    buckets: usize,
    len: usize,
    of: core::marker::PhantomData<Segment<T, W>>,
}

impl<T, W: Word> Plan<T, W> {
    fn of(segment: usize) -> Option<Self> {
        let len = FIRST.checked_shl(segment as u32)?;
        let mut layout = Layout::new::<Segment<T, W>>();
        let chunks = extend::<W::Pointer<Chunk<T, W>>>(&mut layout, len)?;
        let room = extend::<W>(&mut layout, len.div_ceil(SLOTS))?;
        let buckets = extend::<Bucket<W>>(&mut layout, index::buckets(len))?;
        let of = core::marker::PhantomData;
        Some(Self { layout: layout.pad_to_align(), chunks, room, buckets, len, of })
    }

    /// # Safety
    /// The block has the plan's layout and belongs to the caller.
    unsafe fn make(&self, block: NonNull<u8>) -> NonNull<Segment<T, W>> {
        let (len, words, buckets) = (self.len, self.len.div_ceil(SLOTS), index::buckets(self.len));
        // SAFETY: the array lies inside the block, by the plan, and is aligned; the block is ours.
        let chunks = unsafe { make_array(block, self.chunks, len, W::Pointer::null) };
        // SAFETY: as above.
        let room = unsafe { make_array(block, self.room, words, || W::new(0)) };
        // SAFETY: as above.
        let buckets = unsafe { make_array(block, self.buckets, buckets, Bucket::new) };
        let segment = Segment { chunks, room, buckets, len };
        // SAFETY: the segment is first in the block, and the block is ours.
        unsafe { block.cast::<Segment<T, W>>().write(segment) };
        block.cast()
    }
}

#[cfg(test)]
mod tests;
