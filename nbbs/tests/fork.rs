//! A child process has a copy of what its parent's threads keep, and shares the arena, or has a copy of that, too.
#![cfg(all(unix, not(miri)))]

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;

use nbbs::{Buddy, MetadataBox, ThreadCaches, metadata_words};
use nix::libc::{_exit, exit};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

const UNITS: u64 = 1 << 12;

/// Metadata that a child shares.
fn shared() -> &'static [AtomicU64] {
    let words = metadata_words(UNITS);
    let bytes = NonZeroUsize::new(8 * words).unwrap();
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: new memory, all zero, which is never unmapped.
    unsafe {
        let at = mmap_anonymous(None, bytes, access, MapFlags::MAP_SHARED).unwrap();
        std::slice::from_raw_parts(at.cast().as_ptr(), words)
    }
}

/// Forks where the thread keeps units, beside a block. The child calls `ends` with the block and how many it keeps; for
/// the parent nothing has changed then.
///
/// # Safety
/// The child ends in `ends`, and does nothing else there than use its caches.
unsafe fn forked(words: &'static [AtomicU64], ends: impl FnOnce(&'static ThreadCaches, u64, u64)) {
    let buddy = Buddy::new(words, UNITS).unwrap();
    let caches: &'static ThreadCaches = Box::leak(Box::new(ThreadCaches::new(buddy)));
    let block = caches.alloc(0).unwrap();
    let before = (caches.cached().units, buddy.stats().used_units);
    assert!(before.0 > 0);
    // SAFETY: as the caller promises; the caches are there, and so allocate nothing.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => ends(caches, block, before.0),
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
    assert_eq!((caches.cached().units, buddy.stats().used_units), before);
    caches.free(block).unwrap();
    caches.drain();
    assert_eq!(buddy.stats().used_units, 0);
}

/// The destructors of its only thread run.
#[test]
fn a_child_that_ends_gives_nothing_back() {
    // SAFETY: the child only ends, as `exit` does not return.
    unsafe { forked(shared(), |_, _, _| exit(0)) };
}

/// A child with an arena of its own finds there what its parent's thread kept, and gives it back if it is told to.
#[test]
fn a_child_may_drain_what_it_has_a_copy_of() {
    let arena: &'static MetadataBox = Box::leak(Box::new(MetadataBox::new(UNITS).unwrap()));
    let drains = |caches: &'static ThreadCaches, block, kept| {
        let freed = caches.alloc(3).is_ok_and(|other| caches.free(other) == Ok(8));
        let is_whole = freed && caches.free(block) == Ok(1) && caches.cached().units > kept;
        caches.drain();
        // SAFETY: it ends at once.
        unsafe { _exit(i32::from(!is_whole || caches.buddy().stats().used_units > 0)) }
    };
    // SAFETY: the child uses its caches, and ends.
    unsafe { forked(arena.words(), drains) };
}
