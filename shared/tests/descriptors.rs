//! Threads that do not share their descriptors. Alone in its file, as such a thread holds open whatever was.
#![cfg(target_os = "linux")]

use std::alloc::Layout;
use std::mem::forget;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::thread;

use nbbs_shared::{Fate, Geometry, JoinError, Segment};
use nix::libc::{CLONE_FILES, ESTALE, dup2, unshare};

const GEOMETRY: Geometry = Geometry { units: 64, unit_bytes: 64, members: 4 };

/// A thread with descriptors of its own attaches to a segment by a number that is another segment's for the others.
/// Members are those of the segment, or are refused, whoever makes them.
#[test]
fn threads_with_descriptors_of_their_own_join_the_right_segment() {
    let [first, second] = ["first", "second"].map(|name| Segment::memfd(name, GEOMETRY).unwrap());
    let number = first.as_fd().as_raw_fd();
    thread::scope(|scope| {
        let body = || {
            // SAFETY: from now on this thread has a table of its own, in which nobody owns that number.
            let descriptor = unsafe {
                assert_eq!(unshare(CLONE_FILES), 0);
                assert_eq!(dup2(second.as_fd().as_raw_fd(), number), number);
                OwnedFd::from_raw_fd(number)
            };
            let segment = Segment::attach_fd(descriptor).unwrap();
            let member = segment.join().unwrap();
            let block = member.alloc(Layout::new::<u64>()).unwrap();
            let watch = second.join().unwrap();
            assert_eq!((watch.dead(), watch.recover(|_| Fate::Free).freed), (0, 0));
            assert_eq!(segment.owner(block), Ok(Some(member.id())));
            member.free(block).unwrap();
            segment
        };
        let segment = scope.spawn(body).join().unwrap();
        let joined = segment.join().map(forget);
        // Its descriptor is the first segment's here.
        forget(segment);
        assert!(matches!(joined, Err(JoinError::System { errno: ESTALE, .. })), "{joined:?}");
    });
    assert!(first.join().is_ok());
}
