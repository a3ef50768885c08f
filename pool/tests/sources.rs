//! Tests what every source of memory owes the pool: blocks of the right size and alignment, none inside another, and
//! all of the memory again when they have been given back.
#![cfg(feature = "nbbs")]

use std::alloc::{Layout, System};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use nbbs::{Buddy, Metadata, metadata_words};
use nbbs_pool::{ChunkSource, Config, FromHeap, Global, Pages, Pool, Region};

/// Takes and gives blocks of many layouts at random, each filled with a byte of its own. Returns how often there was
/// no memory.
fn use_it(
    source: &impl ChunkSource,
    seed: u64,
    mut watch: impl FnMut(&BTreeMap<usize, Block>),
) -> u32 {
    let (mut random, mut blocks, mut refused) =
        (fastrand::Rng::with_seed(seed), BTreeMap::new(), 0);
    for round in 0..if cfg!(miri) { 40 } else { 400_u64 } {
        if random.u8(0..5) < 3 {
            let most = 1 << random.u32(1..12);
            let size = random.usize(1..=most);
            let layout = Layout::from_size_align(size, 1 << random.u32(0..13)).unwrap();
            match source.alloc(layout) {
                Some(start) => take(&mut blocks, Block { start, layout, fill: round as u8 }),
                None => refused += 1,
            }
        } else if !blocks.is_empty() {
            let at = *blocks.keys().nth(random.usize(..blocks.len())).unwrap();
            give(source, blocks.remove(&at).unwrap());
        }
        watch(&blocks);
    }
    // The last one first, as a region wants it.
    while let Some((_, block)) = blocks.pop_last() {
        give(source, block);
        watch(&blocks);
    }
    refused
}

#[derive(Clone, Copy)]
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    fill: u8,
}

fn take(blocks: &mut BTreeMap<usize, Block>, block: Block) {
    let (address, size) = (block.start.as_ptr() as usize, block.layout.size());
    assert!(address.is_multiple_of(block.layout.align()));
    let before = blocks.range(..address + size).next_back();
    assert!(
        before.is_none_or(|(&at, other)| at + other.layout.size() <= address),
        "two blocks overlap"
    );
    // SAFETY: this many bytes are ours.
    unsafe { block.start.write_bytes(block.fill, size) };
    blocks.insert(address, block);
}

fn give(source: &impl ChunkSource, block: Block) {
    // SAFETY: the block is ours, and was filled.
    let bytes = unsafe { NonNull::slice_from_raw_parts(block.start, block.layout.size()).as_ref() };
    assert!(bytes.iter().all(|&byte| byte == block.fill), "somebody else wrote here");
    // SAFETY: it came from this source with this layout, and is given back once.
    unsafe { source.free(block.start, block.layout) };
}

/// Pages of any size, wherever they start. A block takes the fewest possible pages.
#[test]
fn pages() {
    const UNITS: usize = 256;
    for (case, (unit, shift)) in
        [16, 4096, 64, 4096, 48, 100].into_iter().zip([0, 0, 16, 1, 0, 40]).enumerate()
    {
        let mut memory = vec![0_u8; (UNITS + 1) * unit + 4096];
        let shift = memory.as_ptr().align_offset(4096) + shift;
        let start = NonNull::new(memory.as_mut_ptr()).unwrap();
        let metadata = Metadata::<{ metadata_words(UNITS as u64) }>::new();
        let buddy = Buddy::new(metadata.words(), UNITS as u64).unwrap();
        // SAFETY: so many units lie inside the memory, which nobody else touches.
        let pages = unsafe { Pages::new(buddy, start.add(shift), unit) };
        let begin = start.as_ptr() as usize + shift;
        let refused = use_it(&pages, case as u64, |blocks| {
            let ends = blocks.iter().map(|(at, block)| at + block.layout.size());
            assert!(blocks.keys().all(|&at| at >= begin));
            assert!(ends.max().is_none_or(|end| end <= begin + UNITS * unit));
            let units = blocks.values().map(|block| fewest(block.layout, begin, unit));
            assert_eq!(buddy.stats().used_units, units.sum::<usize>() as u64);
        });
        assert!(refused > 0 || unit == 4096, "of so little memory some is missing sometimes");
        assert_eq!(buddy.stats().used_units, 0);
    }
}

/// Returns the units of a block: a power of two, with room for what the alignment may skip.
fn fewest(layout: Layout, begin: usize, unit: usize) -> usize {
    let (size, align) = (layout.size(), layout.align());
    let in_step = unit.is_multiple_of(align) || unit.is_power_of_two();
    let units = if in_step && begin.is_multiple_of(align) {
        size.div_ceil(unit).max(align / unit)
    } else {
        (size + align - 1).div_ceil(unit)
    };
    units.next_power_of_two()
}

#[test]
fn heaps() {
    for seed in 0..3 {
        assert_eq!(use_it(&Global, seed, |_| ()), 0);
        assert_eq!(use_it(&FromHeap(&System), seed, |_| ()), 0);
        assert_eq!(use_it(&&FromHeap(&System).clone(), seed, |_| ()), 0);
    }
}

/// A region gives out every byte, and takes back what it cut off last.
#[test]
fn a_region() {
    static MEMORY: Region<20_000> = Region::new();
    let all = Layout::from_size_align(20_000, 64).unwrap();
    let more = Layout::from_size_align(20_001, 1).unwrap();
    for _ in 0..3 {
        let block = (&MEMORY).alloc(all).expect("all of it");
        assert!((&MEMORY).alloc(Layout::new::<u8>()).is_none());
        // SAFETY: it came from the region with this layout, and is given back once.
        unsafe { (&MEMORY).free(block, all) };
        assert!((&MEMORY).alloc(more).is_none());
        let taken = (&MEMORY).alloc(Layout::new::<[u8; 100]>()).unwrap();
        let next = (&MEMORY).alloc(Layout::new::<u8>()).unwrap();
        assert_eq!(next.as_ptr() as usize - taken.as_ptr() as usize, 100);
        // SAFETY: they came from the region with these layouts, and are given back once, the last one first.
        unsafe {
            (&MEMORY).free(next, Layout::new::<u8>());
            (&MEMORY).free(taken, Layout::new::<[u8; 100]>());
        }
        assert_eq!(format!("{MEMORY:?}"), "Region { bytes: 20000, cut: 0 }");
    }
    let refused = use_it(&&MEMORY, 1, |_| ());
    assert!(refused > 0, "what is not the last block does not come back");
}

/// A pool works on each source.
#[test]
fn pools() {
    fn check<S: ChunkSource>(source: S) {
        let pool = Pool::<[u64; 5], _>::with_source(source, Config::new().chunk_size(10).limit(30));
        let all: Vec<_> = (0..30).map(|n| pool.alloc_box([n; 5]).unwrap()).collect();
        assert!(all.iter().enumerate().all(|(n, each)| **each == [n as u64; 5]));
        drop(all);
        assert_eq!(pool.shrink(), 30);
    }
    static MEMORY: Region<8192> = Region::new();
    check(Global);
    check(FromHeap(&System));
    check(&MEMORY);
}

/// While it takes a chunk back, it calls the pool.
struct Busy(OnceLock<Box<dyn Fn() + Send + Sync>>);

// SAFETY: it passes everything on.
unsafe impl ChunkSource for Busy {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        Global.alloc(layout)
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        if let Some(meanwhile) = self.0.get() {
            meanwhile();
        }
        // SAFETY: as the caller promises.
        unsafe { Global.free(block, layout) };
    }
}

/// A pool at its limit gets other memory for a chunk while a source takes its time to take the former back.
#[test]
fn a_chunk_that_goes_back_is_in_nobodys_way() {
    let config = Config::new().chunk_size(64).limit(64);
    let pool: &Pool<u64, Busy> =
        Box::leak(Box::new(Pool::with_source(Busy(OnceLock::new()), config)));
    pool.reserve(64).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let meanwhile = move || {
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            assert_eq!(pool.reserve(64), Ok(()));
            assert!(pool.alloc(7).is_ok());
        }
    };
    pool.source().0.set(Box::new(meanwhile)).ok().unwrap();
    assert_eq!(pool.shrink(), 64);
    assert_eq!((calls.load(Ordering::Relaxed), pool.len(), pool.capacity()), (1, 1, 64));
}

/// A thread that gets bytes writes after the thread that gave them back: otherwise Miri finds a race, under any
/// schedule.
#[test]
fn bytes_pass_from_thread_to_thread() {
    static MEMORY: Region<64> = Region::new();
    let layout = Layout::new::<[u64; 8]>();
    let block = (&MEMORY).alloc(layout).unwrap();
    let taker = std::thread::spawn(move || {
        let block = loop {
            match (&MEMORY).alloc(layout) {
                Some(block) => break block,
                None => std::thread::yield_now(),
            }
        };
        // SAFETY: so many bytes are ours, and they are given back once.
        unsafe {
            block.write_bytes(2, layout.size());
            (&MEMORY).free(block, layout);
        }
    });
    // SAFETY: as above. The taker gets these bytes, as there are no others.
    unsafe {
        block.write_bytes(1, layout.size());
        (&MEMORY).free(block, layout);
    }
    taker.join().unwrap();
}

/// A source tells nothing apart by whether the pool owns it.
#[test]
fn sources_by_reference_are_told_what_retires() {
    #[derive(Default)]
    struct Counted {
        retired: AtomicUsize,
        freed: AtomicUsize,
    }

    // SAFETY: the blocks are those of `Global`.
    unsafe impl ChunkSource for Counted {
        fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
            Global.alloc(layout)
        }

        fn retire(&self, _: Layout) {
            self.retired.fetch_add(1, Ordering::Relaxed);
        }

        unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
            self.freed.fetch_add(1, Ordering::Relaxed);
            // SAFETY: passed on from the caller.
            unsafe { Global.free(block, layout) };
        }
    }

    let source = Counted::default();
    let pool = Pool::<u32, _>::with_source(&source, Config::new().chunk_size(64));
    pool.reserve(128).unwrap();
    assert_eq!(pool.shrink(), 128);
    assert_eq!([&source.retired, &source.freed].map(|count| count.load(Ordering::Relaxed)), [2, 2]);
}
