//! Members and `fork`: a child has the parent's locks and not its mapping.
#![cfg(target_os = "linux")]

use std::alloc::Layout;
use std::io::{Read, Write, pipe};
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;

use nbbs_shared::{Fate, Geometry, Member, Segment};
use nix::libc::_exit;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

const GEOMETRY: Geometry = Geometry { units: 64, unit_bytes: 64, members: 4 };

/// Forks a child that does this and ends; 0 if it did.
fn child(act: impl FnOnce() -> Option<()>) -> Pid {
    // SAFETY: the child calls what the parent's other threads cannot have locked, but `malloc`, which is made for that.
    match unsafe { fork() }.expect("a process") {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let status = i32::from(act().is_none());
            // SAFETY: ends the child, and nothing of the parent's with it.
            unsafe { _exit(status) }
        }
    }
}

fn layout() -> Layout {
    Layout::new::<[u64; 16]>()
}

/// Until it is killed.
fn forever() -> ! {
    loop {
        std::thread::park();
    }
}

/// The child of a member drops what it has inherited, and joins for itself.
#[test]
fn a_child_leaves_the_parents_member_alone() {
    let segment = Segment::memfd("parent", GEOMETRY).unwrap();
    let (member, other) = (segment.join().unwrap(), segment.join().unwrap());
    let block = member.alloc(layout()).unwrap();
    let fd = segment.as_fd().try_clone_to_owned().unwrap();
    // The parent's goes on.
    let inherited = ManuallyDrop::new((segment.clone(), segment.join().unwrap()));
    let child = child(|| {
        drop(ManuallyDrop::into_inner(inherited));
        let own = Segment::attach_fd(fd).ok()?;
        let member: Member = own.join().ok()?;
        let block = member.alloc(layout()).ok()?;
        member.free(block).ok().map(drop)
    });
    assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
    assert_eq!(other.dead(), 0);
    assert_eq!(other.recover(|_| Fate::Free).freed, 0);
    assert_eq!(member.free(block), Ok(128));
}

/// A member is killed, and its child goes on: it counts as alive until the child ends, and is recovered then.
#[test]
fn a_member_counts_as_alive_as_long_as_its_child_lives() {
    let segment = Segment::memfd("child", GEOMETRY).unwrap();
    let survivor = segment.join().unwrap();
    let fd = segment.as_fd().try_clone_to_owned().unwrap();
    let (mut joined, mut says) = pipe().unwrap();
    let member = child(|| {
        let own = Segment::attach_fd(fd).ok()?;
        let member = own.join().ok()?;
        member.alloc(layout()).ok()?;
        let grandchild = child(|| forever());
        says.write_all(&grandchild.as_raw().to_ne_bytes()).ok()?;
        forever()
    });
    let mut grandchild = [0; 4];
    joined.read_exact(&mut grandchild).unwrap();
    kill(member, Signal::SIGKILL).unwrap();
    waitpid(member, None).unwrap();
    assert_eq!(survivor.dead(), 0);
    assert_eq!(survivor.recover(|_| Fate::Free).freed, 0);
    assert_eq!(segment.count_free_bytes(), 64 * 64 - 128);

    kill(Pid::from_raw(i32::from_ne_bytes(grandchild)), Signal::SIGKILL).unwrap();
    while survivor.dead() == 0 {
        std::thread::yield_now();
    }
    let recovery = survivor.recover(|_| Fate::Free);
    assert_eq!((recovery.members, recovery.freed), (1, 1), "{recovery:?}");
    assert_eq!(segment.count_free_bytes(), 64 * 64);
}

/// A member leaves while a child of its process goes on: its seat is free.
#[test]
fn a_member_leaves_whatever_its_children_do() {
    let segment = Segment::memfd("leaves", Geometry { members: 1, ..GEOMETRY }).unwrap();
    let member = segment.join().unwrap();
    let child = child(|| forever());
    drop(member);
    let next = segment.join();
    kill(child, Signal::SIGKILL).unwrap();
    waitpid(child, None).unwrap();
    assert!(next.is_ok(), "{next:?}");
}
