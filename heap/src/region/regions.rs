//! The regions of a heap: its own memory, and what was added while it runs.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use crate::class::{CLASSES, Class};
use crate::error::{AddError, PageError};
use crate::region::{Discarded, LEAST_BYTES, MOST_PAGE, Region};
use crate::words::{HeapCount, HeapState};

/// The most regions that a heap can have, its own memory included.
pub const MOST_REGIONS: usize = 8;

/// A region that is written once, and only read after that.
#[derive(Debug)]
struct Place {
    state: HeapState,
    region: UnsafeCell<MaybeUninit<Region<'static>>>,
}

const EMPTY: u8 = 0;
const BUSY: u8 = 1;
const READY: u8 = 2;

// SAFETY: only the caller that turned `state` from EMPTY to BUSY writes `region`, and only callers that found it READY
// read it.
unsafe impl Sync for Place {}

impl Place {
    const fn new() -> Self {
        Self { state: HeapState::new(EMPTY), region: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    #[inline]
    fn get(&self) -> Option<&Region<'static>> {
        // Acquire: pairs with the Release in `set`.
        let ready = self.state.load(Ordering::Acquire) == READY;
        ready.then(|| {
            // SAFETY: it is never written again.
            let region = unsafe { &*self.region.get() };
            // SAFETY: it was written before the state said READY.
            unsafe { region.assume_init_ref() }
        })
    }

    /// Makes the place the caller's, which alone may write to it, unless it is taken. Returns whether it was free.
    fn claim(&self) -> bool {
        // Relaxed: nothing is read here but by who finds it READY.
        self.state.compare_exchange(EMPTY, BUSY, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Writes the region.
    ///
    /// # Safety
    /// The caller has [claimed](Self::claim) the place, and does this once.
    unsafe fn set(&self, region: Region<'static>) {
        // SAFETY: only one caller turns EMPTY into BUSY, and nobody reads before READY.
        unsafe { (*self.region.get()).write(region) };
        // Release: pairs with the Acquire in `get`.
        self.state.store(READY, Ordering::Release);
    }
}

/// What memory contains that is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Any,
    Zero,
}

/// The regions of a heap, the first of which is its own memory.
#[derive(Debug)]
pub struct Regions {
    places: [Place; MOST_REGIONS],
    /// The number of frees that were refused.
    refused: HeapCount,
    /// The number of slots that were written to while they were free.
    damaged: HeapCount,
    /// How often an allocation found no memory, and asked caches to give back what they keep.
    asked: HeapCount,
    /// The region from which the next part goes back: 0 where none has gone.
    turn: HeapCount,
    /// How many runs caches have made to serve as slots of each class: see [`Memory::runs`].
    runs: [HeapCount; CLASSES],
}

impl Regions {
    pub const fn new() -> Self {
        let places = [const { Place::new() }; MOST_REGIONS];
        let [refused, damaged, asked, turn] = [const { HeapCount::new(0) }; 4];
        let runs = [const { HeapCount::new(0) }; CLASSES];
        Self { places, refused, damaged, asked, turn, runs }
    }
}

/// All memory of a heap, as every thread sees it.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    regions: &'a Regions,
    own: Option<(NonNull<u8>, usize)>,
    /// Whether regions count what is idle.
    counts: bool,
}

// SAFETY: a `Memory` is a reference to what threads share, and the address of the heap's own memory, which is only
// reached through a `Region`.
unsafe impl Send for Memory<'_> {}

impl<'a> Memory<'a> {
    /// Creates the memory of a heap with `bytes` bytes of its own at `start`, if they are enough for a region.
    ///
    /// # Safety
    /// That of [`Region::new`], for as long as the heap is used.
    pub const unsafe fn new(regions: &'a Regions, start: NonNull<u8>, bytes: usize) -> Self {
        let own = if bytes < LEAST_BYTES { None } else { Some((start, bytes)) };
        Self { regions, own, counts: false }
    }

    /// Returns the same memory, which counts what is [idle](Self::idle) or does not: always as the first time.
    pub const fn counting(self, counts: bool) -> Self {
        Self { counts, ..self }
    }

    /// Returns what `of` returns for the first region for which it returns something.
    #[inline]
    pub fn find<R>(&self, mut of: impl FnMut(&Region<'static>) -> Option<R>) -> Option<R> {
        if let Some(found) = self.with_own(&mut of) {
            return Some(found);
        }
        // A place that is being written to is skipped.
        self.added().iter().filter_map(Place::get).find_map(of)
    }

    /// Calls `visit` with each region.
    pub fn each(&self, mut visit: impl FnMut(&Region<'static>)) {
        self.find(|region| -> Option<()> {
            visit(region);
            None
        });
    }

    /// Returns what `of` returns for the region in whose units an address lies.
    #[inline]
    pub fn at<R>(&self, at: NonNull<u8>, mut of: impl FnMut(&Region<'static>) -> R) -> Option<R> {
        self.find(|region| region.contains(at).then(|| of(region)))
    }

    /// Returns the places for added memory: all but that of the heap's own memory, if it has some.
    #[inline]
    fn added(&self) -> &'a [Place] {
        &self.regions.places[usize::from(self.own.is_some())..]
    }

    /// Returns what `of` returns for the region that is the heap's own memory.
    #[inline]
    fn with_own<R>(&self, of: impl FnOnce(&Region<'static>) -> Option<R>) -> Option<R> {
        let (start, bytes) = self.own?;
        let place = &self.regions.places[0];
        if let Some(region) = place.get() {
            return of(region);
        }
        // SAFETY: as was promised to `Memory::new`. Every caller makes the same region, so nobody waits for the one
        // that records it.
        let region = unsafe { Region::new(start, bytes, self.counts) }?;
        if place.claim() {
            // SAFETY: just claimed.
            unsafe { place.set(region) };
        }
        of(&region)
    }

    /// Calls `discard` for whole pages of free memory, of all regions or only of the heap's own memory: see
    /// [`Region::discard`]. Refuses pages whose size is no power of two, or more than [`MOST_PAGE`].
    ///
    /// # Safety
    /// That of [`Region::discard`].
    pub unsafe fn discard(
        &self,
        all: bool,
        page: usize,
        lane: usize,
        mut discard: impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> Result<usize, PageError> {
        check_page(page)?;
        let mut of = |region: &Region<'static>| {
            // SAFETY: as the caller promises.
            unsafe { region.discard(page, lane, &mut discard) }
        };
        if !all {
            return Ok(self.with_own(|region| Some(of(region))).unwrap_or(0));
        }
        let mut bytes = 0;
        self.each(|region| bytes += of(region));
        Ok(bytes)
    }

    /// Does a part of what [`discard`](Self::discard) does, of a region in which much is [idle](Self::idle): see
    /// [`Region::discard_next`]. One such region follows the other, each once in a turn, so that none keeps the others
    /// from theirs. Nothing if there is none; then it was the last part.
    ///
    /// # Safety
    /// That of [`Region::discard`].
    pub unsafe fn discard_next(
        &self,
        most: usize,
        page: usize,
        lane: usize,
        mut discard: impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> Result<Discarded, PageError> {
        check_page(page)?;
        // Relaxed, here and below: a hint.
        let (first, mut refused) = (self.regions.turn.load(Ordering::Relaxed), 0);
        let part = self.first_idle(first, |region| {
            if !region.goes_back() {
                self.ask();
            }
            // SAFETY: as the caller promises.
            unsafe { region.discard_next(most, page, lane, &mut refused, &mut discard) }
        });
        self.refuse_all(refused);
        let (done, behind) = part.unwrap_or((Discarded { bytes: 0, is_last: true }, MOST_REGIONS));
        if !done.is_last {
            return Ok(done);
        }
        let is_more = self.first_idle(behind, |_| ()).is_some();
        self.regions.turn.store(if is_more { behind } else { 0 }, Ordering::Relaxed);
        Ok(Discarded { is_last: !is_more, ..done })
    }

    /// Returns what `of` returns for the first region, from number `first` on, in which much is idle, and the number
    /// behind that region's.
    fn first_idle<R>(
        &self,
        first: usize,
        mut of: impl FnMut(&Region<'static>) -> R,
    ) -> Option<(R, usize)> {
        let mut number = 0;
        self.find(|region| {
            number += 1;
            (number > first && region.is_idle()).then(|| (of(region), number))
        })
    }

    /// Adds memory. Writes to it only if it is added.
    ///
    /// # Safety
    /// The memory belongs to the heap for as long as the heap is used, and contains what `content` says.
    pub unsafe fn add(
        &self,
        start: NonNull<u8>,
        bytes: usize,
        content: Content,
    ) -> Result<(), AddError> {
        let address = start.addr().get();
        let end = address.saturating_add(bytes);
        let overlapped = self.find(|region| {
            let memory = region.memory();
            (memory.start < end && address < memory.end).then_some(memory)
        });
        if let Some(Range { start: begins, end: ends }) = overlapped {
            return Err(AddError::Overlaps { address, begins, ends });
        }
        let (start, bytes) = Region::place_in(start, bytes)?;
        let full = AddError::TooMany { most: MOST_REGIONS };
        let place = self.added().iter().find(|place| place.claim()).ok_or(full)?;
        // There is one, as the bytes suffice for it.
        let region = match content {
            // SAFETY: as the caller promises.
            Content::Any => unsafe { Region::new_cleared(start, bytes, self.counts) },
            // SAFETY: as the caller promises, also that it is zero.
            Content::Zero => unsafe { Region::new(start, bytes, self.counts) },
        };
        if let Some(region) = region {
            // SAFETY: just claimed.
            unsafe { place.set(region) };
        }
        Ok(())
    }

    /// Returns how many regions there are.
    pub fn regions(&self) -> usize {
        let mut count = 0;
        self.each(|_| count += 1);
        count
    }

    /// Counts a free that was refused.
    #[cold]
    pub fn refuse(&self) {
        self.refuse_all(1);
    }

    /// Counts so many of them, if any.
    pub fn refuse_all(&self, frees: u32) {
        if frees > 0 {
            // Relaxed, here and below: a count.
            self.regions.refused.fetch_add(frees as usize, Ordering::Relaxed);
        }
    }

    /// Returns how many frees were refused.
    pub fn refused(&self) -> usize {
        self.regions.refused.load(Ordering::Relaxed)
    }

    /// Counts a slot that was written to while it was free.
    #[cold]
    pub fn damage(&self) {
        self.regions.damaged.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many such slots were found.
    pub fn damaged(&self) -> usize {
        self.regions.damaged.load(Ordering::Relaxed)
    }

    /// Returns how many runs caches have made to serve as slots of this class, as far as they were counted: to what a
    /// slab has at most.
    pub fn runs(&self, class: Class) -> usize {
        // Relaxed: a hint, and only the number matters.
        self.regions.runs[class.number()].load(Ordering::Relaxed)
    }

    /// Counts one of them.
    pub fn count_run(&self, class: Class) {
        if self.runs(class) < u64::BITS as usize {
            // Relaxed: as above.
            self.regions.runs[class.number()].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how often caches were asked to give back what they keep.
    #[inline]
    pub fn asked(&self) -> usize {
        // Relaxed: a cache that misses a request heeds it the next time.
        self.regions.asked.load(Ordering::Relaxed)
    }

    /// Returns whole slabs to the buddy allocator, if they may have much memory, before more is taken from it. Where there
    /// were some, caches may have slots of others, and are asked for them; not otherwise, as what they give back makes
    /// slabs whole, and the next look due.
    ///
    /// Cost: three loads for each region, if not.
    pub fn swept(&self, lane: usize) -> &Self {
        let (mut refused, mut any) = (0, false);
        self.each(|region| any |= region.sweep(lane, &mut refused));
        self.refuse_all(refused);
        if any {
            self.ask();
        }
        self
    }

    /// Asks all caches to give back what they keep.
    fn ask(&self) {
        // Relaxed: as in `asked`.
        self.regions.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many bytes are idle and how many were touched, of all regions, if so much is idle in one of them that
    /// it should go back.
    ///
    /// Cost: four loads for each region, if not; none if regions do not count it.
    #[inline]
    pub fn idle(&self) -> Option<(u64, u64)> {
        if !self.counts {
            return None;
        }
        self.find(|region| region.is_idle().then_some(()))?;
        let mut sum = (0, 0);
        self.each(|region| {
            let (idle, touched) = region.idle();
            sum = (sum.0 + idle, sum.1 + touched);
        });
        Some(sum)
    }

    /// Asks all caches to give back what they keep, and returns the memory of slabs of which all slots are free.
    /// Returns how many bytes these were.
    pub fn trim(&self, lane: usize) -> usize {
        self.ask();
        let (mut bytes, mut refused) = (0, 0);
        self.each(|region| bytes += region.trim(lane, &mut refused));
        self.refuse_all(refused);
        bytes
    }
}

/// Refuses pages whose size is no power of two, or more than [`MOST_PAGE`].
fn check_page(page: usize) -> Result<(), PageError> {
    if page.is_power_of_two() && page <= MOST_PAGE { Ok(()) } else { Err(PageError { page }) }
}
