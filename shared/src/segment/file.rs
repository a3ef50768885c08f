//! Files that are, or become, segments.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl, posix_fallocate};
use nix::libc::{O_NOCTTY, O_NONBLOCK, S_ISVTX, geteuid, off_t};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::lock::{self, CREATION};
use super::look::{Found, check_kind, check_unused, look};
use crate::error::AttachError;
use crate::header::{self, STATE_AT, State};
use crate::layout::Layout;

/// The bits of a file's mode that say who may use it.
const ACCESS: u32 = 0o777;

/// The bit that tells a file that a creator has created from one that was there. Whoever locks the file first, which may
/// be another creator, reads it and takes it away. Otherwise it has no meaning for a file.
const NEW: u32 = S_ISVTX;

/// The longest name of a memfd: Linux puts "memfd:" in front.
const MAX_NAME: usize = 255 - 6;

/// The most bytes that are reserved at once. On older versions of Linux a signal ends that for a tmpfs, and takes back
/// what it has reserved: all of a large segment might never come about between two signals of a timer.
const PIECE: u64 = 2 << 20;

/// How often a creator looks again for a file that was there a moment ago.
const OPENS: usize = 100;

/// How a file is opened that may be anything: a pipe that nobody writes to must not block.
pub(super) fn opening() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_NONBLOCK | O_NOCTTY);
    options
}

/// Refuses a path that the system would take to end sooner.
pub(super) fn check_path(path: &Path) -> Result<(), AttachError> {
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(AttachError::system("open a path that contains a NUL byte")(Errno::EINVAL));
    }
    Ok(())
}

/// Opens the file at `path`, creates it if there is none, and makes a segment in it. Returns what `map` makes of the file
/// before others may use it.
pub(super) fn create<T>(
    path: &Path,
    layout: &Layout,
    mode: u32,
    map: impl FnOnce(File) -> Result<T, AttachError>,
) -> Result<T, AttachError> {
    check_path(path)?;
    let (file, is_new) = open(path, mode).map_err(AttachError::io("open the file"))?;
    let locked = lock::lock(&file, CREATION).map_err(AttachError::system("lock the file"));
    // A file system without locks has none for anybody.
    if !locked.inspect_err(|_| remove_new(path, &file, is_new))? {
        return Err(AttachError::Making);
    }
    let made = create_locked(path, &file, is_new, || {
        take_over(&file, mode)?;
        let copy = || file.try_clone().map_err(AttachError::io("copy the file's descriptor"));
        make_anew(&file, layout, || map(copy()?))
    });
    // Closing the file would not do: children of this process may have copies of it.
    lock::unlock(&file, CREATION);
    made
}

/// Makes a segment in a file that the caller has locked, by `make`, unless there is one. If that fails, nothing is left
/// of a file that a creator has created.
fn create_locked<T>(
    path: &Path,
    file: &File,
    is_new: bool,
    make: impl FnOnce() -> Result<T, AttachError>,
) -> Result<T, AttachError> {
    check_kind(file)?;
    // Twice: who joins after the members were asked for again finds the header as the first look did.
    for _ in 0..2 {
        match look(file)? {
            Found::Whole(_) => return Err(AttachError::Exists),
            Found::Half(layout) => check_unused(file, &layout)?,
            Found::Empty => {}
        }
    }
    // Another creator may have failed, and removed it, since it was opened.
    if !leads_to(path, file) {
        return Err(AttachError::Making);
    }
    let is_new = is_new
        || file.metadata().is_ok_and(|found| found.mode() & NEW != 0 && is_the_callers(&found));
    // Empty, or begun by a process that died.
    make().inspect_err(|_| remove_new(path, file, is_new))
}

/// Removes a file if a creator has created it, unless somebody else has put another in its place.
fn remove_new(path: &Path, file: &File, is_new: bool) {
    if is_new && leads_to(path, file) {
        // The file, not a link by which it was opened. What fails here changes nothing about the caller's error.
        let _ = fs::canonicalize(path).and_then(fs::remove_file);
    }
}

/// Opens the file at `path`, and returns whether this call has created it.
fn open(path: &Path, mode: u32) -> io::Result<(File, bool)> {
    let mut options = opening();
    options.write(true).mode(mode | NEW);
    let mut tries = 0;
    loop {
        match options.clone().create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, true)),
        }
        match options.open(path) {
            // A creator that failed has removed it in between, or it is a link to nothing.
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < OPENS => tries += 1,
            opened => return opened.map(|file| (file, false)),
        }
    }
}

/// Returns whether a path leads to a file that was opened by it.
fn leads_to(path: &Path, file: &File) -> bool {
    let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let (there, opened) = (fs::metadata(path).map(id), file.metadata().map(id));
    matches!((there, opened), (Ok(there), Ok(opened)) if there == opened)
}

fn is_the_callers(metadata: &Metadata) -> bool {
    // SAFETY: it always returns the user, and does nothing else.
    metadata.uid() == unsafe { geteuid() }
}

/// Lets nobody use a file that may have been there before, but those who may use a segment of this mode.
fn take_over(file: &File, mode: u32) -> Result<(), AttachError> {
    let metadata = file.metadata().map_err(AttachError::io("look at the file"))?;
    if !is_the_callers(&metadata) {
        return Err(AttachError::system("make a segment in another user's file")(Errno::EPERM));
    }
    let (is, may_be) = (metadata.mode() & (ACCESS | NEW), metadata.mode() & mode & ACCESS);
    if is == may_be {
        return Ok(());
    }
    let set = file.set_permissions(Permissions::from_mode(may_be));
    set.map_err(AttachError::io("set the mode of the file"))
}

/// Makes a segment in memory without a name, which can neither shrink nor grow.
pub(super) fn create_unnamed(name: &OsStr, layout: &Layout) -> Result<File, AttachError> {
    if name.len() > MAX_NAME {
        return Err(AttachError::Name { bytes: name.len(), max: MAX_NAME });
    }
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let file = memfd_create(name, flags).map_err(AttachError::system("make a memfd"))?;
    let file = File::from(file);
    make(&file, layout, || Ok(()))?;
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(AttachError::system("seal the memfd"))?;
    Ok(file)
}

/// Makes a segment in a file, whatever is in it. If that fails, the file is empty.
fn make_anew<T>(
    file: &File,
    layout: &Layout,
    map: impl FnOnce() -> Result<T, AttachError>,
) -> Result<T, AttachError> {
    let empty = || file.set_len(0).map_err(AttachError::io("empty the file"));
    empty()?;
    // What fails here changes nothing about the error.
    make(file, layout, map).inspect_err(|_| drop(empty()))
}

/// Writes a segment into an empty file: first that it is being made, last, if `map` succeeds, that it is whole.
/// Everything else is zero.
fn make<T>(
    file: &File,
    layout: &Layout,
    map: impl FnOnce() -> Result<T, AttachError>,
) -> Result<T, AttachError> {
    let write = |bytes: &[u8], at| {
        file.write_all_at(bytes, at).map_err(AttachError::io("write the header"))
    };
    write(&header::encode(layout, State::Making), 0)?;
    // Reserved now, so that nobody meets a full file system at the first use of a page. A layout has no more bytes than an
    // `off_t` can express.
    in_pieces(layout.bytes, |at, bytes| posix_fallocate(file, at as off_t, bytes as off_t))
        .map_err(AttachError::system("reserve memory for the segment"))?;
    let mapped = map()?;
    write(&State::Whole.bytes(), STATE_AT)?;
    Ok(mapped)
}

/// Calls `reserve` with the first byte and the number of bytes of each piece in turn, again if a signal has ended it.
fn in_pieces(
    bytes: u64,
    mut reserve: impl FnMut(u64, u64) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut at = 0;
    while at < bytes {
        let piece = PIECE.min(bytes - at);
        match reserve(at, piece) {
            Ok(()) => at += piece,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::{Path, PathBuf};

    use nix::errno::Errno;

    use super::super::look::check;
    use super::{NEW, PIECE, create, in_pieces, leads_to};
    use crate::error::AttachError;
    use crate::layout::{Geometry, Layout};

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("nbbs-{name}-{}", std::process::id()))
    }

    /// Makes a segment whose creator gets as far as `map`, which refuses.
    fn refused(path: &Path, map: impl FnOnce(File)) {
        let layout = Layout::new(Geometry { units: 64, unit_bytes: 64, members: 2 }).unwrap();
        let refuse = |file| {
            map(file);
            Err::<(), _>(AttachError::Foreign)
        };
        assert_eq!(create(path, &layout, 0o600, refuse), Err(AttachError::Foreign));
    }

    #[test]
    fn a_path_leads_to_its_file_until_that_is_removed() {
        let path = path("leads");
        let file = File::create(&path).unwrap();
        assert!(leads_to(&path, &file));
        fs::remove_file(&path).unwrap();
        assert!(!leads_to(&path, &file));
        let other = File::create(&path).unwrap();
        assert!(leads_to(&path, &other) && !leads_to(&path, &file));
        fs::remove_file(path).unwrap();
    }

    /// Signals end every other call, and every call for more than a piece.
    #[test]
    fn all_is_reserved_though_signals_come() {
        for bytes in [4096, PIECE - 4096, PIECE, PIECE + 4096, 5 * PIECE] {
            let (mut calls, mut end) = (0, 0);
            let reserve = |at, piece| {
                calls += 1;
                if piece > PIECE || calls % 2 == 1 {
                    return Err(Errno::EINTR);
                }
                assert_eq!(at, end);
                end += piece;
                Ok(())
            };
            assert_eq!(in_pieces(bytes, reserve), Ok(()));
            assert_eq!((end, calls), (bytes, 2 * bytes.div_ceil(PIECE)));
        }
        let full = |at, _| if at == 0 { Ok(()) } else { Err(Errno::ENOSPC) };
        assert_eq!(in_pieces(2 * PIECE, full), Err(Errno::ENOSPC));
    }

    #[test]
    fn nothing_is_left_of_what_cannot_be_mapped() {
        let path = path("unmapped");
        refused(&path, |_| {
            let other = File::open(&path).unwrap();
            assert_eq!(check(&other), Err(AttachError::Making));
        });
        assert!(!path.exists());
        File::create(&path).unwrap();
        refused(&path, drop);
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        fs::remove_file(path).unwrap();
    }

    /// Its creator has not locked it yet.
    #[test]
    fn nothing_is_left_of_what_another_has_created() {
        let (path, link) = (path("created"), path("link"));
        let create = || {
            let file = File::create(&path).unwrap();
            file.set_permissions(Permissions::from_mode(0o600 | NEW)).unwrap();
        };
        create();
        refused(&path, drop);
        assert!(!path.exists());
        create();
        symlink(&path, &link).unwrap();
        refused(&link, drop);
        assert!(!path.exists() && link.is_symlink());
        fs::remove_file(link).unwrap();
    }

    #[test]
    fn what_has_taken_the_place_of_a_file_stays() {
        let path = path("replaced");
        refused(&path, |_| {
            fs::remove_file(&path).unwrap();
            fs::write(&path, "another's").unwrap();
        });
        assert_eq!(fs::read_to_string(&path).unwrap(), "another's");
        fs::remove_file(path).unwrap();
    }

    /// As a child has it that was forked in the meantime.
    #[test]
    fn a_copy_of_a_refused_creators_file_locks_nobody_out() {
        let path = path("copied");
        File::create(&path).unwrap();
        let mut copy = None;
        refused(&path, |file| copy = Some(file));
        refused(&path, drop);
        fs::remove_file(path).unwrap();
        assert!(copy.is_some());
    }
}
