//! A child process has a copy of what its parent's threads keep, and shares the arena.
#![cfg(all(unix, not(miri)))]

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;

use nbbs::{Buddy, ThreadCaches, metadata_words};
use nix::libc::exit;
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
