//! Files that are, or become, segments.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl, posix_fallocate};
use nix::libc::{O_NOCTTY, O_NONBLOCK, geteuid, off_t};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::lock::{self, CREATION};
use super::look::{Found, check_kind, look};
use crate::error::AttachError;
use crate::header::{self, STATE_AT, State};
use crate::layout::Layout;

/// The bits of a file's mode that say who may use it.
const ACCESS: u32 = 0o777;

/// The longest name of a memfd: Linux puts "memfd:" in front.
const MAX_NAME: usize = 255 - 6;

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

/// Opens the file at `path`, creates it if there is none, and makes a segment in it.
pub(super) fn create(path: &Path, layout: &Layout, mode: u32) -> Result<File, AttachError> {
    check_path(path)?;
    let (file, is_new) = open(path, mode).map_err(AttachError::io("open the file"))?;
    if !lock::lock(&file, CREATION).map_err(AttachError::system("lock the file"))? {
        return Err(AttachError::Making);
    }
    // Closing the file releases the lock if this fails.
    check_kind(&file)?;
    if let Found::Whole(_) = look(&file)? {
        return Err(AttachError::Exists);
    }
    // Another creator may have failed, and removed it, since it was opened.
    if !leads_to(path, &file) {
        return Err(AttachError::Making);
    }
    // Empty, or begun by a process that died.
    take_over(&file, mode)?;
    if let Err(error) = make_anew(&file, layout) {
        give_up(path, &file, is_new);
        return Err(error);
    }
    lock::unlock(&file, CREATION);
    Ok(file)
}

/// Opens the file at `path`, and returns whether this call has created it.
fn open(path: &Path, mode: u32) -> io::Result<(File, bool)> {
    let mut options = opening();
    options.write(true).mode(mode);
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            options.create(true).truncate(false).open(path).map(|file| (file, false))
        }
        created => created.map(|file| (file, true)),
    }
}

/// Returns whether a path leads to a file that was opened by it.
fn leads_to(path: &Path, file: &File) -> bool {
    let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let (there, opened) = (fs::metadata(path).map(id), file.metadata().map(id));
    matches!((there, opened), (Ok(there), Ok(opened)) if there == opened)
}

/// Gives back the memory of a segment that could not be made, while the file is locked.
fn give_up(path: &Path, file: &File, is_new: bool) {
    // What fails here changes nothing about the error.
    let _ = file.set_len(0);
    if is_new {
        let _ = fs::remove_file(path);
    }
}

/// Lets nobody use a file that may have been there before, but those who may use a segment of this mode.
fn take_over(file: &File, mode: u32) -> Result<(), AttachError> {
    let metadata = file.metadata().map_err(AttachError::io("look at the file"))?;
    // SAFETY: it always returns the user, and nothing else.
    if metadata.uid() != unsafe { geteuid() } {
        return Err(AttachError::system("make a segment in another user's file")(Errno::EPERM));
    }
    let (is, may_be) = (metadata.mode() & ACCESS, metadata.mode() & mode & ACCESS);
    if is == may_be {
        return Ok(());
    }
    let set = file.set_permissions(Permissions::from_mode(may_be));
    set.map_err(AttachError::io("set the mode of the file"))
}

/// Makes a segment in memory without a name, which can neither shrink nor grow.
pub(super) fn create_unnamed(name: &str, layout: &Layout) -> Result<File, AttachError> {
    if name.len() > MAX_NAME {
        return Err(AttachError::Name { bytes: name.len(), max: MAX_NAME });
    }
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let file = memfd_create(name, flags).map_err(AttachError::system("make a memfd"))?;
    let file = File::from(file);
    make(&file, layout)?;
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(AttachError::system("seal the memfd"))?;
    Ok(file)
}

/// Makes a segment in a file, whatever is in it.
fn make_anew(file: &File, layout: &Layout) -> Result<(), AttachError> {
    file.set_len(0).map_err(AttachError::io("empty the file"))?;
    make(file, layout)
}

/// Writes a segment into an empty file: first that it is being made, last that it is whole. Everything else is zero.
fn make(file: &File, layout: &Layout) -> Result<(), AttachError> {
    let write = |bytes: &[u8], at| {
        file.write_all_at(bytes, at).map_err(AttachError::io("write the header"))
    };
    write(&header::encode(layout, State::Making), 0)?;
    // Reserved now, so that nobody meets a full file system at the first use of a page. A layout has no more bytes than an
    // `off_t` can express.
    posix_fallocate(file, 0, layout.bytes as off_t)
        .map_err(AttachError::system("reserve memory for the segment"))?;
    write(&State::Whole.bytes(), STATE_AT)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, remove_file};

    use super::leads_to;

    #[test]
    fn a_path_leads_to_its_file_until_that_is_removed() {
        let path = std::env::temp_dir().join(format!("nbbs-leads-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        assert!(leads_to(&path, &file));
        remove_file(&path).unwrap();
        assert!(!leads_to(&path, &file));
        let other = File::create(&path).unwrap();
        assert!(leads_to(&path, &other) && !leads_to(&path, &file));
        remove_file(path).unwrap();
    }
}
