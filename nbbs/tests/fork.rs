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

/// The destructors of its only thread run.
#[test]
fn a_child_that_ends_gives_nothing_back() {
    let buddy = Buddy::new(shared(), UNITS).unwrap();
    let caches: &'static ThreadCaches = Box::leak(Box::new(ThreadCaches::new(buddy)));
    let block = caches.alloc(0).unwrap();
    let before = (caches.cached().units, buddy.stats().used_units);
    assert!(before.0 > 0);
    // SAFETY: the child only ends.
    match unsafe { fork() }.unwrap() {
        // SAFETY: as above.
        ForkResult::Child => unsafe { exit(0) },
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
    assert_eq!((caches.cached().units, buddy.stats().used_units), before);
    caches.free(block).unwrap();
    caches.drain();
    assert_eq!(buddy.stats().used_units, 0);
}

/// A child with an arena of its own finds there what its parent's thread kept, and gives it back if it is told to.
#[test]
fn a_child_may_drain_what_it_has_a_copy_of() {
    let arena: &'static MetadataBox = Box::leak(Box::new(MetadataBox::new(UNITS).unwrap()));
    let buddy = Buddy::new(arena.words(), UNITS).unwrap();
    let caches: &'static ThreadCaches = Box::leak(Box::new(ThreadCaches::new(buddy)));
    let block = caches.alloc(0).unwrap();
    let before = (caches.cached().units, buddy.stats().used_units);
    // SAFETY: the child only uses the caches, which are there and so allocate nothing, and ends.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let freed = caches.alloc(3).is_ok_and(|other| caches.free(other) == Ok(8));
            let is_whole = freed && caches.free(block) == Ok(1) && caches.cached().units > before.0;
            caches.drain();
            // SAFETY: it ends at once.
            unsafe { _exit(i32::from(!is_whole || buddy.stats().used_units > 0)) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
    assert_eq!((caches.cached().units, buddy.stats().used_units), before);
    caches.free(block).unwrap();
    caches.drain();
    assert_eq!(buddy.stats().used_units, 0);
}
