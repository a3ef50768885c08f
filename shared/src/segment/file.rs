//! Files that are, or become, segments.

use std::fs::{File, OpenOptions, Permissions};
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
    let mut options = opening();
    options.write(true).create(true).truncate(false).mode(mode);
    let file = options.open(path).map_err(AttachError::io("open the file"))?;
    if !lock::lock(&file, CREATION).map_err(AttachError::system("lock the file"))? {
        return Err(AttachError::Making);
    }
    // Closing the file releases the lock if this fails.
    check_kind(&file)?;
    if let Found::Whole(_) = look(&file)? {
        return Err(AttachError::Exists);
    }
    // Empty, or begun by a process that died.
    take_over(&file, mode)?;
    file.set_len(0).map_err(AttachError::io("empty the file"))?;
    make(&file, layout)?;
    lock::unlock(&file, CREATION);
    Ok(file)
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
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let file = memfd_create(name, flags).map_err(AttachError::system("make a memfd"))?;
    let file = File::from(file);
    make(&file, layout)?;
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(AttachError::system("seal the memfd"))?;
    Ok(file)
}

/// Writes a segment into an empty file: first that it is being made, last that it is whole. Everything else is zero.
fn make(file: &File, layout: &Layout) -> Result<(), AttachError> {
    let write = |bytes: &[u8], at| {
        file.write_all_at(bytes, at).map_err(AttachError::io("write the header"))
    };
    write(&header::encode(layout, State::Making), 0)?;
    let len = off_t::try_from(layout.bytes).unwrap_or(off_t::MAX);
    // Reserved now, so that nobody meets a full file system at the first use of a page.
    posix_fallocate(file, 0, len).map_err(AttachError::system("reserve memory for the segment"))?;
    write(&State::Whole.bytes(), STATE_AT)
}
