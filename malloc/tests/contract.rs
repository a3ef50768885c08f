//! The functions as C sees them, in a program whose `malloc` they are.
#![cfg(all(target_os = "linux", not(miri)))]

use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use libc::{
    ENOMEM, aligned_alloc, calloc, free, malloc, malloc_usable_size, memalign, posix_memalign,
    realloc, reallocarray,
};
use nbbs_malloc::{free_aligned_sized, free_sized, pvalloc, valloc};

const SIZES: [usize; 16] = [
    0,
    1,
    15,
    16,
    17,
    100,
    255,
    1000,
    1024,
    1025,
    5000,
    20_000,
    32 << 10,
    40_000,
    1 << 20,
    33 << 20,
];
const TOO_MUCH: [usize; 4] = [usize::MAX, isize::MAX as usize + 1, isize::MAX as usize, 1 << 60];

fn errno() -> c_int {
    // SAFETY: it is the thread's own.
    unsafe { *libc::__errno_location() }
}

fn set_errno(to: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = to };
}

/// Whether memory ran out, as a function tells by its result and `errno`, which is cleared.
#[track_caller]
fn assert_none(block: *mut c_void, error: c_int) {
    assert!(block.is_null());
    assert_eq!(errno(), error);
    set_errno(0);
}

/// Fills a block, which the caller holds, with what is expected of it later.
fn fill(block: *mut c_void, bytes: usize, seed: usize) {
    // SAFETY: the caller holds so many bytes.
    let all = unsafe { std::slice::from_raw_parts_mut(block.cast::<u8>(), bytes) };
    all.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at + seed) as u8);
    // A compiler knows `free`, and leaves out what is never read.
    std::hint::black_box(all);
}

#[track_caller]
fn assert_filled(block: *mut c_void, bytes: usize, seed: usize) {
    // SAFETY: as above.
    let all = unsafe { std::slice::from_raw_parts(block.cast::<u8>(), bytes) };
    assert!(all.iter().enumerate().all(|(at, &byte)| byte == (at + seed) as u8));
}

fn is_aligned(block: *mut c_void, align: usize) -> bool {
    block.addr().is_multiple_of(align)
}

#[test]
fn blocks_hold_what_was_asked_for() {
    let mut all = Vec::new();
    for (seed, bytes) in SIZES.into_iter().enumerate() {
        // SAFETY: nothing is asked of the caller.
        let block = unsafe { malloc(bytes) };
        assert!(!block.is_null() && is_aligned(block, 16), "{bytes}");
        // SAFETY: ours.
        let usable = unsafe { malloc_usable_size(block) };
        assert!(usable >= bytes.max(1) && usable <= bytes.max(16) * 9 / 8 + 1024, "{usable}");
        fill(block, usable, seed);
        all.push((block, usable));
    }
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), SIZES.len());
    // That of this program: glibc's says 104.
    assert_eq!(all[5].1, 112);
    for (seed, (block, usable)) in all.into_iter().enumerate() {
        assert_filled(block, usable, seed);
        set_errno(7);
        // SAFETY: ours.
        unsafe { free(block) };
        assert_eq!(errno(), 7);
    }
    // SAFETY: nothing happens.
    unsafe {
        free(null_mut());
        assert_eq!(malloc_usable_size(null_mut()), 0);
    }
}

#[test]
fn blocks_are_freed_with_their_size() {
    for bytes in SIZES {
        // SAFETY: ours, and of this size.
        unsafe {
            let block = malloc(bytes);
            free_sized(block, bytes);
            // The cache has it, or the heap: as after any free.
            let again = malloc(bytes);
            assert_eq!(again, block, "{bytes}");
            free(again);
            let aligned = aligned_alloc(256, bytes);
            free_aligned_sized(aligned, 256, bytes);
            assert_eq!(aligned_alloc(256, bytes), aligned, "{bytes}");
            free(aligned);
            free_sized(null_mut(), bytes);
            free_aligned_sized(null_mut(), 256, bytes);
        }
    }
}

#[test]
fn too_much_is_refused() {
    // SAFETY: nothing is allocated.
    unsafe {
        for bytes in TOO_MUCH {
            set_errno(0);
            assert_none(malloc(bytes), ENOMEM);
            assert_none(calloc(1, bytes), ENOMEM);
            assert_none(calloc(bytes, 2), ENOMEM);
            assert_none(realloc(null_mut(), bytes), ENOMEM);
            assert_none(reallocarray(null_mut(), bytes, 3), ENOMEM);
            assert_none(aligned_alloc(4096, bytes), ENOMEM);
            assert_none(valloc(bytes), ENOMEM);
            assert_none(pvalloc(bytes), ENOMEM);
            let mut place = null_mut();
            assert_eq!(posix_memalign(&raw mut place, 64, bytes), ENOMEM);
            assert!(place.is_null());
        }
    }
}

#[test]
fn zero_memory_is_zero() {
    for round in 0..3 {
        for bytes in SIZES {
            // SAFETY: ours.
            unsafe {
                let block = calloc(1 + bytes / 8, 8);
                let words = std::slice::from_raw_parts(block.cast::<u64>(), 1 + bytes / 8);
                assert!(words.iter().all(|&word| word == 0), "{bytes} in round {round}");
                fill(block, bytes, 1);
                free(block);
            }
        }
    }
}

#[test]
fn blocks_change_their_size() {
    for (from, to) in SIZES.into_iter().flat_map(|from| SIZES.map(|to| (from, to))) {
        // SAFETY: ours.
        unsafe {
            let block = realloc(null_mut(), from);
            fill(block, from, 3);
            for bytes in TOO_MUCH {
                assert_none(realloc(block, bytes), ENOMEM);
                assert_none(reallocarray(block, bytes, 2), ENOMEM);
            }
            let block = reallocarray(block, to, 1);
            // As with glibc: no bytes are a free.
            assert_eq!(block.is_null(), to == 0);
            if to > 0 {
                assert!(malloc_usable_size(block) >= to);
                assert_filled(block, from.min(to), 3);
            }
            free(block);
        }
    }
}

#[test]
fn blocks_are_aligned() {
    let mut all = Vec::new();
    for align in (0..23).map(|log2| 1_usize << log2) {
        for bytes in [0, 1, 100, 5000, 100_000] {
            // SAFETY: ours.
            unsafe {
                let blocks = [aligned_alloc(align, bytes), memalign(align, bytes)];
                all.extend(blocks.map(|block| (block, bytes, align)));
                let mut place = null_mut();
                let error = posix_memalign(&raw mut place, align, bytes);
                assert_eq!(error, if align < 8 { libc::EINVAL } else { 0 });
                assert_eq!(place.is_null(), align < 8);
                if error == 0 {
                    all.push((place, bytes, align));
                }
            }
        }
    }
    all.extend([1, 5000].map(|bytes| (valloc(bytes), bytes, 4096)));
    all.extend(
        [0, 1, 5000].map(|bytes| (pvalloc(bytes), bytes.max(1).next_multiple_of(4096), 4096)),
    );
    for &(block, bytes, align) in &all {
        assert!(!block.is_null() && is_aligned(block, align.max(16)), "{bytes} at {align}");
        fill(block, bytes, align);
    }
    for (block, bytes, align) in all {
        assert_filled(block, bytes, align);
        // SAFETY: ours.
        unsafe { free(block) };
    }
    for align in [0, 3, 24, 4095, usize::MAX] {
        // SAFETY: nothing is allocated.
        unsafe {
            assert_none(aligned_alloc(align, 8), libc::EINVAL);
            let mut place = null_mut();
            assert_eq!(posix_memalign(&raw mut place, align, 8), libc::EINVAL);
            assert!(place.is_null());
        }
    }
}

/// As with glibc.
#[test]
fn memalign_takes_the_next_power_of_two() {
    for (align, power) in [(0, 16), (3, 16), (24, 32), (100, 128), (4095, 4096)] {
        // SAFETY: ours.
        unsafe {
            let block = memalign(align, 8);
            assert!(!block.is_null() && is_aligned(block, power), "{block:p} at {align}");
            free(block);
        }
    }
    set_errno(0);
    // SAFETY: nothing is allocated.
    assert_none(unsafe { memalign(usize::MAX, 8) }, libc::EINVAL);
}
