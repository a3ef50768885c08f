//! Tests that memory requested as zero is zero, that memory known to be zero is not touched, and that free pages go
//! back.

mod support;

use std::ptr::NonNull;

use nbbs_heap::Heap;
use support::{Memory, assert_whole, layout, memory, placed};

/// The size of the memory: less under Miri, which is slow.
const MUCH: usize = (if cfg!(miri) { 1 } else { 8 }) << 20;

/// Returns whether so many bytes are zero.
///
/// # Safety
/// They are the caller's, and initialized.
unsafe fn is_zero(at: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { NonNull::slice_from_raw_parts(at, bytes).as_ref() }.iter().all(|&byte| byte == 0)
}

/// Allocates zeroed memory, frees memory that is not zero, and resizes, at random.
fn programs<const B: usize>(heap: &'static Heap<B>, seed: u64, mut more: impl FnMut()) {
    let (mut rng, mut held) = (fastrand::Rng::with_seed(seed), Vec::new());
    for _ in 0..if cfg!(miri) { 30 } else { 2000 } {
        let most = [300, 40_000, 300_000][rng.usize(..3)];
        let of = layout(rng.usize(..most), 1 << rng.usize(..14));
        let Some(at) = heap.alloc_zeroed(of) else { continue };
        // SAFETY: ours, and at least zeroed.
        let bytes = unsafe { NonNull::slice_from_raw_parts(at, of.size()).as_mut() };
        let mut some = bytes.iter().step_by(if cfg!(miri) { 509 } else { 1 });
        assert!(some.all(|&byte| byte == 0), "{of:?}: not zero");
        bytes.fill(0xee);
        held.push((at, of));
        if rng.usize(..4) == 0 {
            let (at, of) = held.pop().unwrap();
            let size = rng.usize(..500_000);
            // SAFETY: ours.
            let moved = unsafe { heap.resize(at, of, size) };
            let of = if moved.is_some() { layout(size, of.align()) } else { of };
            let at = moved.unwrap_or(at);
            // SAFETY: ours.
            unsafe { at.write_bytes(0xdd, of.size()) };
            held.push((at, of));
        }
        while held.len() > 8 {
            let (at, of) = held.swap_remove(rng.usize(..held.len()));
            // SAFETY: ours.
            unsafe { Memory::free(heap, at, of) };
        }
        if rng.usize(..50) == 0 {
            more();
        }
    }
    // SAFETY: ours.
    held.into_iter().for_each(|(at, of)| unsafe { Memory::free(heap, at, of) });
    assert_whole(heap);
}

#[test]
fn what_was_in_use_is_zero_again() {
    static HEAP: Heap<{ MUCH }> = Heap::new();
    programs(&HEAP, 1, || ());
    programs(&HEAP, 2, || _ = HEAP.trim());
}

#[test]
fn what_was_added_is_zero_when_asked_for() {
    static HEAP: Heap<0> = Heap::new();
    // SAFETY: the memory is leaked.
    unsafe { HEAP.add(memory(MUCH), MUCH) }.unwrap();
    programs(&HEAP, 3, || ());
    // Also if pages that are taken back are zero, or only some of them are taken back.
    let mut rng = fastrand::Rng::with_seed(4);
    let mut taken = 0;
    let mut discard = |at: NonNull<u8>, bytes: usize| {
        assert_eq!((at.addr().get() % 4096, bytes % 4096), (0, 0));
        let zero = rng.bool();
        // SAFETY: nobody else has them.
        unsafe { at.write_bytes(if zero { 0 } else { 0xcc }, bytes) };
        taken += 1;
        zero
    };
    // SAFETY: it returns whether it has made them zero.
    programs(&HEAP, 5, || _ = unsafe { HEAP.discard(4096, &mut discard) }.unwrap());
    assert!(taken > 10, "{taken}");
}

/// Larger ones than 4 KiB may lie across two pieces.
#[test]
fn all_pages_of_free_memory_are_discarded() {
    for page in [4096, 16 << 10, 64 << 10] {
        let bytes = 5 << 20;
        let heap = placed(1, bytes);
        let (mut seen, mut end) = (0, 0);
        let look = |at: NonNull<u8>, bytes: usize| {
            assert_eq!((at.addr().get() % page, bytes % page), (0, 0));
            assert!(at.addr().get() >= end && bytes <= 1 << 20);
            end = at.addr().get() + bytes;
            seen += bytes;
            false
        };
        // SAFETY: nothing is said to be zero.
        assert_eq!(unsafe { heap.on(0).discard(page, look) }, Ok(0));
        let cut = if page == 4096 { 0 } else { 16 * page };
        assert!(seen >= bytes - cut, "{seen} bytes in pages of {page}");
    }
}

#[test]
fn pages_come_back_if_it_panics() {
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    let of = layout(1 << 20, 8);
    let touch = || {
        let at = HEAP.alloc(of).unwrap();
        // SAFETY: ours.
        unsafe { at.write_bytes(7, of.size()) };
        // SAFETY: ours.
        unsafe { HEAP.free(at, of) };
    };
    touch();
    // SAFETY: it does not return.
    let panics = || unsafe { HEAP.discard(4096, |_, _| panic!("on purpose")) };
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_whole(&HEAP);
    let at = HEAP.alloc_zeroed(of).unwrap();
    // SAFETY: ours.
    assert!(unsafe { is_zero(at, of.size()) });
    // SAFETY: ours.
    unsafe { HEAP.free(at, of) };
}

/// What is said to be zero when it is freed is not cleared again, where it fills stretches of 64 KiB, and all else is.
#[test]
fn what_is_freed_as_zero_is_not_cleared() {
    const BYTES: usize = 1 << 20;
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    let at = HEAP.alloc(layout(BYTES, 1)).unwrap();
    // SAFETY: ours.
    unsafe { at.write_bytes(7, BYTES) };
    let said = 100_000..900_000;
    // SAFETY: ours; what is not zero, though said to be, shows what is not cleared.
    assert_eq!(unsafe { HEAP.free_at_after(at, |_| said.clone()) }, Ok(BYTES));
    assert_eq!(HEAP.alloc_zeroed(layout(BYTES, 1)), Some(at));
    // SAFETY: ours, and initialized.
    let bytes = unsafe { NonNull::slice_from_raw_parts(at, BYTES).as_ref() };
    let left = |range: &[u8]| range.iter().filter(|&&byte| byte == 7).count();
    assert_eq!(left(bytes), left(&bytes[said]), "not cleared, and not said to be zero");
    assert!((800_000 - (2 << 16)..=800_000).contains(&left(bytes)), "{}", left(bytes));
    // SAFETY: ours.
    unsafe { HEAP.free(at, layout(BYTES, 1)) };
}

/// What a cache keeps is written to by who gets it from there, so it is not known to be zero any more.
#[test]
fn what_a_cache_keeps_is_cleared() {
    const BYTES: usize = 64 << 10;
    static HEAP: Heap<{ 8 << 20 }> = Heap::new();
    let of = layout(BYTES, 1);
    let at = HEAP.alloc_zeroed(of).unwrap();
    // SAFETY: ours, and zero.
    assert!(unsafe { HEAP.free_at_after(at, |bytes| 0..bytes) }.is_ok());
    let again = HEAP.alloc(of).unwrap();
    // SAFETY: ours.
    unsafe { again.write_bytes(7, BYTES) };
    // SAFETY: ours.
    unsafe { HEAP.free(again, of) };
    HEAP.trim();
    let zeroed = HEAP.alloc_zeroed(of).unwrap();
    assert_eq!([at, zeroed], [again; 2], "the case is not met");
    // SAFETY: ours, and initialized.
    assert!(unsafe { is_zero(zeroed, BYTES) });
}

/// Pages are passed once, also if what lies in front of them is known to be zero.
#[test]
fn what_was_discarded_is_not_passed_again() {
    static HEAP: Heap<{ 64 << 20 }> = Heap::new();
    let of = layout(16 << 20, 1);
    let discarded = || {
        let mut pieces = Vec::new();
        let discard = |at: NonNull<u8>, bytes: usize| {
            // SAFETY: nobody else has them.
            unsafe { at.write_bytes(0, bytes) };
            pieces.push((at.addr().get(), bytes));
            true
        };
        // SAFETY: they are zero.
        (unsafe { HEAP.discard(4096, discard) }.unwrap(), pieces)
    };
    let [front, behind] = [(); 2].map(|()| HEAP.alloc(of).unwrap());
    for at in [front, behind] {
        // SAFETY: ours.
        unsafe { HEAP.free(at, of) };
        let (bytes, mut pieces) = discarded();
        assert!(bytes >= of.size() - (64 << 10), "{bytes} bytes");
        pieces.sort_unstable();
        let is_gap = |pair: &[(usize, usize)]| pair[0].0 + pair[0].1 != pair[1].0;
        assert_eq!(pieces.windows(2).filter(|pair| is_gap(pair)).count(), 0, "pages are left");
        assert!(discarded().0 <= 64 << 10, "pages are passed again");
    }
}

#[test]
fn nothing_that_is_held_is_discarded() {
    static HEAP: Heap<{ MUCH }> = Heap::new();
    let rounds = if cfg!(miri) { 5 } else { 300 };
    let work = |thread: u8| {
        let mut rng = fastrand::Rng::with_seed(thread.into());
        for _ in 0..rounds {
            let of = layout(rng.usize(1..200_000), 1);
            let Some(at) = HEAP.alloc(of) else { continue };
            // SAFETY: ours.
            unsafe { at.write_bytes(thread, of.size()) };
            std::thread::yield_now();
            // SAFETY: ours, and written to.
            let bytes = unsafe { NonNull::slice_from_raw_parts(at, of.size()).as_ref() };
            let mut some = bytes.iter().step_by(if cfg!(miri) { 509 } else { 1 });
            assert!(some.all(|&byte| byte == thread), "discarded, but held");
            // SAFETY: ours.
            unsafe { HEAP.free(at, of) };
        }
    };
    std::thread::scope(|scope| {
        let others = [1, 2].map(|thread| scope.spawn(move || work(thread)));
        while others.iter().any(|other| !other.is_finished()) {
            let clear = |at: NonNull<u8>, bytes| {
                // SAFETY: nobody else has them.
                unsafe { at.write_bytes(0, bytes) };
                true
            };
            // SAFETY: it has made them zero.
            unsafe { HEAP.discard(4096, clear) }.unwrap();
        }
        // What they keep comes back when they end, which is after their work.
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    assert_whole(&HEAP);
}

/// Returns how many of its pages are in the process's memory.
#[cfg(all(target_os = "linux", not(miri)))]
fn resident(at: NonNull<u8>, bytes: usize) -> usize {
    let begin = at.addr().get() & !4095;
    let mut pages = vec![0_u8; (at.addr().get() + bytes - begin).div_ceil(4096)];
    // SAFETY: it writes a byte for each page.
    let status = unsafe {
        let begin = std::ptr::with_exposed_provenance_mut(begin);
        libc::mincore(begin, 4096 * pages.len(), pages.as_mut_ptr())
    };
    assert_eq!(status, 0);
    pages.iter().filter(|&page| page & 1 != 0).count()
}

/// What was added need not be memory that is zero once the system has taken it back.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn a_trim_keeps_pages_that_were_added() {
    static HEAP: Heap<0> = Heap::new();
    // SAFETY: the memory is leaked.
    unsafe { HEAP.add(memory(2 << 20), 2 << 20) }.unwrap();
    let of = layout(1 << 20, 1);
    let at = HEAP.alloc(of).unwrap();
    // SAFETY: ours.
    unsafe { HEAP.free(at, of) };
    HEAP.trim();
    assert!(resident(at, of.size()) >= of.size() / 4096);
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn fresh_memory_is_not_touched_and_free_memory_goes_back() {
    static HEAP: Heap<{ 64 << 20 }> = Heap::new();
    const BYTES: usize = 16 << 20;
    let of = layout(BYTES, 1);
    let before = HEAP.alloc(layout(50_000, 1)).unwrap();
    for _ in 0..2 {
        let at = HEAP.alloc_zeroed(of).unwrap();
        let touched = resident(at, BYTES);
        assert!(touched <= 32, "{touched} pages of fresh memory");
        // SAFETY: ours.
        unsafe { at.write_bytes(1, BYTES) };
        assert!(resident(at, BYTES) >= BYTES / 4096);
        // SAFETY: ours.
        unsafe { HEAP.free(at, of) };
        assert!(resident(at, BYTES) >= BYTES / 4096);
        HEAP.trim();
        let left = resident(at, BYTES);
        assert!(left <= 32, "{left} pages of free memory are left");
        // So there is nothing left to take back, but for pages in stretches of which a part is in use.
        let mut passed = 0;
        let count = |_, bytes| {
            passed += bytes;
            false
        };
        // SAFETY: nothing is said to be zero.
        assert_eq!(unsafe { HEAP.discard(4096, count) }, Ok(0));
        assert!(passed <= 128 << 10, "{passed} bytes are left to take back");
    }
    // SAFETY: ours.
    unsafe { HEAP.free(before, layout(50_000, 1)) };
    assert_whole(&HEAP);
}
