//! Segments made by Rust and by C are one: each frees what the other has left. `NBBS_PEER` names
//! capi/tests/shared/peer.c, compiled; `capi/ci/shared.sh` does that.
#![cfg(target_os = "linux")]

use std::alloc::Layout;
use std::ffi::CStr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, id};
use std::sync::atomic::Ordering;

use nbbs_shared::{Fate, Geometry, Member, Offset, Segment};

const GEOMETRY: Geometry = Geometry { units: 300, unit_bytes: 64, members: 4 };

/// Runs the program in C, which ends by being killed.
fn peer(does: &str, path: &Path) {
    let program = std::env::var_os("NBBS_PEER").expect("NBBS_PEER names the program in C");
    let status = Command::new(program).arg(does).arg(path).status().expect("it runs");
    assert_eq!(status.signal(), Some(9), "{does}: {status}");
}

/// Recovers what the program in C held when it was killed: the message in the root, and another block. Frees both.
fn free_what_c_left(segment: &Segment, member: &Member) {
    let root = segment.root::<u8>().load(Ordering::Acquire).expect("C has set the root");
    let recovery =
        member.recover(|block| if block.offset == root { Fate::Keep } else { Fate::Free });
    // A block, and a slot of the heap.
    assert_eq!((recovery.members, recovery.kept, recovery.freed), (1, 1, 2), "{recovery:?}");
    assert_eq!(member.heap().trim(), 1);
    let message = member.block(root).expect("the block was kept").as_ptr().cast();
    // SAFETY: the block is this member's, and C has written a text with a 0 behind it.
    assert_eq!(unsafe { CStr::from_ptr(message) }, c"from C");
    assert_eq!(member.free(root), Ok(1024));
    assert_eq!(segment.count_free_bytes(), GEOMETRY.units * 64);
}

/// Leaves a message in the root that the program in C takes and frees.
fn leave_a_message(segment: &Segment, member: &Member) {
    let text = b"from Rust\0";
    let layout = Layout::from_size_align(200, 8).expect("a layout");
    let block: Offset<u8> = member.alloc(layout).expect("there is memory");
    let place = member.block(block).expect("it is this member's").as_ptr().cast::<u8>();
    // SAFETY: a block of this member's that is longer.
    unsafe { place.copy_from_nonoverlapping(text.as_ptr(), text.len()) };
    segment.root().store(Some(block), Ordering::Release);
}

#[test]
#[ignore = "takes a program in C: capi/ci/shared.sh"]
fn each_frees_what_the_other_has_left() {
    let path = std::env::temp_dir().join(format!("nbbs-peers-{}", id()));
    for made_by_c in [true, false] {
        let segment = if made_by_c {
            peer("create", &path);
            let segment = Segment::attach(&path).expect("C has made it");
            assert_eq!(segment.geometry(), GEOMETRY);
            free_what_c_left(&segment, &segment.join().expect("a seat"));
            segment
        } else {
            Segment::create(&path, GEOMETRY).expect("there is none")
        };
        let member = segment.join().expect("a seat");
        leave_a_message(&segment, &member);
        peer("attach", &path);
        free_what_c_left(&segment, &member);
        std::fs::remove_file(&path).expect("it is there");
    }
}
