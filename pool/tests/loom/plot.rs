//! A pool whose slots loom watches.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use nbbs_pool::{ChunkSource, Config, Pool};

use crate::words::Loom;

/// An object; its alignment distinguishes blocks for slots from all others.
#[repr(align(256))]
pub struct Object(pub u64);

/// The most slots of a plot.
const MOST: usize = 16;

std::thread_local! {
    /// The memory of the slots. It is at the same place in every execution, since the place where a chunk is listed
    /// depends on it.
    static MEMORY: NonNull<Object> =
        NonNull::from(Box::leak(Box::<[Object; MOST]>::new_uninit())).cast();
}

/// Places for chunks, with a cell beside each slot that loom watches. Loom fails a race in which two threads touch a
/// slot, or one touches it while its chunk is being taken or given back, and neither happens before the other. A place
/// is taken once. Loom counts the blocks for bookkeeping, too.
pub struct Plot {
    memory: NonNull<Object>,
    cells: Vec<UnsafeCell<()>>,
    chunk_size: usize,
    taken: AtomicUsize,
    given_back: AtomicUsize,
}

// SAFETY: loom fails the test if two threads are in one cell at once; the cells show who owns the memory.
unsafe impl Sync for Plot {}
// SAFETY: as above.
unsafe impl Send for Plot {}

impl Plot {
    pub fn new(chunk_size: usize, places: usize) -> Arc<Self> {
        assert!(chunk_size * places <= MOST);
        Arc::new(Self {
            memory: MEMORY.with(|&memory| memory),
            cells: (0..chunk_size * places).map(|_| UnsafeCell::new(())).collect(),
            chunk_size,
            taken: AtomicUsize::new(0),
            given_back: AtomicUsize::new(0),
        })
    }

    /// Returns the number of places that the pool has.
    pub fn places(&self) -> usize {
        self.taken.load(Ordering::Relaxed) - self.given_back.load(Ordering::Relaxed)
    }

    /// Returns where a slot is, whether or not it has been taken.
    pub fn object(&self, slot: usize) -> NonNull<Object> {
        assert!(slot < self.cells.len());
        // SAFETY: the memory has as many objects as there are cells.
        unsafe { self.memory.add(slot) }
    }

    fn cell(&self, object: *const Object) -> &UnsafeCell<()> {
        &self.cells[(object as usize - self.memory.as_ptr() as usize) / size_of::<Object>()]
    }

    /// Writes to a slot, as its holder does.
    pub fn touch(&self, object: *const Object) {
        self.cell(object).with_mut(|_| ());
    }

    /// Reads a slot, as threads do with which the holder shares it.
    pub fn look(&self, object: *const Object) {
        self.cell(object).with(|_| ());
    }
}

impl Drop for Plot {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.places(), 0, "places that the pool has not given back");
        }
    }
}

pub struct Source(Arc<Plot>);

fn is_slots(layout: Layout) -> bool {
    layout.align() == align_of::<Object>()
}

// SAFETY: a place is taken once, and lasts as long as the plot.
unsafe impl ChunkSource for Source {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        if !is_slots(layout) {
            // SAFETY: the size is not zero, by the trait's contract.
            return NonNull::new(unsafe { loom::alloc::alloc(layout) });
        }
        let Plot { chunk_size, taken, cells, .. } = &*self.0;
        let first = taken.load(Ordering::Relaxed) * chunk_size;
        cells.get(first..first + chunk_size)?.iter().for_each(|cell| cell.with_mut(|_| ()));
        taken.fetch_add(1, Ordering::Relaxed);
        Some(self.0.object(first).cast())
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        if !is_slots(layout) {
            // SAFETY: passed on.
            return unsafe { loom::alloc::dealloc(block.as_ptr(), layout) };
        }
        let objects = block.cast::<Object>();
        for slot in 0..self.0.chunk_size {
            self.0.touch(objects.as_ptr().wrapping_add(slot));
        }
        self.0.given_back.fetch_add(1, Ordering::Relaxed);
    }
}

/// A pool on a plot.
pub struct Watched {
    pub plot: Arc<Plot>,
    pub pool: Pool<Object, Source, Loom>,
}

impl Watched {
    /// Creates a pool with chunks of `chunk_size`: `at_first` of them at first, and at most `most`.
    pub fn new(chunk_size: usize, at_first: usize, most: usize) -> Arc<Self> {
        let plot = Plot::new(chunk_size, most + 3);
        let config = Config::new().chunk_size(chunk_size).limit(most * chunk_size);
        let pool = Pool::with_words(Source(Arc::clone(&plot)), config);
        pool.reserve(at_first * chunk_size).unwrap();
        Arc::new(Self { plot, pool })
    }

    /// Checks a pool that nobody uses: everything is free, and found before the pool grows.
    pub fn check(&self) {
        let (plot, pool) = (&self.plot, &self.pool);
        assert!(pool.is_empty(), "{pool:?}");
        let slots = pool.capacity();
        assert_eq!(slots, plot.places() * plot.chunk_size, "what the pool counts");
        let all: Vec<_> = (0..slots).map(|_| pool.alloc_box(Object(0)).ok().unwrap()).collect();
        all.iter().for_each(|each| plot.touch(&raw const **each));
        assert_eq!(pool.capacity(), slots, "grows while there is room");
        all.into_iter().for_each(drop);
    }
}
