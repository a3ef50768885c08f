//! Members that come.

use std::fs::File;

use nix::errno::Errno;

use super::Segment;
use super::lock::{self, JOINING, Locks};
use super::look::{Found, look};
use crate::error::{JoinError, errno_of};
use crate::ledger::Seat;
use crate::member::Member;

/// Who has a seat that was asked for.
enum Taken {
    Now(Seat),
    /// A member, which lives.
    Before,
    /// Nobody, but somebody who is coming or leaving has locked it.
    Changing,
}

fn failed(what: &'static str) -> impl Fn(Errno) -> JoinError {
    move |errno| JoinError::System { what, errno: errno as i32 }
}

impl Segment {
    /// Registers a member: a thread that allocates here, as long as the value lives.
    ///
    /// It opens the file once more, by `/proc`, for reading and writing: the process must be allowed to at this moment,
    /// also if the descriptor was sent to it, or it has given up rights since it attached. A program that closes
    /// descriptors that it does not know, such as `daemon` or `closefrom`, must not do so while it has a member: others
    /// would take the member for dead, and recover what it holds.
    ///
    /// Nobody is waited for. Seats are looked at one after the other: where members come and go meanwhile, each may be
    /// found taken although they never all were at one instant.
    ///
    /// Cost: a descriptor, nine system calls, and up to two more for each seat that is taken if no other is free.
    ///
    /// # Errors
    /// [`JoinError::Full`] if all members are alive; [`JoinError::Changing`] if no seat is free, but others are just
    /// taking or leaving some; and [`JoinError::System`], with `ESTALE` if the segment is not in its file any more:
    /// somebody has written over the header, or shortened the file, or a creator has made another there since; or if
    /// the descriptor is another file's, in a thread that has descriptors of its own (`unshare(CLONE_FILES)`).
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
        let lock = lock::reopen(&self.0.file, self.0.id).map_err(|error| {
            let what = "open the file again by /proc/thread-self/fd";
            JoinError::System { what, errno: errno_of(&error) }
        })?;
        lock::share(&lock, JOINING).map_err(failed("lock the file"))?;
        let seat = self.sit(&lock);
        lock::unlock(&lock, JOINING);
        Ok(Member::new(self.clone(), seat?, lock))
    }

    /// Takes a seat for a caller that shares [`JOINING`] by `lock`.
    fn sit(&self, lock: &File) -> Result<Seat, JoinError> {
        // Before the mapping is used: a creator may be making the file anew, or have done so. One that begins later finds
        // the lock.
        if look(lock) != Ok(Found::Whole(self.0.layout)) {
            return Err(failed("find the segment in its file any more")(Errno::ESTALE));
        }
        let seats = self.ledger().seats();
        let is_left =
            |&seat: &usize| self.ledger().turn(seat).is_some_and(|turn| turn == turn.gone());
        // First the seats that nobody has to recover.
        for number in (0..seats).filter(is_left) {
            if let Taken::Now(seat) = self.take(lock, number)? {
                return Ok(seat);
            }
        }
        let mut changing = 0;
        for number in 0..seats {
            match self.take(lock, number)? {
                Taken::Now(seat) => return Ok(seat),
                Taken::Before => {}
                Taken::Changing => changing += 1,
            }
        }
        if changing == 0 {
            return Err(JoinError::Full { members: seats });
        }
        Err(JoinError::Changing { members: seats, changing })
    }

    /// Takes a seat, unless somebody has it.
    fn take(&self, lock: &File, number: usize) -> Result<Taken, JoinError> {
        // Before the lock, which would make a dead member look alive for as long as this thread stands still.
        while self.ledger().desert(number, &Locks(lock)) {
            if lock::lock(lock, lock::of_seat(number)).map_err(failed("lock a seat"))? {
                if let Some(seat) = self.slabs().sit(number) {
                    return Ok(Taken::Now(seat));
                }
                lock::unlock(lock, lock::of_seat(number));
            } else if self.ledger().turn(number).is_none_or(|turn| !turn.is_live()) {
                return Ok(Taken::Changing);
            }
        }
        Ok(Taken::Before)
    }
}
