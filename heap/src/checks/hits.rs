//! The read-modify-writes that an operation takes that a cache serves, by kind of cache, as the documentation of
//! [`Heap`](crate::Heap) states them.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;

use crate::cache::KeptRuns;
use crate::operations::Operations;
use crate::region::Region;
use crate::words::counted;
use crate::{Cpu, Heap, Overlap, Placed};

const BYTES: usize = 32 << 20;

/// Any caller may have number 0.
struct Any;

impl Cpu for Any {
    fn number() -> Option<usize> {
        Some(0)
    }
}

/// One caller at a time has number 0.
struct Nested;

impl Cpu for Nested {
    // SAFETY: one test uses this, by one thread.
    const OVERLAP: Overlap<Self> = unsafe { Overlap::nested() };

    fn number() -> Option<usize> {
        Some(0)
    }
}

/// Checks the read-modify-writes of an allocation and of a free, of blocks of all sizes.
#[track_caller]
fn assert_swaps(
    expected: u64,
    alloc: impl Fn(Layout) -> Option<NonNull<u8>>,
    free: impl Fn(NonNull<u8>, Layout),
) {
    let run = KeptRuns::ON.then_some(40_000);
    for size in [1, 16, 100, 1000, 5000, 32 << 10].into_iter().chain(run) {
        let layout = Layout::from_size_align(size, 1).unwrap();
        // The first slots of a large class are runs, which a free by address does not keep.
        let first: Vec<_> = (0..64).map(|_| alloc(layout).unwrap()).collect();
        first.into_iter().for_each(|block| free(block, layout));
        // Nor do caches keep many runs after they kept so many in vain, until some are of use again.
        (0..40).for_each(|_| free(alloc(layout).unwrap(), layout));
        let (block, (_, swaps)) = counted(|| alloc(layout).unwrap());
        assert_eq!(swaps, expected, "allocating {size} bytes");
        let ((), (_, swaps)) = counted(|| free(block, layout));
        assert_eq!(swaps, expected, "freeing {size} bytes");
    }
}

#[track_caller]
fn assert_swaps_of<C: Cpu>(expected: u64, heap: &'static Heap<BYTES, 1, C>) {
    assert_swaps(
        expected,
        |layout| heap.alloc(layout),
        // SAFETY: the block is ours.
        |at, layout| unsafe { heap.free(at, layout) },
    );
}

#[test]
fn of_a_thread() {
    static HEAP: Heap<BYTES> = Heap::new();
    assert_swaps_of(0, &HEAP);
}

#[test]
fn of_any_caller() {
    static HEAP: Heap<BYTES, 1, Any> = Heap::new();
    assert_swaps_of(1, &HEAP);
}

#[test]
fn where_operations_nest() {
    static HEAP: Heap<BYTES, 1, Nested> = Heap::new();
    assert_swaps_of(0, &HEAP);
}

/// Where operations nest, only the callers of one number are known not to meet.
#[test]
fn numbers_without_a_cache() {
    struct Second;

    impl Cpu for Second {
        // SAFETY: one test uses this, by one thread.
        const OVERLAP: Overlap<Self> = unsafe { Overlap::nested() };

        fn number() -> Option<usize> {
            Some(1)
        }
    }
    static HEAP: Heap<BYTES, 1, Second> = Heap::new();
    let layout = Layout::new::<u64>();
    let block = HEAP.alloc(layout).unwrap();
    // SAFETY: the block is ours.
    unsafe { HEAP.free(block, layout) };
    let used: usize = HEAP.stats().classes().iter().map(|class| class.used).sum();
    assert_eq!(used, 0, "a cache keeps the slot");
}

/// A caller gets its number once, by the first operation that no cache serves: an allocation, or a free.
#[test]
fn numbers_that_are_claimed() {
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(1) };
        static CLAIMS: Cell<usize> = const { Cell::new(0) };
    }
    struct Claimed;

    impl Cpu for Claimed {
        // SAFETY: two threads use this, one after the other.
        const OVERLAP: Overlap<Self> = unsafe { Overlap::nested() };

        fn number() -> Option<usize> {
            Some(NUMBER.get())
        }

        fn claim_number() {
            NUMBER.set(0);
            CLAIMS.set(CLAIMS.get() + 1);
        }
    }
    static HEAP: Heap<BYTES, 1, Claimed> = Heap::new();
    let layout = Layout::new::<u64>();
    let block = HEAP.alloc(layout).unwrap();
    assert_eq!((NUMBER.get(), CLAIMS.get()), (0, 1));
    for _ in 0..100 {
        // SAFETY: the block is ours.
        unsafe { HEAP.free(block, layout) };
        assert_eq!(HEAP.alloc(layout), Some(block));
    }
    assert_eq!(CLAIMS.get(), 1);
    let block = block.expose_provenance().get();
    let other = std::thread::spawn(move || {
        let block = NonNull::new(std::ptr::with_exposed_provenance_mut(block)).unwrap();
        // SAFETY: it is this thread's now.
        unsafe { HEAP.free(block, layout) };
        (NUMBER.get(), CLAIMS.get())
    });
    assert_eq!(other.join().unwrap(), (0, 1));
}

#[test]
fn in_given_memory() {
    const ALL: usize = Placed::bytes_for(2, BYTES).unwrap();
    let memory = NonNull::from(Vec::leak(vec![0_u8; ALL])).cast();
    // SAFETY: the memory is leaked, and nobody else has it.
    let heap = unsafe { Placed::new(memory, ALL, 2) }.unwrap();
    // SAFETY: there is no other thread, and so no other caller.
    for (expected, on) in [(1, heap.on(0)), (0, unsafe { heap.on_nested(1) })] {
        assert_swaps(
            expected,
            |layout| on.alloc(layout),
            // SAFETY: the block is ours.
            |at, layout| unsafe { on.free(at, layout) },
        );
        assert_swaps(
            expected,
            |layout| on.alloc(layout),
            // SAFETY: the block is ours.
            |at, _| assert!(unsafe { on.free_at(at) }.is_ok()),
        );
    }
}

/// What a cache cannot keep is not looked for before it is freed.
#[test]
fn runs_that_are_not_kept() {
    if !KeptRuns::ON {
        return;
    }
    const ALL: usize = Placed::bytes_for(1, BYTES).unwrap();
    let memory = NonNull::from(Vec::leak(vec![0_u8; ALL])).cast();
    // SAFETY: the memory is leaked, and nobody else has it.
    let on = unsafe { Placed::new(memory, ALL, 1) }.unwrap().on(0);
    let layout = Layout::new::<[u8; 600 << 10]>();
    let at = on.alloc(layout).unwrap();
    let free = |region: &Region<'_>| region.free_run(at, layout.size(), 0);
    let (_, (alone, _)) = counted(|| on.memory().at(at, free));
    assert_eq!(on.alloc(layout), Some(at));
    // SAFETY: the block is ours.
    let ((), (beside, _)) = counted(|| unsafe { on.free(at, layout) });
    assert_eq!(on.trim(), 0, "it is kept");
    assert!(beside <= alone + 4, "{beside} loads, not {alone}");
}
