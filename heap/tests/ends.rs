//! Threads that end give back what their caches keep, and their last destructors may still use the heap.

mod support;

use std::cell::RefCell;
use std::sync::mpsc;
use std::thread;

use nbbs_heap::Heap;
use support::{Block, assert_whole, layout};

const BYTES: usize = if cfg!(miri) { 512 << 10 } else { 4 << 20 };
type Small = Heap<BYTES>;

const SIZES: [usize; 8] = [1, 30, 200, 600, 1500, 4000, 20_000, 40_000];

/// Leaves slots of all sizes in the cache.
fn use_heap(heap: &'static Small, times: usize) {
    for time in 0..times as u64 {
        let blocks: Vec<_> =
            SIZES.iter().filter_map(|&size| Block::alloc(heap, layout(size, 8), time)).collect();
        blocks.into_iter().for_each(|block| block.free(heap));
    }
}

#[test]
fn everything_comes_back() {
    static HEAP: Small = Heap::new();
    for _ in 0..if cfg!(miri) { 1 } else { 20 } {
        let threads: Vec<_> = (0..3)
            .map(|_| thread::spawn(|| use_heap(&HEAP, if cfg!(miri) { 1 } else { 50 })))
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let half = Block::alloc(&HEAP, layout(BYTES / 2, 1), 1).expect("cannot be had");
        half.free(&HEAP);
        assert_whole(&HEAP);
    }
    assert_eq!(HEAP.refused(), 0);
}

/// What a thread allocated is freed by others after its end.
#[test]
fn blocks_outlive_their_thread() {
    static HEAP: Small = Heap::new();
    let alloc = || -> Vec<Block> {
        let of = |size: usize| Block::alloc(&HEAP, layout(size, 1), size as u64).unwrap();
        (0..if cfg!(miri) { 1 } else { 20 }).flat_map(|_| SIZES.map(of)).collect()
    };
    let blocks = thread::spawn(alloc).join().unwrap();
    blocks.iter().for_each(Block::check);
    thread::spawn(|| blocks.into_iter().for_each(|block| block.free(&HEAP))).join().unwrap();
    assert_whole(&HEAP);
}

/// When dropped, frees what it has and uses the heap.
struct Late(&'static Small, RefCell<Vec<Block>>);

impl Drop for Late {
    fn drop(&mut self) {
        self.1.take().into_iter().for_each(|block| block.free(self.0));
        use_heap(self.0, 2);
    }
}

/// With glibc the destructors run before the cache's; elsewhere some run after it.
#[test]
fn destructors_use_the_heap() {
    static HEAP: Small = Heap::new();
    std::thread_local! {
        static FIRST: Late = const { Late(&HEAP, RefCell::new(Vec::new())) };
        static LAST: Late = const { Late(&HEAP, RefCell::new(Vec::new())) };
    }
    let work = || {
        FIRST.with(|late| assert!(late.1.borrow().is_empty()));
        use_heap(&HEAP, 3);
        for late in [&FIRST, &LAST] {
            let of = |size| Block::alloc(&HEAP, layout(size, 8), 5).unwrap();
            late.with(|late| late.1.borrow_mut().extend(SIZES.map(of)));
        }
    };
    for _ in 0..if cfg!(miri) { 1 } else { 20 } {
        thread::spawn(work).join().unwrap();
        assert_whole(&HEAP);
    }
    assert_eq!(HEAP.refused(), 0);
}

/// The destructor of a key that was created after the heap's key runs when the cache has given everything back.
#[cfg(target_os = "linux")]
#[test]
fn keys_of_others_use_the_heap() {
    use std::ffi::{c_int, c_uint, c_void};
    use std::ptr::NonNull;

    unsafe extern "C" {
        fn pthread_key_create(
            key: *mut c_uint,
            at_end: Option<unsafe extern "C" fn(*mut c_void)>,
        ) -> c_int;
        fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
    }
    static HEAP: Small = Heap::new();
    unsafe extern "C" fn at_end(_: *mut c_void) {
        use_heap(&HEAP, 2);
    }
    use_heap(&HEAP, 1);
    let mut key = 0;
    // SAFETY: the destructor reads nothing.
    assert_eq!(unsafe { pthread_key_create(&raw mut key, Some(at_end)) }, 0);
    let work = move || {
        use_heap(&HEAP, 3);
        // SAFETY: the key was created above.
        assert_eq!(unsafe { pthread_setspecific(key, NonNull::dangling().as_ptr()) }, 0);
    };
    thread::spawn(work).join().unwrap();
    assert_whole(&HEAP);
}

/// A thread first uses the heap at its end.
#[test]
fn a_destructor_is_the_first_to_use_the_heap() {
    static HEAP: Small = Heap::new();
    std::thread_local! {
        static LATE: Late = const { Late(&HEAP, RefCell::new(Vec::new())) };
    }
    thread::spawn(|| LATE.with(|_| ())).join().unwrap();
    assert_whole(&HEAP);
}

/// A living thread gives back what its cache keeps once another has asked for it.
#[test]
fn caches_of_others_are_asked() {
    static HEAP: Small = Heap::new();
    type Work = Box<dyn FnOnce() + Send>;
    let (asks, asked) = mpsc::channel::<Work>();
    let (answers, answered) = mpsc::channel();
    let other = thread::spawn(move || {
        for work in asked {
            work();
            answers.send(()).unwrap();
        }
    });
    let have = |work: Work| {
        asks.send(work).unwrap();
        answered.recv().unwrap();
    };
    let count = if cfg!(feature = "quarantine") { 400 } else { 40 };
    let blocks: Vec<_> =
        (0..count).map(|seed| Block::alloc(&HEAP, layout(300, 8), seed).unwrap()).collect();
    let free = || blocks.into_iter().for_each(|block| block.free(&HEAP));
    // Of this size it has no slot.
    let alloc = || Block::alloc(&HEAP, layout(250, 8), 1).unwrap().free(&HEAP);
    // More frees than a cache has room for are a call that heeds the request, as is an allocation.
    for (what, work) in [("frees", Box::new(free) as Work), ("allocates", Box::new(alloc))] {
        have(Box::new(|| use_heap(&HEAP, 1)));
        HEAP.trim();
        let kept = HEAP.stats().free;
        have(work);
        HEAP.trim();
        assert!(HEAP.stats().free > kept + (32 << 10), "it {what}, and keeps what was asked for");
    }
    drop(asks);
    other.join().unwrap();
    assert_whole(&HEAP);
}

/// The cache belongs to the first heap; another heap is used without a cache, and has all of its memory back at once.
#[test]
fn another_heap_is_used_without_a_cache() {
    static FIRST: Small = Heap::new();
    static SECOND: Small = Heap::new();
    let work = || {
        use_heap(&FIRST, 2);
        use_heap(&SECOND, 2);
        let used = |heap: &'static Small| -> usize {
            heap.stats().classes().iter().map(|class| class.used).sum()
        };
        assert_eq!(used(&SECOND), 0, "no cache keeps slots of it");
        assert_ne!(used(&FIRST), 0);
    };
    thread::spawn(work).join().unwrap();
    assert_whole(&FIRST);
    assert_whole(&SECOND);
}
