//! Members that come.

use std::fs::File;

use nix::errno::Errno;

use super::Segment;
use super::lock::{self, JOINING, Locks};
use super::look::{Found, look};
use crate::error::{JoinError, errno_of};
use crate::ledger::Seat;
use crate::member::Member;

impl Segment {
    /// Registers a member: a thread that allocates here, as long as the value lives.
    ///
    /// It opens the file once more, by `/proc`, for reading and writing: the process must be allowed to at this moment,
    /// also if the descriptor was sent to it, or it has given up rights since it attached. A program that closes
    /// descriptors that it does not know, such as `daemon` or `closefrom`, must not do so while it has a member: others
    /// would take the member for dead, and recover what it holds.
    ///
    /// Cost: a descriptor, nine system calls, and up to two more for each seat that is taken if no other is free.
    ///
    /// # Errors
    /// [`JoinError::Full`] if all members are alive, or others are just taking the seats of those that are not, and
    /// [`JoinError::System`], with `ESTALE` if the segment is not in its file any more: somebody has written over the
    /// header, or shortened the file, or a creator has made another there since; or if the descriptor is another
    /// file's, in a thread that has descriptors of its own (`unshare(CLONE_FILES)`).
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, JoinError, Segment};
    /// let segment = Segment::memfd("pair", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let (first, second) = (segment.join()?, segment.join()?);
    /// assert_ne!(first.id(), second.id());
    /// assert_eq!(segment.join().unwrap_err(), JoinError::Full { members: 2 });
    /// drop(first);
    /// assert!(segment.join().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(&self) -> Result<Member, JoinError> {
        let failed = |what, errno| JoinError::System { what, errno };
        let lock = lock::reopen(&self.0.file, self.0.id).map_err(|error| {
            failed("open the file again by /proc/thread-self/fd", errno_of(&error))
        })?;
        lock::share(&lock, JOINING).map_err(|errno| failed("lock the file", errno as i32))?;
        let seat = self.sit(&lock);
        lock::unlock(&lock, JOINING);
        Ok(Member::new(self.clone(), seat?, lock))
    }

    /// Takes a seat for a caller that shares [`JOINING`] by `lock`.
    fn sit(&self, lock: &File) -> Result<Seat, JoinError> {
        let failed = |what, errno: Errno| JoinError::System { what, errno: errno as i32 };
        // Before the mapping is used: a creator may be making the file anew, or have done so. One that begins later finds
        // the lock.
        if look(lock) != Ok(Found::Whole(self.0.layout)) {
            return Err(failed("find the segment in its file any more", Errno::ESTALE));
        }
        let seats = self.ledger().seats();
        let is_left =
            |&seat: &usize| self.ledger().turn(seat).is_some_and(|turn| turn == turn.gone());
        // First the seats that nobody has to recover.
        for seat in (0..seats).filter(is_left).chain(0..seats) {
            // Before the lock, which would make a dead member look alive for as long as this thread stands still.
            while self.ledger().desert(seat, &Locks(lock)) {
                let locked = lock::lock(lock, lock::of_seat(seat));
                if !locked.map_err(|errno| failed("lock a seat", errno))? {
                    break;
                }
                if let Some(seat) = self.slabs().sit(seat) {
                    return Ok(seat);
                }
                lock::unlock(lock, lock::of_seat(seat));
            }
        }
        Err(JoinError::Full { members: seats })
    }
}
