//! What each way to hold an object costs, in read-modify-writes: the table of the crate's documentation. What a look-up
//! by address costs, in words and pointers that it reads.

mod support;

use std::alloc::Layout;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use nbbs_pool::{ChunkSource, Config, Global, Handle, Handles, Pool};
use support::steps::Stepped;
use support::words::Over;
use support::{Item, is_slots};
use testkit::counting::{self, count};
use testkit::steered::count_steps;

/// A word whose read-modify-writes the calling thread counts.
type Counted = Over<counting::Counted>;

/// Returns what `act` returns, and how many read-modify-writes it took.
fn counted<R>(act: impl FnOnce() -> R) -> (R, u64) {
    let (result, counts) = count(act);
    (result, counts.swaps)
}

#[test]
fn a_pair_costs_what_the_table_says() {
    let pool = Pool::<u32, Global, Counted>::with_words(Global, Config::new());
    let _another = pool.alloc_box(0).unwrap();
    let (pointer, alloc) = counted(|| pool.alloc(1).unwrap());
    assert_eq!(counted(|| pool.is_valid(pointer)), (true, 0));
    let (freed, free) = counted(|| pool.free(pointer));
    assert_eq!((freed, alloc, free), (Ok(()), 2, 2));
    let (owned, alloc) = counted(|| pool.alloc_box(1).unwrap());
    let ((), free) = counted(|| drop(owned));
    assert_eq!((alloc, free), (1, 1));
}

#[test]
fn a_local_costs_one_for_a_word_of_objects() {
    let pool = Pool::<u32, Global, Counted>::with_words(Global, Config::new());
    pool.reserve(1).unwrap();
    let mut local = pool.local();
    let ((), fresh) = counted(|| {
        let all: Vec<_> = (0..64).map(|number| local.alloc(number).unwrap()).collect();
        all.into_iter().for_each(|each| local.free(each));
    });
    // The word's hint says that it has no room any more.
    assert_eq!(fresh, 2);
    let ((), kept) = counted(|| {
        let all: Vec<_> = (0..64).map(|number| local.alloc(number).unwrap()).collect();
        all.into_iter().for_each(|each| local.free(each));
    });
    assert_eq!(kept, 0);
}

#[test]
fn a_handle_costs_one_to_insert_and_two_to_get_or_remove() {
    let handles = Handles::<u32, Handle, Global, Counted>::with_source(Global, Config::new());
    handles.insert(0).unwrap();
    let (handle, insert) = counted(|| handles.insert(1).unwrap());
    let ((), get) = counted(|| drop(handles.get(handle).unwrap()));
    let (removed, remove) = counted(|| handles.remove(handle));
    assert_eq!((removed, insert, get, remove), (Ok(()), 1, 2, 2));
}

/// Memory for chunks of one object, at ever higher addresses with gaps of any length, as in a program that allocates
/// other things in between.
struct Irregular {
    memory: Box<[UnsafeCell<MaybeUninit<Item>>]>,
    next: Cell<usize>,
    /// Places that no chunk has.
    gaps: RefCell<Vec<NonNull<Item>>>,
    random: RefCell<fastrand::Rng>,
}

impl Irregular {
    fn new(chunks: usize) -> Self {
        Self {
            memory: (0..4 * chunks).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
            next: Cell::new(0),
            gaps: RefCell::default(),
            random: RefCell::new(fastrand::Rng::with_seed(7)),
        }
    }
}

// SAFETY: a place is taken once, and lasts as long as the memory, to which nobody else writes.
unsafe impl ChunkSource for &Irregular {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        if !is_slots::<Item>(layout) {
            return Global.alloc(layout);
        }
        assert_eq!(layout, Layout::new::<Item>());
        let gap = self.random.borrow_mut().usize(0..4);
        let first = self.next.replace(self.next.get() + gap + 1);
        let place = |at: usize| NonNull::from(&self.memory[at]).cast();
        self.gaps.borrow_mut().extend((first..first + gap).map(place));
        Some(place(first + gap).cast())
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        if !is_slots::<Item>(layout) {
            // SAFETY: passed on.
            unsafe { Global.free(block, layout) };
        }
    }
}

type IrregularPool<'m> = Pool<Item, &'m Irregular, Stepped>;

/// Returns the mean and the highest of what `is_valid` reads, which answers `expected` for all of these.
fn reads(pool: &IrregularPool<'_>, all: &[NonNull<Item>], expected: bool) -> (u64, u64) {
    let read = |&object| {
        let (valid, read) = count_steps(5000, || pool.is_valid(object)).unwrap();
        assert_eq!(valid, expected);
        read
    };
    let (sum, most) = all.iter().map(read).fold((0, 0), |(sum, most), n| (sum + n, n.max(most)));
    (sum / all.len() as u64, most)
}

/// Half of the chunks are in the first segment that is asked, in which a look-up reads 8 words of two buckets. Foreign
/// addresses take that for each of nine segments, and no chunk is looked at.
#[test]
fn a_look_up_reads_few_words_wherever_chunks_are() {
    let memory = Irregular::new(4000);
    let pool = IrregularPool::with_words(&memory, Config::new().chunk_size(1));
    let all: Vec<_> = (0..4000).map(|_| pool.alloc(Item([0; 4])).unwrap()).collect();
    let (mean, most) = reads(&pool, &all, true);
    println!("found: {mean} on average, {most} at most");
    assert!(mean <= 45 && most <= 9 * 20 + 200, "found: {mean} on average, {most} at most");
    let (mean, most) = reads(&pool, &memory.gaps.borrow(), false);
    println!("foreign: {mean} on average, {most} at most");
    assert!(mean <= 9 * 22 && most <= 9 * 20 + 200, "foreign: {mean} on average, {most} at most");
    all.into_iter().for_each(|object| pool.free(object).unwrap());
}

/// What chunks that have gone left behind does not pile up.
#[test]
fn a_look_up_reads_few_words_however_often_chunks_have_gone() {
    const CHUNKS: usize = 8 + 16 + 32 + 64 + 128;
    const ROUNDS: usize = 40;
    let memory = Irregular::new(ROUNDS * CHUNKS);
    let pool = IrregularPool::with_words(&memory, Config::new().chunk_size(1).limit(CHUNKS));
    for _ in 0..ROUNDS {
        count_steps(1_000_000, || pool.reserve(CHUNKS)).unwrap().0.unwrap();
        let (mean, most) = reads(&pool, &memory.gaps.borrow(), false);
        assert!(mean <= 5 * 26 && most <= 5 * 20 + 200, "{mean} on average, {most} at most");
        assert_eq!(pool.shrink(), CHUNKS);
    }
}
