//! Memory for slots that have numbers.

use std::alloc::Layout;
use std::cell::{RefCell, UnsafeCell};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nbbs_pool::{ChunkSource, Global};

/// An object; its alignment distinguishes blocks for slots from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(32))]
pub struct Item(pub [u64; 4]);

/// A number of places for chunks, in a row: a slot's address gives its number. Bookkeeping comes from elsewhere. The
/// bank knows every block that it has lent, and requires it back.
pub struct Bank<T = Item> {
    memory: Box<[UnsafeCell<MaybeUninit<T>>]>,
    chunk_size: usize,
    ledger: Mutex<Ledger>,
}

thread_local! {
    /// The memory of banks that have gone, for the next ones: the place where a chunk is listed depends on its address,
    /// and an explorer's race must do the same each time.
    static KEPT: RefCell<Vec<(Layout, *mut u8)>> = const { RefCell::new(Vec::new()) };
}

/// Returns memory of this many slots, the same as the last bank of this thread and size had.
fn memory<T>(slots: usize) -> Box<[UnsafeCell<MaybeUninit<T>>]> {
    let layout = Layout::array::<T>(slots).unwrap();
    let kept = KEPT.with_borrow_mut(|kept| {
        let at = kept.iter().rposition(|&(other, _)| other == layout)?;
        Some(kept.remove(at).1)
    });
    let Some(kept) = kept else {
        return (0..slots).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
    };
    // SAFETY: it comes from a box with this layout, and was taken from the list; its contents may be any.
    unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(kept.cast(), slots)) }
}

#[derive(Default)]
struct Ledger {
    /// For each place, the slots of the chunk there.
    taken: Vec<usize>,
    /// The places in the order in which they have been taken. The next chunk goes behind the last one, so a chunk that
    /// comes back gets other memory.
    log: Vec<usize>,
    lent: BTreeMap<usize, Layout>,
    /// The number of blocks that may be lost.
    written_off: usize,
}

impl Bank {
    pub fn new(chunk_size: usize, places: usize) -> Self {
        Self::of(chunk_size, places)
    }
}

impl<T> Bank<T> {
    pub fn of(chunk_size: usize, places: usize) -> Self {
        let ledger = Ledger { taken: vec![0; places], ..Ledger::default() };
        Self { memory: memory(chunk_size * places), chunk_size, ledger: Mutex::new(ledger) }
    }

    pub fn slots(&self) -> usize {
        self.memory.len()
    }

    pub fn chunk_size(&self) -> usize {
        self.chunk_size
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns, for each place, the slots of the chunk there, or 0 if there is none.
    pub fn taken(&self) -> Vec<usize> {
        self.ledger().taken.clone()
    }

    /// Returns the places that have been taken since the log had `number` entries.
    pub fn taken_since(&self, number: usize) -> Vec<usize> {
        self.ledger().log[number..].to_vec()
    }

    /// Returns the sizes of the blocks that are lent.
    pub fn lent_sizes(&self) -> BTreeSet<usize> {
        self.ledger().lent.values().map(Layout::size).collect()
    }

    /// Returns the bytes of all blocks that are lent.
    pub fn lent_bytes(&self) -> usize {
        self.ledger().lent.values().map(Layout::size).sum()
    }

    /// Allows for the loss of this many blocks by a thread that dies.
    pub fn write_off(&self, blocks: usize) {
        self.ledger().written_off = blocks;
    }

    fn base(&self) -> usize {
        self.memory.as_ptr() as usize
    }

    /// Returns the number of an object's slot.
    ///
    /// # Panics
    /// If it is not a slot, or the pool has given its chunk back.
    pub fn number(&self, object: *const T) -> u64 {
        let offset = (object as usize).wrapping_sub(self.base());
        assert!(offset.is_multiple_of(size_of::<T>()), "inside a slot");
        let number = offset / size_of::<T>();
        assert!(number < self.slots(), "no slot");
        let in_chunk = self.ledger().taken[number / self.chunk_size];
        assert!(number % self.chunk_size < in_chunk, "slot {number} of a chunk that is not there");
        number as u64
    }

    pub fn object(&self, number: u64) -> NonNull<T> {
        let first = NonNull::from(&*self.memory).cast::<T>();
        // SAFETY: the index is kept below the memory's length.
        unsafe { first.add(usize::try_from(number).unwrap().min(self.slots() - 1)) }
    }

    /// Returns memory for a chunk, in the next free place.
    fn place(&self, ledger: &mut Ledger, layout: Layout) -> Option<NonNull<u8>> {
        let slots = layout.size() / size_of::<T>();
        assert!(slots <= self.chunk_size && layout.size().is_multiple_of(size_of::<T>()));
        let (places, next) = (ledger.taken.len(), ledger.log.last().map_or(0, |last| last + 1));
        let mut from_next = (0..places).map(|n| (next + n) % places);
        let place = from_next.find(|&place| ledger.taken[place] == 0)?;
        ledger.log.push(place);
        ledger.taken[place] = slots;
        Some(NonNull::from(&self.memory[place * self.chunk_size..][..self.chunk_size]).cast())
    }
}

/// Returns whether memory of the layout is for slots of this type, not for bookkeeping.
pub fn is_slots<T>(layout: Layout) -> bool {
    layout.align() == align_of::<T>()
}

// SAFETY: a place is taken by one chunk at a time, and lasts as long as the bank, to which nobody else writes.
unsafe impl<T> ChunkSource for &Bank<T> {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        let mut ledger = self.ledger();
        let block = if is_slots::<T>(layout) {
            self.place(&mut ledger, layout)?
        } else {
            Global.alloc(layout)?
        };
        assert_eq!(ledger.lent.insert(block.as_ptr() as usize, layout), None, "lent twice");
        Some(block)
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        let (mut ledger, address) = (self.ledger(), block.as_ptr() as usize);
        assert_eq!(ledger.lent.remove(&address), Some(layout), "not lent, or another size");
        if is_slots::<T>(layout) {
            let place = (address - self.base()) / (size_of::<T>() * self.chunk_size);
            ledger.taken[place] = 0;
        } else {
            // SAFETY: passed on.
            unsafe { Global.free(block, layout) };
        }
    }
}

// SAFETY: the memory is only reached through blocks.
unsafe impl<T> Sync for Bank<T> {}

impl<T> Drop for Bank<T> {
    fn drop(&mut self) {
        let ledger = self.ledger();
        if !std::thread::panicking() {
            let (lent, written_off) = (ledger.lent.len(), ledger.written_off);
            assert!(lent <= written_off, "{lent} blocks have not come back: {:?}", ledger.lent);
        }
        drop(ledger);
        let (layout, memory) = (Layout::for_value(&*self.memory), std::mem::take(&mut self.memory));
        if layout.size() != 0 {
            KEPT.with_borrow_mut(|kept| kept.push((layout, Box::into_raw(memory).cast())));
        }
    }
}
