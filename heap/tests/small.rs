//! Tests of what a small heap says of itself, alone and beside threads that change it.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nbbs_heap::{FreeError, Small, SmallStats};

const BYTES: usize = if cfg!(miri) { 4 << 10 } else { 64 << 10 };

/// Blocks by address, with their bytes.
type Blocks = BTreeMap<usize, usize>;

/// What a thread holds.
type Held = BTreeMap<NonNull<u8>, Layout>;

fn layout(rng: &mut fastrand::Rng) -> Layout {
    let most = if rng.u8(..8) == 0 { BYTES / 8 } else { 100 };
    Layout::from_size_align(rng.usize(..most), 1 << rng.u32(..8)).unwrap()
}

/// Returns what a walk shows, which lies in the heap, in order, and in units.
fn shown<const UNIT: usize>(heap: &Small<BYTES, UNIT>) -> Blocks {
    let (mut shown, mut end) = (Blocks::new(), 0);
    heap.walk(|live| {
        let at = live.at.addr().get();
        assert!(at >= end, "{live:?}: behind {end:#x}");
        assert!(live.size > 0 && live.size.is_multiple_of(UNIT), "{live:?}");
        end = at + live.size;
        let last = live.at.as_ptr().wrapping_add(live.size - 1);
        assert!(heap.contains(live.at.as_ptr()) && heap.contains(last), "{live:?}");
        shown.insert(at, live.size);
    });
    shown
}

/// Checks what holds at any time.
fn is_possible<const UNIT: usize>(stats: SmallStats, bytes: usize) {
    assert_eq!(stats.bytes, bytes);
    assert!(stats.largest_free <= stats.free, "{stats:?}");
    assert!(stats.free + stats.blocks * UNIT <= bytes, "{stats:?}");
}

/// Allocates and frees at random. Returns what is held in the end.
fn run<const UNIT: usize>(
    heap: &Small<BYTES, UNIT>,
    seed: u64,
    mut goes_on: impl FnMut() -> bool,
) -> Held {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut held = Held::new();
    while goes_on() {
        let of = layout(&mut rng);
        held.extend(heap.alloc(of).map(|at| (at, of)));
        if rng.bool() || held.len() > 50 {
            let (at, of) = held.pop_first().unwrap();
            let size = layout(&mut rng).size();
            // SAFETY: ours; what is resized is freed.
            unsafe {
                match heap.resize(at, of, size) {
                    Some(at) => heap.free(at, Layout::from_size_align(size, of.align()).unwrap()),
                    None => heap.free(at, of),
                };
            }
        }
    }
    held
}

fn bytes_of<const UNIT: usize>(held: &Held) -> Blocks {
    held.iter().map(|(at, of)| (at.addr().get(), of.size().div_ceil(UNIT).max(1) * UNIT)).collect()
}

/// Alone: exactly what is held is shown, and the sums add up.
fn all_that_is_held<const UNIT: usize>(heap: &Small<BYTES, UNIT>) {
    for seed in 0..if cfg!(miri) { 2 } else { 100 } {
        let mut steps = 0..if cfg!(miri) { 20 } else { 200 };
        let held = run(heap, seed, || steps.next().is_some());
        let shown = shown(heap);
        assert_eq!(shown, bytes_of::<UNIT>(&held), "seed {seed}");
        let stats = heap.stats();
        assert_eq!((stats.bytes, stats.free), (heap.bytes(), heap.count_free_bytes()));
        assert_eq!(stats.bytes, stats.free + shown.values().sum::<usize>(), "seed {seed}");
        assert_eq!(stats.blocks, held.len(), "seed {seed}");
        let fits = |size| heap.alloc(Layout::from_size_align(size, 1).unwrap());
        assert_eq!(fits(stats.largest_free + 1), None, "seed {seed}: {stats:?}");
        if stats.largest_free > 0 {
            let largest = fits(stats.largest_free).expect("the largest piece can be had");
            let of = Layout::from_size_align(stats.largest_free, 1).unwrap();
            // SAFETY: ours.
            assert!(unsafe { heap.free(largest, of) });
        }
        // SAFETY: ours.
        held.into_iter().for_each(|(at, of)| assert!(unsafe { heap.free(at, of) }));
    }
    assert_eq!((heap.stats().blocks, heap.stats().largest_free), (0, heap.stats().bytes));
}

#[test]
fn a_walk_shows_what_is_held() {
    static FINE: Small<BYTES, 16> = Small::new();
    static COARSE: Small<BYTES, 64> = Small::new();
    all_that_is_held(&FINE);
    all_that_is_held(&COARSE);
}

/// Only what begins at an address is freed there, and wrong frees say what is there instead.
#[test]
fn wrong_frees_by_address() {
    static HEAP: Small<BYTES> = Small::new();
    let [block, second] =
        [1000, 100].map(|size| HEAP.alloc(Layout::from_size_align(size, 1).unwrap()).unwrap());
    let before = HEAP.stats();
    let frees = |address: usize| {
        let at = block.map_addr(|_| address.try_into().unwrap());
        let usable = HEAP.usable(at);
        // SAFETY: the blocks are ours, and nothing else can be freed.
        let freed = unsafe { HEAP.free_at(at) };
        assert_eq!(usable, freed, "{address:#x}");
        freed
    };
    let (begins, second) = (block.addr().get(), second.addr().get());
    for address in [begins + 1, begins + 31] {
        assert_eq!(frees(address), Err(FreeError::Inside { address, begins }));
    }
    for address in [begins + 32, begins + 33, second - 32] {
        assert_eq!(frees(address), Err(FreeError::InsideRun { address }));
    }
    for address in [second + 128, second + 130] {
        assert_eq!(frees(address), Err(FreeError::NotAllocated { address }));
    }
    let end = begins + before.bytes;
    assert_eq!(frees(end - 1), Err(FreeError::NotAllocated { address: end - 1 }));
    for address in [begins - 1, end, 1, usize::MAX] {
        assert_eq!(frees(address), Err(FreeError::Foreign { address, regions: 1 }));
    }
    assert_eq!(HEAP.stats(), before);
    for (address, bytes) in [(begins, 1024), (second, 128)] {
        assert_eq!(frees(address), Ok(bytes));
        assert_eq!(frees(address), Err(FreeError::NotAllocated { address }));
    }
    assert_eq!(HEAP.stats().free, before.bytes);
}

/// By their addresses blocks get shorter in place, longer where there is room behind them, and else move; wrong
/// addresses are refused, and nothing has changed.
fn resized_by_address<const UNIT: usize>(heap: &Small<BYTES, UNIT>) {
    let write = |at: NonNull<u8>, from: usize, to: usize| {
        // SAFETY: ours, as long as that.
        (from..to).for_each(|byte| unsafe { at.add(byte).write(byte as u8) });
    };
    let is_kept = |at: NonNull<u8>, bytes: usize| {
        // SAFETY: as above.
        (0..bytes).all(|byte| unsafe { at.add(byte).read() } == byte as u8)
    };
    // SAFETY: all blocks are this function's.
    let resize = |at, size| unsafe { heap.resize_at(at, size) };
    // More units than a word has, and a neighbour behind them.
    let sizes = [UNIT * 70, UNIT];
    let [block, behind] =
        sizes.map(|size| heap.alloc(Layout::from_size_align(size, 1).unwrap()).unwrap());
    write(block, 0, UNIT * 70);
    for size in [UNIT * 70, UNIT * 69 + 1, UNIT * 40, UNIT * 70, UNIT * 3, 0, UNIT] {
        assert_eq!(resize(block, size), Ok(Some(block)), "{size}");
        assert_eq!(heap.usable(block), Ok(size.div_ceil(UNIT).max(1) * UNIT));
    }
    assert!(is_kept(block, UNIT));
    assert_eq!(resize(block, UNIT * 70), Ok(Some(block)));
    write(block, 0, UNIT * 70);
    let before = heap.stats();
    for size in [heap.bytes() + 1, isize::MAX as usize, usize::MAX] {
        assert_eq!(resize(block, size), Ok(None), "{size}");
    }
    for wrong in [
        block.as_ptr().wrapping_add(1),
        block.as_ptr().wrapping_add(UNIT * 65),
        block.as_ptr().wrapping_sub(1),
    ] {
        let wrong = NonNull::new(wrong).unwrap();
        assert_eq!(resize(wrong, UNIT), Err(heap.usable(wrong).unwrap_err()));
    }
    assert_eq!(heap.stats(), before);
    let moved = resize(block, UNIT * 70 + 1).unwrap().unwrap();
    assert!(moved != block && is_kept(moved, UNIT * 70));
    let address = block.addr().get();
    assert_eq!(resize(block, 1), Err(FreeError::NotAllocated { address }));
    assert_eq!(heap.usable(moved), Ok(UNIT * 71));
    for held in [moved, behind] {
        // SAFETY: ours.
        unsafe { heap.free_at(held) }.unwrap();
    }
    assert_eq!(heap.stats().blocks, 0);
}

#[test]
fn blocks_are_resized_by_address() {
    static FINE: Small<BYTES, 16> = Small::new();
    static COARSE: Small<BYTES, 64> = Small::new();
    resized_by_address(&FINE);
    if !cfg!(miri) {
        resized_by_address(&COARSE);
    }
}

/// What a walk shows may be freed, and others allocated, by what it is shown to.
#[test]
fn what_is_shown_can_be_freed() {
    static HEAP: Small<BYTES> = Small::new();
    let mut steps = 0..50;
    let held = run(&HEAP, 1, || steps.next().is_some());
    let mut freed = 0;
    HEAP.walk(|live| {
        // SAFETY: nobody else has it.
        freed += usize::from(unsafe { HEAP.free(live.at, held[&live.at]) });
    });
    assert_eq!((freed, HEAP.stats().blocks), (held.len(), 0));
}

/// Beside threads: what is seen is possible, and what nobody changes is seen as it is.
#[test]
fn looks_beside_threads() {
    static HEAP: Small<BYTES> = Small::new();
    let all = HEAP.stats().bytes;
    let mut steps = 0..30;
    let kept = bytes_of::<32>(&run(&HEAP, 5, || steps.next().is_some()));
    let done = AtomicBool::new(false);
    let mut all_held = kept.clone();
    thread::scope(|scope| {
        let work = |seed| {
            let done = &done;
            // Relaxed: it only ends the loop; partner: the store below.
            let goes_on = || !done.load(Ordering::Relaxed);
            scope.spawn(move || bytes_of::<32>(&run(&HEAP, seed, goes_on)))
        };
        let threads = [work(1), work(2)];
        for _ in 0..if cfg!(miri) { 10 } else { 20_000 } {
            is_possible::<32>(HEAP.stats(), all);
            let shown = shown(&HEAP);
            for (at, size) in &kept {
                assert_eq!(shown.get(at), Some(size), "{at:#x} is held all the time");
            }
        }
        // Relaxed: it only ends the loops; partner: the loads above.
        done.store(true, Ordering::Relaxed);
        all_held.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
    });
    // All is quiet: everything that somebody holds is shown.
    assert_eq!(shown(&HEAP), all_held);
    let stats = HEAP.stats();
    assert_eq!(stats.bytes - stats.free, all_held.values().sum::<usize>());
    assert_eq!(stats.blocks, all_held.len());
}
