//! Which calls allocate memory of the process: none of a member's but recovery, and a trim, alone or before a refusal.
#![cfg(target_os = "linux")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::mem::forget;
use std::os::fd::AsFd;

use nbbs_shared::{Fate, Geometry, Segment};
use nix::libc::_exit;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator; counts the calls of each thread.
struct Counting;

// SAFETY: as the system's, to which each call goes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: by the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: by the contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn calls(act: impl FnOnce()) -> usize {
    let before = CALLS.get();
    act();
    CALLS.get() - before
}

/// A process joins and ends.
fn with_a_death(segment: &Segment) {
    // SAFETY: the child calls what other threads cannot have locked, but `malloc`, which is made for that.
    match unsafe { fork() }.expect("a process") {
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
        ForkResult::Child => {
            let fd = segment.as_fd().try_clone_to_owned().ok();
            let own = fd.and_then(|fd| Segment::attach_fd(fd).ok());
            let joined = own.is_some_and(|own| own.join().map(forget).is_ok());
            // SAFETY: ends the child, and nothing of the parent's with it.
            unsafe { _exit(i32::from(!joined)) }
        }
    }
}

#[test]
fn members_work_without_memory_of_the_process() {
    let geometry = Geometry { units: 1024, unit_bytes: 64, members: 4 };
    let segment = Segment::memfd("memory", geometry).unwrap();
    let (alice, bob) = (segment.join().unwrap(), segment.join().unwrap());
    with_a_death(&segment);
    let allocated = calls(|| {
        let layout = Layout::new::<[u64; 10]>();
        let (block, slot) = (alice.alloc(layout).unwrap(), alice.heap().alloc(layout).unwrap());
        assert!(alice.block(block).is_ok() && segment.owner(slot).is_ok());
        assert_eq!(bob.take(block), Ok(alice.id()));
        assert_eq!(bob.heap().take_from(slot, alice.id()), Ok(alice.id()));
        assert!(alice.free(block).is_err());
        assert!(bob.free(block).is_ok() && bob.heap().free(slot).is_ok());
        assert_eq!(alice.dead(), 1);
    });
    assert_eq!(allocated, 0);
    assert!(calls(|| assert_eq!(alice.recover(|_| Fate::Free).members, 1)) > 0);
}
