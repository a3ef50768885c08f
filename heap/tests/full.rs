//! How much of a heap is in use when it first refuses a block.

use std::alloc::Layout;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use nbbs_heap::{Cpu, Heap};

/// Allocates blocks of random sizes, and frees two for each five of them, until one is refused, several times. Returns
/// the percentage of the heap that the blocks had asked for, on average.
fn percent_in_use<const BYTES: usize>(heap: &'static Heap<BYTES>, sizes: Range<usize>) -> usize {
    const TIMES: usize = 4;
    let mut random = fastrand::Rng::with_seed(1);
    let mut used = 0;
    for _ in 0..TIMES {
        let mut held = Vec::new();
        loop {
            let layout = Layout::from_size_align(random.usize(sizes.clone()), 8).unwrap();
            let Some(at) = heap.alloc(layout) else { break };
            held.push((at, layout));
            if random.u8(..5) < 2 {
                let (at, layout) = held.swap_remove(random.usize(..held.len()));
                // SAFETY: the block is ours.
                unsafe { heap.free(at, layout) };
            }
        }
        used += held.iter().map(|(_, layout)| layout.size()).sum::<usize>();
        // SAFETY: the blocks are ours.
        held.into_iter().for_each(|(at, layout)| unsafe { heap.free(at, layout) });
    }
    assert_eq!(heap.audit(), Ok(()));
    let percent = used / (TIMES * BYTES / 100);
    println!("{sizes:?}: {percent} %");
    percent
}

#[test]
fn what_no_region_could_hold_empties_no_cache() {
    static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    let block = HEAP.alloc(Layout::new::<[u8; 100]>()).unwrap();
    // SAFETY: the block is ours.
    unsafe { HEAP.free(block, Layout::new::<[u8; 100]>()) };
    assert!(HEAP.alloc(Layout::new::<[u8; 2 << 20]>()).is_none());
    assert!(HEAP.trim() > 0, "the cache had given its slots back");
}

/// Runs, none of them a thousandth of the memory, are put where memory was freed, in front of the last one.
#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn runs() {
    static HEAP: Heap<{ 128 << 20 }> = Heap::new();
    assert!(percent_in_use(&HEAP, 33 << 10..100 << 10) >= 90);
}

/// The last place is found from the lane of every CPU, also if it lies in front of the lane's part, or across its
/// start.
#[test]
fn from_every_lane() {
    static HEAP: Heap<{ 32 << 20 }, 16, Turns> = Heap::new();
    static CPU: AtomicUsize = AtomicUsize::new(0);

    struct Turns;

    impl Cpu for Turns {
        fn number() -> Option<usize> {
            Some(CPU.load(Ordering::Relaxed))
        }
    }

    let layout = Layout::from_size_align(200 << 10, 8).unwrap();
    let all: Vec<_> = std::iter::from_fn(|| HEAP.alloc(layout)).collect();
    for cpu in 0..16 {
        CPU.store(cpu, Ordering::Relaxed);
        for &at in &all {
            // SAFETY: the block is ours.
            unsafe { HEAP.free(at, layout) };
            assert_eq!(HEAP.alloc(layout), Some(at), "from lane {cpu}");
        }
    }
}

/// A large run, of a thousandth of the memory or more, is put where one was freed, far in front of the last one, while
/// much is free behind it. A smaller one is not.
#[test]
fn large_runs_lie_in_front() {
    static FIRST: Heap<{ 64 << 20 }> = Heap::new();
    static SECOND: Heap<{ 64 << 20 }> = Heap::new();
    static THIRD: Heap<{ 64 << 20 }> = Heap::new();
    for (heap, kib, is_in_front) in [(&FIRST, 600, true), (&SECOND, 62, true), (&THIRD, 61, false)]
    {
        let layout = Layout::from_size_align(kib << 10, 8).unwrap();
        let held = [(); 20].map(|()| heap.alloc(layout).unwrap());
        // SAFETY: the block is ours.
        unsafe { heap.free(held[0], layout) };
        assert_eq!(heap.alloc(layout) == Some(held[0]), is_in_front, "{kib} KiB");
    }
}

/// Large runs that leave no large piece free make memory short, so that slots are not put into large slabs.
#[test]
fn large_runs_leave_memory_short() {
    static HEAP: Heap<{ 16 << 20 }> = Heap::new();
    let large = Layout::from_size_align(600 << 10, 8).unwrap();
    let held: Vec<_> = std::iter::from_fn(|| HEAP.alloc(large)).collect();
    // SAFETY: the blocks are ours.
    held.iter().step_by(2).for_each(|&at| unsafe { HEAP.free(at, large) });
    let again = HEAP.alloc(large).unwrap();
    let slot = Layout::from_size_align(20 << 10, 8).unwrap();
    HEAP.alloc(slot).unwrap();
    let stats = HEAP.stats();
    assert!(stats.classes().iter().all(|class| class.slabs == 0), "{stats:?}");
    assert!(held.contains(&again));
}

/// The last place for a run that is aligned to more than the memory is found, though nothing around it is free.
#[test]
fn the_last_aligned_place() {
    static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    for align in [8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10] {
        let layout = Layout::from_size_align(40 << 10, align).unwrap();
        let last = HEAP.alloc(layout).unwrap();
        assert_eq!(last.addr().get() % align, 0);
        let mut others = Vec::new();
        for size in [33 << 10, 8 << 10, 1 << 10] {
            let other = Layout::from_size_align(size, 8).unwrap();
            others.extend(std::iter::from_fn(|| Some((HEAP.alloc(other)?, other))));
        }
        // SAFETY: the block is ours.
        unsafe { HEAP.free(last, layout) };
        assert_eq!(HEAP.alloc(layout), Some(last), "aligned to {align}");
        others.push((last, layout));
        // SAFETY: the blocks are ours.
        others.into_iter().for_each(|(at, layout)| unsafe { HEAP.free(at, layout) });
        assert_eq!(HEAP.audit(), Ok(()));
    }
}

/// A run that is aligned to more than the whole memory is found if there is one place for it.
#[test]
fn one_place_aligned() {
    const ALIGN: usize = 4 << 20;
    static HEAP: Heap<0> = Heap::new();
    let memory = vec![0_u8; 3 * ALIGN].leak();
    let place = memory.as_ptr().addr().next_multiple_of(ALIGN);
    let place = if place - memory.as_ptr().addr() < 1 << 20 { place + ALIGN } else { place };
    let skip = place - (300 << 10) - memory.as_ptr().addr();
    // SAFETY: nobody else has it.
    unsafe { HEAP.add(NonNull::from(&mut memory[skip..]).cast(), 1 << 20) }.unwrap();
    let layout = Layout::from_size_align(40 << 10, ALIGN).unwrap();
    let found = HEAP.alloc(layout);
    assert_eq!(found.map(|at| at.addr().get()), Some(place));
    assert_eq!(HEAP.alloc(layout), None);
}

/// Slots for which there is no room in slabs lie between runs.
#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn slots_and_runs() {
    static HEAP: Heap<{ 32 << 20 }> = Heap::new();
    assert!(percent_in_use(&HEAP, 2 << 10..50 << 10) >= 88);
}

/// Slots of many sizes are not put into slabs of which most would stay unused.
#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn slots() {
    static HEAP: Heap<{ 32 << 20 }> = Heap::new();
    assert!(percent_in_use(&HEAP, 2 << 10..32 << 10) >= 87);
}

/// In a small heap the first slots of a large class are runs. A slab is made once the class has had as many of them as
/// the slab has slots.
#[test]
fn few_large_slots_take_no_slab() {
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    let slabs_of = |size, slots: usize| {
        let layout = Layout::from_size_align(size, 8).unwrap();
        (0..slots).for_each(|_| assert!(HEAP.alloc(layout).is_some()));
        HEAP.stats().classes().iter().find(|class| class.size >= size).map(|class| class.slabs)
    };
    let sizes = [1500, 5000, 9000, 20_000, 32 << 10];
    assert!(sizes.iter().all(|&size| slabs_of(size, 7) == Some(0)));
    assert!(sizes.iter().all(|&size| slabs_of(size, 33) > Some(0)));
    assert_eq!(slabs_of(1000, 1), Some(1), "of a unit or less");
}

/// A slab of more than a 512th of the memory is made for a class of which there were many runs. Refusals are none.
#[test]
fn refused_slots_are_no_runs_that_were_made() {
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    let slot = Layout::from_size_align(9000, 8).unwrap();
    let all = Layout::from_size_align(HEAP.stats().bytes, 1).unwrap();
    let at = HEAP.alloc(all).unwrap();
    assert!((0..40).all(|_| HEAP.alloc(slot).is_none()));
    // SAFETY: the block is ours.
    unsafe { HEAP.free(at, all) };
    assert!(HEAP.alloc(slot).is_some());
    assert_eq!(HEAP.stats().classes().iter().map(|class| class.slabs).sum::<usize>(), 0);
}
