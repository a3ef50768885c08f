//! Creators, and processes that join or leave, are stopped before each of their system calls, while others create or
//! join.
#![cfg(target_os = "linux")]

use std::alloc::Layout;
use std::fs::{self, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::id;
use std::sync::atomic::Ordering;

use nbbs_shared::{Fate, Geometry, Member, Segment};
use nix::libc::{_exit, RLIMIT_FSIZE, rlimit, setrlimit};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

const GEOMETRY: Geometry = Geometry { units: 300, unit_bytes: 64, members: 4 };
const LARGER: Geometry = Geometry { units: 500, ..GEOMETRY };
const SMALL: Geometry = Geometry { units: 64, unit_bytes: 64, members: 3 };
/// What is made in place of a segment, and whether its header is written over at first.
const CASES: [(Geometry, bool); 4] =
    [(GEOMETRY, true), (LARGER, true), (GEOMETRY, false), (LARGER, false)];

/// A path that is nobody else's, and a file there that goes with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("nbbs-steps-{}-{name}", id())))
    }

    /// Writes into the header that the segment is being made.
    fn spoil_if(&self, now: bool) {
        if !now {
            return;
        }
        let file = OpenOptions::new().write(true).open(&self.0).unwrap();
        file.write_all_at(&[1], 56).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A process that makes its system calls when it is told to. It is killed when this is dropped.
struct Stepper(Pid);

impl Stepper {
    /// Starts a process that does the first, and is then told to do what that returns. If it succeeds it keeps the
    /// result, and waits to be killed.
    fn new<T, D: FnOnce() -> Option<T>>(first: impl FnOnce() -> Option<D>) -> Self {
        // SAFETY: the child calls what other threads cannot have locked, but `malloc`, which is made for that.
        match unsafe { fork() }.expect("a process") {
            ForkResult::Parent { child } => {
                let stepper = Self(child);
                assert!(stepper.stops_itself());
                ptrace::setoptions(child, Options::PTRACE_O_TRACESYSGOOD).unwrap();
                stepper
            }
            ForkResult::Child => {
                let stop = || raise(Signal::SIGSTOP).ok();
                let did = ptrace::traceme().ok().and_then(|()| {
                    let then = first()?;
                    stop()?;
                    let _kept = then()?;
                    stop()
                });
                // SAFETY: ends the child, and nothing of the parent's with it.
                unsafe { _exit(i32::from(did.is_none())) }
            }
        }
    }

    fn stops_itself(&self) -> bool {
        waitpid(self.0, None) == Ok(WaitStatus::Stopped(self.0, Signal::SIGSTOP))
    }

    /// Lets it make this many system calls. Returns whether it succeeded if it has fewer.
    fn step(&self, calls: usize) -> Option<bool> {
        self.step_half(2 * calls)
    }

    /// Lets it go on to where a call begins, or where it ends, this many times.
    fn step_half(&self, halves: usize) -> Option<bool> {
        (0..halves).find_map(|_| {
            ptrace::syscall(self.0, None).unwrap();
            let status = waitpid(self.0, None).unwrap();
            let has_ended = status != WaitStatus::PtraceSyscall(self.0);
            has_ended.then_some(status == WaitStatus::Stopped(self.0, Signal::SIGSTOP))
        })
    }

    /// Lets it go to its end, and returns whether it succeeded.
    fn finish(&self) -> bool {
        ptrace::cont(self.0, None).unwrap();
        self.stops_itself()
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        // If it has ended, its number may be another's.
        if waitpid(self.0, Some(WaitPidFlag::WNOHANG)).is_ok() {
            kill(self.0, Signal::SIGKILL).unwrap();
            waitpid(self.0, None).unwrap();
        }
    }
}

/// Returns a process that creates a segment, or cannot, as it may not make a file that large.
fn creator(place: &Place, has_room: bool) -> Stepper {
    Stepper::new(|| {
        if !has_room {
            let limit = rlimit { rlim_cur: 4096, rlim_max: 4096 };
            // An ignored signal would stop a process that is traced.
            SigSet::from(Signal::SIGXFSZ).thread_block().ok()?;
            // SAFETY: it reads a limit, which holds for this process only.
            (unsafe { setrlimit(RLIMIT_FSIZE, &raw const limit) } == 0).then_some(())?;
        }
        Some(move || Segment::create(&place.0, GEOMETRY).ok())
    })
}

/// Returns a process that attaches, and is then told to join, and to allocate a block, which the root names.
fn joiner(place: &Place) -> Stepper {
    Stepper::new(|| {
        let segment = Segment::attach(&place.0).ok()?;
        Some(move || {
            let member = segment.join().ok()?;
            let block = member.alloc(Layout::new::<u64>()).ok()?;
            segment.root().store(Some(block), Ordering::Release);
            Some(member)
        })
    })
}

/// Returns a process that has the segment, and is then told to join, and to do more with its member.
fn member<T>(segment: &Segment, more: impl FnOnce(Member) -> T) -> Stepper {
    Stepper::new(|| {
        let own = Segment::attach_fd(segment.as_fd().try_clone_to_owned().ok()?).ok()?;
        Some(move || own.join().ok().map(more))
    })
}

/// A member joins, allocates all that there is, and is killed.
fn dies_with_all(segment: &Segment) {
    let dies = member(segment, |member| {
        while member.alloc(Layout::new::<u64>()).is_ok() {}
        member
    });
    assert!(dies.finish());
}

/// Calls `work` with every number of steps, until it says that the process has fewer.
fn each_step(mut work: impl FnMut(usize) -> bool) {
    let steps = (0..1000).take_while(|&steps| work(steps)).count();
    assert!((5..1000).contains(&steps), "{steps} steps");
}

/// The first is stopped, then the second; the first goes on, then the second.
#[test]
fn creators_that_meet_leave_a_segment_or_nothing() {
    for rooms in [(false, false), (false, true), (true, false), (true, true)] {
        each_step(|steps| {
            let mut first_ended = None;
            each_step(|more| {
                let place = Place::new("meet");
                let (first, second) = (creator(&place, rooms.0), creator(&place, rooms.1));
                first_ended = first.step(steps);
                let second_ended = second.step(more);
                let first_did = first_ended.unwrap_or_else(|| first.finish());
                let did = (first_did, second_ended.unwrap_or_else(|| second.finish()));
                let seen = format!("{rooms:?} after {steps} and {more} steps: {did:?}");
                assert_ne!(did, (true, true), "{seen}");
                assert_eq!(place.0.exists(), did.0 || did.1, "{seen}");
                assert_eq!(Segment::attach(&place.0).is_ok(), did.0 || did.1, "{seen}");
                second_ended.is_none()
            });
            first_ended.is_none()
        });
    }
}

#[test]
fn a_creator_that_is_killed_keeps_nobody_from_it() {
    each_step(|steps| {
        let place = Place::new("killed");
        let ended = creator(&place, true).step(steps);
        let is_whole = Segment::attach(&place.0).is_ok();
        assert_ne!(is_whole, Segment::create(&place.0, GEOMETRY).is_ok(), "{steps} steps");
        Segment::attach(&place.0).unwrap();
        ended.is_none()
    });
}

/// Somebody writes over the header of a segment that has no members, before or after one joins while another makes it
/// anew: both are in one segment, or one of them is refused.
#[test]
fn nobody_joins_what_a_creator_takes_over() {
    for (geometry, is_early) in CASES {
        each_step(|steps| {
            let place = Place::new("taken-over");
            let segment = Segment::create(&place.0, GEOMETRY).unwrap();
            place.spoil_if(is_early);
            let creator = Stepper::new(|| Some(|| Segment::create(&place.0, geometry).ok()));
            let ended = creator.step(steps);
            let member = segment.join().ok();
            let block = member.as_ref().map(|member| member.alloc(Layout::new::<u64>()).unwrap());
            place.spoil_if(!is_early && ended != Some(true));
            let created = ended.unwrap_or_else(|| creator.finish());
            if let (Some(member), Some(block), true) = (member, block, created) {
                let new = Segment::attach(&place.0).unwrap();
                assert_eq!(new.geometry(), GEOMETRY, "{steps} steps");
                assert_eq!(new.owner(block), Ok(Some(member.id())), "{steps} steps");
            }
            ended.is_none()
        });
    }
}

/// The same, where who joins is stopped.
#[test]
fn nobody_takes_over_what_somebody_joins() {
    for (geometry, is_early) in CASES {
        each_step(|steps| {
            let place = Place::new("joined");
            let segment = Segment::create(&place.0, GEOMETRY).unwrap();
            let joiner = joiner(&place);
            place.spoil_if(is_early);
            let ended = joiner.step(steps);
            place.spoil_if(!is_early);
            let created = Segment::create(&place.0, geometry);
            let has_joined = ended.unwrap_or_else(|| joiner.finish());
            if let (Ok(created), true) = (created, has_joined) {
                assert_eq!(created.geometry(), GEOMETRY, "{steps} steps");
                let block = segment.root::<u64>().load(Ordering::Acquire).unwrap();
                assert!(created.owner(block).unwrap().is_some(), "{steps} steps");
            }
            ended.is_none()
        });
    }
}

/// Whoever joins takes the seat of a member that was killed, and is stopped before each of its calls.
#[test]
fn a_newcomer_that_stands_still_hides_no_dead_member() {
    for calls in 0.. {
        let segment = Segment::memfd("newcomer", Geometry { members: 2, ..SMALL }).unwrap();
        let alice = segment.join().unwrap();
        dies_with_all(&segment);
        let carol = member(&segment, |carol| carol);
        let has_joined = carol.step(calls);
        assert_eq!(alice.dead(), 1, "after {calls} calls");
        let found = alice.recover(|_| Fate::Free);
        assert_eq!((found.freed, found.pending, alice.dead()), (64, 0, 0), "after {calls} calls");
        assert!(has_joined == Some(true) || carol.finish(), "after {calls} calls");
        if has_joined.is_some() {
            break;
        }
    }
}

/// Another member comes and dies where a newcomer is stopped: in between its look at a seat and its lock, too.
#[test]
fn a_newcomer_hides_nobody_who_dies_before_it_has_a_seat() {
    each_step(|steps| {
        let segment = Segment::memfd("dies-before", SMALL).unwrap();
        let alice = segment.join().unwrap();
        let carol = member(&segment, |carol| carol);
        let has_joined = carol.step_half(steps);
        dies_with_all(&segment);
        assert!(has_joined.unwrap_or_else(|| carol.finish()), "{steps} steps");
        let dead = alice.dead();
        assert_eq!((dead, alice.recover(|_| Fate::Free).freed), (1, 64), "{steps} steps");
        has_joined.is_none()
    });
}

/// A member joins and leaves, and is stopped at each step; another takes the seat when it can, and stays.
#[test]
fn who_leaves_takes_no_seat_from_who_comes() {
    each_step(|steps| {
        let segment = Segment::memfd("heir", Geometry { members: 2, ..SMALL }).unwrap();
        let alice = segment.join().unwrap();
        let leaves = member(&segment, drop);
        let has_left = leaves.step_half(steps);
        let dead = alice.dead();
        let heir = segment.join();
        let _ = heir.as_ref().map(|heir| heir.alloc(Layout::new::<u64>()).unwrap());
        let _ = has_left.unwrap_or_else(|| leaves.finish());
        assert_eq!((dead, alice.recover(|_| Fate::Free).freed), (0, 0), "{steps} steps");
        has_left.is_none()
    });
}
