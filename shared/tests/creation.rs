//! Files that a creator finds: what is no half-made segment is refused, and stays as it is.
#![cfg(target_os = "linux")]

use std::alloc::Layout;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::process::id;
use std::sync::atomic::Ordering;

use nbbs_shared::{AttachError, Geometry, Segment};
use nix::libc::{EACCES, EISDIR};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

const GEOMETRY: Geometry = Geometry { units: 300, unit_bytes: 64, members: 4 };

/// Position of the state in the header, and the state of a segment that is being made.
const STATE_AT: usize = 56;
const MAKING: u8 = 1;

/// A path that is nobody else's, and whatever is there.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("nbbs-creation-{}-{name}", id())))
    }

    fn create(&self) -> AttachError {
        Segment::create(&self.0, GEOMETRY).unwrap_err().error
    }

    fn attach(&self) -> AttachError {
        Segment::attach(&self.0).unwrap_err().error
    }

    /// Writes a file, and has a creator refuse it.
    fn refused(&self, content: &[u8]) -> AttachError {
        fs::write(&self.0, content).unwrap();
        let refused = self.create();
        assert!(fs::read(&self.0).unwrap() == content, "changed: {refused}");
        refused
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0).or_else(|_| fs::remove_dir(&self.0));
    }
}

/// A segment whose members have left, and one of them a block.
fn used(place: &Place) -> Vec<u8> {
    let segment = Segment::create(&place.0, GEOMETRY).unwrap();
    segment.join().unwrap().alloc(Layout::new::<[u64; 50]>()).unwrap();
    fs::read(&place.0).unwrap()
}

#[test]
fn what_a_wrong_header_begins_is_not_lost() {
    let place = Place::new("header");
    let whole = used(&place);
    for at in 0..64 {
        for wrong in [whole[at] ^ 1, whole[at] ^ 0x80, whole[at] ^ 0xff, MAKING] {
            let mut content = whole.clone();
            content[at] = wrong;
            place.refused(&content);
        }
    }
    for bytes in [1, 8, 63, 64, 65, 4096, whole.len() - 1] {
        assert!(matches!(place.refused(&whole[..bytes]), AttachError::Short { .. }), "{bytes}");
    }
}

/// By its header a creator has died over it, who cannot have written this.
#[test]
fn what_has_been_used_is_not_half_made() {
    let place = Place::new("used");
    let mut joined = used(&place);
    joined[STATE_AT] = MAKING;
    // The turn of the first member.
    let AttachError::Used { at } = place.refused(&joined) else { panic!("not used") };
    assert!((4096..4104).contains(&at), "{at}");
    assert_eq!(place.attach(), AttachError::Used { at });
    let said = format!("the segment is not whole by its header, but was used: byte {at} is not 0");
    assert_eq!(AttachError::Used { at }.to_string(), said);

    fs::remove_file(&place.0).unwrap();
    let segment = Segment::create(&place.0, GEOMETRY).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&place.0).unwrap();
    file.write_all_at(&[MAKING], STATE_AT as u64).unwrap();
    assert_eq!(place.attach(), AttachError::HalfMade);
    segment.root::<u64>().store(nbbs_shared::Offset::new(1 << 20), Ordering::Release);
    assert_eq!(place.attach(), AttachError::Used { at: 66 });
    assert_eq!(place.create(), AttachError::Used { at: 66 });
    segment.root::<u64>().store(None, Ordering::Release);
    Segment::create(&place.0, GEOMETRY).unwrap();
}

#[test]
fn other_files_stay_as_they_are() {
    let place = Place::new("other");
    let bytes = GEOMETRY.file_bytes().unwrap() as usize;
    let text = b"# Notes\n\nA text that is longer than a header, and begins with something else.\n";
    let (zeros, ones) = (vec![0; bytes], vec![0xff; bytes]);
    for content in [&text[..], &zeros[..64], &zeros, &ones] {
        assert_eq!(place.refused(content), AttachError::Foreign);
    }
    for content in [&b"x"[..], b"nbbs-seg", &[0; 63]] {
        let bytes = content.len() as u64;
        assert_eq!(place.refused(content), AttachError::Short { bytes, least: 64 });
    }
}

#[test]
fn a_file_that_may_not_be_written_stays_as_it_is() {
    let place = Place::new("read-only");
    fs::write(&place.0, "a text").unwrap();
    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o400)).unwrap();
    let refused = place.create();
    // Root may write it.
    let is_right =
        matches!(refused, AttachError::System { errno: EACCES, .. } | AttachError::Short { .. });
    assert!(is_right, "{refused}");
    assert_eq!(fs::metadata(&place.0).unwrap().permissions().mode() & 0o7777, 0o400);
    assert_eq!(fs::read(&place.0).unwrap(), b"a text");
}

/// Opening a pipe must not wait for another process.
#[test]
fn what_is_no_file_is_refused() {
    let place = Place::new("directory");
    fs::create_dir(&place.0).unwrap();
    let refused = place.create();
    assert!(matches!(refused, AttachError::System { errno: EISDIR, .. }), "{refused}");
    assert!(place.0.is_dir());
    let place = Place::new("pipe");
    mkfifo(&place.0, Mode::from_bits_truncate(0o600)).unwrap();
    assert_eq!(place.create(), AttachError::Foreign);
    assert_eq!(place.attach(), AttachError::Foreign);
}
