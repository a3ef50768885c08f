//! Locks on bytes of the file, which the kernel releases when the last descriptor of an open file description is
//! closed: when a process ends, however it ends. They exclude nobody from reading or writing; the bytes need not exist.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{F_RDLCK, F_UNLCK, F_WRLCK, SEEK_SET, c_int, c_short, flock, off_t};

use crate::ledger::{Liveness, MAX_SEATS};

/// The byte that a creator locks until the segment is whole. It and those of the seats are below 2^31: a process of 32
/// bits, whose offsets end there, locks the same bytes.
pub(super) const CREATION: u64 = 1 << 30;

/// The byte of the first seat.
const SEATS: u64 = CREATION + 1;

/// The byte behind the seats, which processes share that are about to take one.
pub(super) const JOINING: u64 = SEATS + MAX_SEATS as u64;

/// Returns the byte that the member on a seat locks.
pub(super) fn of_seat(seat: usize) -> u64 {
    SEATS + seat as u64
}

/// Returns the device of a file and its number there, which no other file has as long as it is open.
pub(super) fn id(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Opens the same file, whose [`id`] is this, with an open file description of its own: locks of one do not count as the
/// other's. In the table of descriptors of another thread the file's descriptor may be another file's: it is refused.
pub(super) fn reopen(file: &File, id: (u64, u64)) -> io::Result<File> {
    // The thread's own: that of the process is the table of its first thread, which may have ended.
    let path = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
    let reopened = OpenOptions::new().read(true).write(true).open(path)?;
    if self::id(&reopened)? == id { Ok(reopened) } else { Err(Errno::ESTALE.into()) }
}

/// Locks a byte. Returns `false` if somebody else has locked it.
pub(super) fn lock(file: &File, byte: u64) -> Result<bool, Errno> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&on(byte, 1, F_WRLCK))) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Locks a byte together with all others that call this.
pub(super) fn share(file: &File, byte: u64) -> Result<(), Errno> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&on(byte, 1, F_RDLCK))).map(drop)
}

/// Unlocks a byte.
pub(super) fn unlock(file: &File, byte: u64) {
    // This fails only for something that is not a file.
    let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&on(byte, 1, F_UNLCK)));
}

/// Returns whether somebody has locked a byte by another open file description. In doubt `true`.
pub(super) fn is_locked(file: &File, byte: u64) -> bool {
    is_any_locked(file, byte, 1)
}

/// Returns whether somebody has locked the byte of any seat that a segment may have, or [`JOINING`]. In doubt `true`.
pub(super) fn is_any_seat_locked(file: &File) -> bool {
    is_any_locked(file, SEATS, JOINING + 1 - SEATS)
}

fn is_any_locked(file: &File, first: u64, count: u64) -> bool {
    let mut found = on(first, count, F_WRLCK);
    let asked = fcntl(file, FcntlArg::F_OFD_GETLK(&mut found));
    asked.is_err() || c_int::from(found.l_type) != F_UNLCK
}

fn on(first: u64, count: u64, kind: c_int) -> flock {
    flock {
        l_type: kind as c_short,
        l_whence: SEEK_SET as c_short,
        l_start: first as off_t,
        l_len: count as off_t,
        l_pid: 0,
    }
}

/// The kernel's information on which members are alive, queried through a member's own description of the file.
pub(crate) struct Locks<'m>(pub &'m File);

impl Locks<'_> {
    /// Unlocks the member's own seat, also for children that have copies of the description.
    pub fn give_up(&self, seat: usize) {
        unlock(self.0, of_seat(seat));
    }
}

impl Liveness for Locks<'_> {
    fn is_alive(&self, seat: usize) -> bool {
        is_locked(self.0, of_seat(seat))
    }
}
