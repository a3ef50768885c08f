//! Files that are segments, were to become one, or are none.
#![cfg(target_os = "linux")]

use std::alloc::Layout;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::process::id;
use std::sync::atomic::Ordering;

use nbbs_shared::{
    AllocError, AttachError, Fate, Geometry, GeometryError, JoinError, Offset, OffsetError, Segment,
};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{
    _exit, EFBIG, EINVAL, ENOENT, ESTALE, F_UNLCK, F_WRLCK, RLIMIT_FSIZE, SEEK_SET, SIG_ERR,
    SIG_IGN, SIGXFSZ, flock, rlimit, setrlimit, signal,
};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use proptest::prelude::*;

const GEOMETRY: Geometry = Geometry { units: 300, unit_bytes: 64, members: 4 };

/// A path that is nobody else's, and a file there that goes with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let place = Self(std::env::temp_dir().join(format!("nbbs-shared-{}-{name}", id())));
        let _ = fs::remove_file(&place.0);
        place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).unwrap()
}

#[test]
fn what_one_makes_another_attaches() {
    let place = Place::new("attach");
    let one = Segment::create(&place.0, GEOMETRY).unwrap();
    let two = Segment::attach(&place.0).unwrap();
    let (alice, bob) = (one.join().unwrap(), two.join().unwrap());
    let block = alice.alloc(layout(200)).unwrap();
    assert_eq!(two.owner(block), Ok(Some(alice.id())));
    assert_eq!(
        bob.free(block),
        Err(OffsetError::NotYours { offset: block.bytes(), owner: Some(alice.id()) })
    );
    assert_eq!(bob.take_from(block, alice.id()), Ok(alice.id()));
    assert_eq!(bob.take_from(block, alice.id()), Ok(bob.id()));
    assert_eq!(bob.take(block), Ok(bob.id()));
    // SAFETY: both mappings of a block that is Bob's.
    unsafe {
        one.at(block).unwrap().write(9);
        assert_eq!(two.at(block).unwrap().read(), 9);
    }
    assert_eq!(bob.free(block), Ok(256));
    assert_eq!(bob.free(block), Err(OffsetError::NotYours { offset: block.bytes(), owner: None }));
    assert_eq!(one.count_free_bytes(), 300 * 64);
}

#[test]
fn a_segment_of_other_dimensions_is_noticed() {
    let segment = Segment::memfd("dimensions", GEOMETRY).unwrap();
    assert_eq!(segment.check_geometry(GEOMETRY), Ok(()));
    let units = Geometry { units: 301, ..GEOMETRY };
    let unit_bytes = Geometry { unit_bytes: 128, ..GEOMETRY };
    let members = Geometry { members: 3, ..GEOMETRY };
    for expected in [units, unit_bytes, members] {
        let refused = GeometryError::Unexpected { found: GEOMETRY, expected };
        assert_eq!(segment.check_geometry(expected), Err(refused));
    }
}

#[test]
fn only_the_owner_may_open_it() {
    let place = Place::new("mode");
    Segment::create(&place.0, GEOMETRY).unwrap();
    assert_eq!(fs::metadata(&place.0).unwrap().permissions().mode() & 0o7777, 0o600);
    let place = Place::new("mode-given");
    Segment::create_for(&place.0, GEOMETRY, 0o400).unwrap();
    assert_eq!(fs::metadata(&place.0).unwrap().permissions().mode() & 0o7777, 0o400);
}

#[test]
fn a_file_that_was_there_is_for_nobody_else_either() {
    for (before, asked, after) in
        [(0o666, 0o600, 0o600), (0o640, 0o660, 0o640), (0o600, 0o660, 0o600)]
    {
        let place = Place::new("mode-before");
        fs::write(&place.0, []).unwrap();
        fs::set_permissions(&place.0, fs::Permissions::from_mode(before)).unwrap();
        Segment::create_for(&place.0, GEOMETRY, asked).unwrap();
        assert_eq!(fs::metadata(&place.0).unwrap().permissions().mode() & 0o7777, after);
    }
    let place = Place::new("another-users");
    fs::write(&place.0, []).unwrap();
    // As that of a creator who has not locked it yet.
    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o1600)).unwrap();
    // Only root can give a file away.
    if chown(&place.0, Some(1), None).is_ok() {
        let refused = Segment::create(&place.0, GEOMETRY).unwrap_err();
        assert!(matches!(refused.error, AttachError::System { .. }), "{refused}");
        assert_eq!(fs::metadata(&place.0).unwrap().len(), 0);
    }
}

#[test]
fn a_link_leads_to_a_file_that_is_there() {
    let (place, link) = (Place::new("linked"), Place::new("link"));
    symlink(&place.0, &link.0).unwrap();
    let refused = Segment::create(&link.0, GEOMETRY).unwrap_err();
    let is_missing = matches!(refused.error, AttachError::System { errno: ENOENT, .. });
    assert!(is_missing && !place.0.exists(), "{refused}");
    fs::write(&place.0, []).unwrap();
    Segment::create(&link.0, GEOMETRY).unwrap();
    assert!(Segment::attach(&place.0).is_ok() && link.0.is_symlink());
}

#[test]
fn what_is_none_is_refused_and_stays_as_it_is() {
    let place = Place::new("foreign");
    for content in [&b"x"[..], b"nbbs-seg", &[0; 5000], &[0xff; 5000]] {
        fs::write(&place.0, content).unwrap();
        let refused = Segment::attach(&place.0).unwrap_err().error;
        assert!(matches!(refused, AttachError::Foreign | AttachError::Short { .. }), "{refused}");
        assert!(Segment::create(&place.0, GEOMETRY).is_err());
        assert_eq!(fs::read(&place.0).unwrap(), content);
    }
    let attach = |path| Segment::attach(path).unwrap_err().error;
    assert_eq!(attach("/dev/null"), AttachError::Foreign);
    assert_eq!(attach("/"), AttachError::Foreign);
    let refused = Segment::create("/dev/zero", GEOMETRY).unwrap_err();
    assert_eq!(refused.error, AttachError::Foreign);
    assert!(matches!(attach("/nowhere"), AttachError::System { .. }));
}

/// What a program prints of a segment does not grow with it.
#[test]
fn a_segment_prints_its_dimensions() {
    let segment = Segment::memfd("prints", GEOMETRY).unwrap();
    let said = "Segment { geometry: Geometry { units: 300, unit_bytes: 64, members: 4 }, .. }";
    assert_eq!(format!("{segment:?}"), said);
}

#[test]
fn an_error_names_the_path_and_the_rule() {
    let place = Place::new("five-bytes");
    fs::write(&place.0, b"nbbs-").unwrap();
    let said = "the file has 5 bytes: a segment's header has 64";
    for refused in [Segment::attach(&place.0), Segment::create(&place.0, GEOMETRY)] {
        assert_eq!(refused.unwrap_err().to_string(), format!("{:?}: {said}", place.0));
    }
    let missing = Segment::attach("/nowhere/at/all").unwrap_err().to_string();
    assert!(missing.starts_with("\"/nowhere/at/all\": cannot open the file"), "{missing}");
    let nothing = Segment::create(&place.0, Geometry { units: 0, ..GEOMETRY }).unwrap_err();
    let said = format!("{:?}: 0 units: a segment has 1 to ", place.0);
    assert!(nothing.to_string().starts_with(&said), "{nothing}");
    for refused in [Segment::attach("a\0b"), Segment::create("a\0b", GEOMETRY)] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused.error, AttachError::System { errno: EINVAL, .. }), "{refused}");
        let said = r#""a\0b": cannot open a path that contains a NUL byte: "#;
        assert!(refused.to_string().starts_with(said), "{refused}");
    }
}

#[test]
fn truncated_segments_are_refused() {
    let place = Place::new("truncated");
    Segment::create(&place.0, GEOMETRY).unwrap();
    let file = OpenOptions::new().write(true).open(&place.0).unwrap();
    let least = GEOMETRY.file_bytes().unwrap();
    for bytes in [least - 1, least / 2, 4096, 65] {
        file.set_len(bytes).unwrap();
        assert_eq!(
            Segment::attach(&place.0).unwrap_err().error,
            AttachError::Short { bytes, least }
        );
    }
    file.set_len(63).unwrap();
    assert_eq!(
        Segment::attach(&place.0).unwrap_err().error,
        AttachError::Short { bytes: 63, least: 64 }
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64 * testkit::depth() as u32))]

    /// Whatever stands in the file but the units: refused, or attached; and nobody crashes who then looks and joins.
    #[test]
    fn fuzzed_segments(writes in prop::collection::vec((0..2_usize, any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let place = Place::new("fuzzed");
        Segment::create(&place.0, GEOMETRY).unwrap();
        let len = GEOMETRY.file_bytes().unwrap() as usize;
        let file = OpenOptions::new().write(true).open(&place.0).unwrap();
        for (whole, at, byte) in writes {
            // The header more often than the rest.
            file.write_all_at(&[byte], at.index([64, len][whole]) as u64).unwrap();
        }
        if let Ok(segment) = Segment::attach(&place.0) {
            prop_assert_eq!(segment.geometry(), GEOMETRY);
            // Whatever stands there is found inside the segment, or refused.
            let root = segment.root::<u64>().load(Ordering::Acquire);
            let at = root.and_then(|root| segment.at(root).ok());
            prop_assert!(at.is_none_or(|at| segment.offset_at(at.as_ptr()) == root));
            prop_assert!(segment.join().is_ok());
        }
    }
}

/// Locks the byte that creators lock, as one does that has not come to its end.
fn creating(file: &File) {
    locking(file, 1 << 30);
}

fn locking(file: &File, byte: u32) {
    let at = flock {
        l_type: F_WRLCK as _,
        l_whence: SEEK_SET as _,
        l_start: byte.into(),
        l_len: 1,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_OFD_SETLK(&at)).unwrap();
}

/// A process of 32 bits names no bytes from 2^31 on.
#[test]
fn the_locks_of_members_are_seen_by_any_process() {
    let segment = Segment::memfd("locks", GEOMETRY).unwrap();
    let locked = || {
        let mut found = flock {
            l_type: F_WRLCK as _,
            l_whence: SEEK_SET as _,
            l_start: 0,
            l_len: i32::MAX.into(),
            l_pid: 0,
        };
        fcntl(&segment, FcntlArg::F_OFD_GETLK(&mut found)).unwrap();
        i32::from(found.l_type) != F_UNLCK
    };
    assert!(!locked());
    let member = segment.join().unwrap();
    assert!(locked());
    drop(member);
    assert!(!locked());
}

#[test]
fn creation_that_died_is_seen_and_taken_over() {
    let place = Place::new("half");
    Segment::create(&place.0, GEOMETRY).unwrap();
    let whole = fs::read(&place.0).unwrap();
    // Empty; with a header; with room for some or all; each as a creator leaves it that dies, and while it lives.
    for len in [0, 64, 5000, whole.len()] {
        let mut bytes = whole[..len].to_vec();
        if len > 0 {
            bytes[56] = 1;
        }
        fs::write(&place.0, &bytes).unwrap();
        {
            let creator = OpenOptions::new().read(true).write(true).open(&place.0).unwrap();
            creating(&creator);
            assert_eq!(Segment::attach(&place.0).unwrap_err().error, AttachError::Making);
            assert_eq!(Segment::create(&place.0, GEOMETRY).unwrap_err().error, AttachError::Making);
        }
        // An empty file may be that of a creator that has not locked it yet.
        let left = if len == 0 { AttachError::Making } else { AttachError::HalfMade };
        assert_eq!(Segment::attach(&place.0).unwrap_err().error, left);
        let larger = Geometry { units: 500, ..GEOMETRY };
        let taken_over = Segment::create(&place.0, larger).unwrap();
        assert_eq!(taken_over.geometry(), larger);
        assert_eq!(Segment::attach(&place.0).unwrap().count_free_bytes(), 500 * 64);
        assert_eq!(Segment::create(&place.0, GEOMETRY).unwrap_err().error, AttachError::Exists);
    }
}

/// Somebody has written over the header: what members use is not made anew.
#[test]
fn nobody_takes_over_what_has_members() {
    let place = Place::new("members");
    let segment = Segment::create(&place.0, GEOMETRY).unwrap();
    let member = segment.join().unwrap();
    let block = member.alloc(layout(100)).unwrap();
    let file = OpenOptions::new().write(true).open(&place.0).unwrap();
    file.write_all_at(&[1], 56).unwrap();
    let corrupt = AttachError::Corrupt { field: "state", value: 1 };
    assert_eq!(Segment::create(&place.0, GEOMETRY).unwrap_err().error, corrupt);
    assert_eq!(Segment::attach(&place.0).unwrap_err().error, corrupt);
    assert_eq!(member.free(block), Ok(128));
    drop(member);
    // Nor what had members.
    for refused in [Segment::attach(&place.0), Segment::create(&place.0, GEOMETRY)] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused.error, AttachError::Used { at: 4096.. }), "{refused}");
    }
    drop(segment);
    file.write_all_at(&[2], 56).unwrap();
    Segment::attach(&place.0).unwrap();
}

/// Who has attached joins what is in the file now, if that is the same.
#[test]
fn nobody_joins_what_is_not_there_any_more() {
    let place = Place::new("not-there");
    let segment = Segment::create(&place.0, GEOMETRY).unwrap();
    let file = OpenOptions::new().write(true).open(&place.0).unwrap();
    for geometry in [Geometry { units: 500, ..GEOMETRY }, GEOMETRY] {
        file.set_len(0).unwrap();
        Segment::create(&place.0, geometry).unwrap();
        assert_eq!(segment.join().is_ok(), geometry == GEOMETRY);
    }
    file.set_len(0).unwrap();
    let refused = segment.join().unwrap_err();
    assert!(matches!(refused, JoinError::System { errno: ESTALE, .. }), "{refused}");
    let said = "cannot find the segment in its file any more: ";
    assert!(refused.to_string().starts_with(said), "{refused}");
}

/// Calls `act` in a process that may not make files longer than this, and returns what it says.
fn with_files_up_to(bytes: u64, act: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls what other threads cannot have locked, but `malloc`, which is made for that.
    match unsafe { fork() }.expect("a process") {
        ForkResult::Parent { child } => waitpid(child, None) == Ok(WaitStatus::Exited(child, 0)),
        ForkResult::Child => {
            let limit = rlimit { rlim_cur: bytes as _, rlim_max: bytes as _ };
            // SAFETY: both change this process only, which ends here; a limit is read.
            let is_set = unsafe {
                signal(SIGXFSZ, SIG_IGN) != SIG_ERR
                    && setrlimit(RLIMIT_FSIZE, &raw const limit) == 0
            };
            let did = is_set && act();
            // SAFETY: ends the child, and nothing of the parent's with it.
            unsafe { _exit(i32::from(!did)) }
        }
    }
}

#[test]
fn a_segment_that_has_no_room_leaves_nothing() {
    let place = Place::new("no-room");
    // Nothing in the child may panic.
    let refused = || {
        let refused = Segment::create(&place.0, GEOMETRY).map_err(|refused| refused.error);
        matches!(refused, Err(AttachError::System { errno: EFBIG, .. }))
    };
    assert!(with_files_up_to(4096, refused));
    assert!(!place.0.exists());
    // One that was there stays, and is empty.
    Segment::create(&place.0, GEOMETRY).unwrap();
    let file = OpenOptions::new().write(true).open(&place.0).unwrap();
    file.write_all_at(&[1], 56).unwrap();
    assert!(with_files_up_to(4096, refused));
    assert_eq!(fs::metadata(&place.0).unwrap().len(), 0);
    assert_eq!(Segment::attach(&place.0).unwrap_err().error, AttachError::Making);
    Segment::create(&place.0, GEOMETRY).unwrap();
}

#[test]
fn names_are_as_long_as_they_may_be() {
    assert!(Segment::memfd("n".repeat(249), GEOMETRY).is_ok());
    let refused = Segment::memfd("n".repeat(250), GEOMETRY).unwrap_err();
    assert_eq!(refused.to_string(), "a name of 250 bytes: that of a memfd has at most 249");
}

#[test]
fn memory_without_a_name_cannot_be_shortened() {
    let segment = Segment::memfd("sealed", GEOMETRY).unwrap();
    let file = File::from(segment.as_fd().try_clone_to_owned().unwrap());
    assert!(file.set_len(100).is_err());
    assert!(file.set_len(1 << 30).is_err());
    let again = Segment::attach_fd(file.into()).unwrap();
    assert_eq!(again.geometry(), GEOMETRY);
}

#[test]
fn seats_are_left_and_taken_again() {
    let segment = Segment::memfd("seats", GEOMETRY).unwrap();
    let mut members: Vec<_> = (0..4).map(|_| segment.join().unwrap()).collect();
    assert_eq!(segment.join().unwrap_err(), JoinError::Full { members: 4 });
    let kept = members[2].alloc(layout(100)).unwrap();
    let left = members.remove(2).id();
    let heir = segment.join().unwrap();
    assert_eq!((heir.id().seat, heir.id().generation), (left.seat, left.generation + 1));
    // What the one before had is not the heir's, unless it recovers it.
    assert!(heir.free(kept).is_err());
    let found = heir.recover(|block| {
        assert_eq!((block.offset, block.bytes), (kept, 128));
        Fate::Keep
    });
    assert_eq!((found.kept, found.freed, found.pending), (1, 0, 0));
    assert_eq!(heir.free(kept), Ok(128));
}

/// As they are while another joins, before its turn, or leaves, after its turn.
#[test]
fn seats_that_are_being_taken_are_told_from_those_that_are() {
    let segment = Segment::memfd("changing", GEOMETRY).unwrap();
    let mut members: Vec<_> = (0..4).map(|_| segment.join().unwrap()).collect();
    assert_eq!(segment.join().unwrap_err(), JoinError::Full { members: 4 });
    members.truncate(2);
    let path = format!("/proc/self/fd/{}", segment.as_fd().as_raw_fd());
    let other = |seat: u32| {
        let other = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        locking(&other, (1 << 30) + 1 + seat);
        other
    };
    let (second, third) = (other(2), other(3));
    let refused = segment.join().unwrap_err();
    assert_eq!(refused, JoinError::Changing { members: 4, changing: 2 });
    let said = "none of 4 seats is free: 2 are just being taken or left";
    assert_eq!(refused.to_string(), said);
    drop(third);
    members.push(segment.join().unwrap());
    assert_eq!(members[2].id().seat, 3);
    let refused = segment.join().unwrap_err();
    assert_eq!(refused, JoinError::Changing { members: 4, changing: 1 });
    drop(second);
    members.push(segment.join().unwrap());
    assert_eq!(segment.join().unwrap_err(), JoinError::Full { members: 4 });
}

#[test]
fn offsets_are_checked() {
    let segment = Segment::memfd("offsets", GEOMETRY).unwrap();
    let member = segment.join().unwrap();
    let end = GEOMETRY.file_bytes().unwrap();
    for bytes in [1, 8, 63, 4096, end - 1, end, u64::MAX] {
        let offset = Offset::<u64>::new(bytes).unwrap();
        assert!(member.free(offset).is_err() && member.take(offset).is_err(), "{bytes}");
        assert!(member.block(offset).is_err() && segment.owner(offset).is_err(), "{bytes}");
        assert!(segment.at(offset).is_err(), "{bytes}");
    }
    let block = member.alloc(layout(8)).unwrap();
    let within = Offset::<u64>::new(block.bytes() + 4).unwrap();
    assert_eq!(
        segment.at(within),
        Err(OffsetError::Misaligned { offset: within.bytes(), align: 8 })
    );
    assert_eq!(
        member.free(within),
        Err(OffsetError::Misaligned { offset: within.bytes(), align: 64 })
    );
    // In the last unit, too: a slot may lie there.
    let outside = member.take(Offset::<u64>::new(1).unwrap()).unwrap_err();
    let OffsetError::Outside { end, .. } = outside else { panic!("{outside}") };
    for back in [1, 16, 63] {
        let offset = end - back;
        let late = Offset::<u64>::new(offset).unwrap();
        assert_eq!(member.take(late), Err(OffsetError::Misaligned { offset, align: 64 }));
    }
}

#[test]
fn sizes_and_alignments() {
    let segment = Segment::memfd("sizes", GEOMETRY).unwrap();
    let member = segment.join().unwrap();
    let asked = |size, align| Layout::from_size_align(size, align).unwrap();
    for (size, align, bytes) in
        [(0, 1, 64), (1, 1, 64), (65, 8, 128), (1, 4096, 4096), (4097, 64, 8192)]
    {
        let block = member.alloc(asked(size, align)).unwrap();
        let at = member.block(block).unwrap();
        assert_eq!((at.len() as u64, at.cast::<u8>().addr().get() % align), (bytes, 0));
        assert_eq!(member.free(block), Ok(bytes));
    }
    let large = asked(20_000, 8);
    assert_eq!(member.alloc(large), Err(AllocError::TooLarge { layout: large, max: 256 * 64 }));
    let aligned = asked(64, 8192);
    assert_eq!(member.alloc(aligned), Err(AllocError::Alignment { layout: aligned, max: 4096 }));
    let small = Segment::memfd("small", Geometry { units: 8, ..GEOMETRY }).unwrap();
    let page = asked(1, 4096);
    let refused = small.join().unwrap().alloc(page);
    assert_eq!(refused, Err(AllocError::Alignment { layout: page, max: 8 * 64 }));
    let whole = asked(256 * 64, 8);
    member.alloc(whole).unwrap();
    assert_eq!(member.alloc(whole), Err(AllocError::Exhausted { layout: whole }));
}
