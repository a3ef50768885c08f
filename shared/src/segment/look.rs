//! What a file holds: a segment, one that is not whole yet, or something else.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::lock::{self, CREATION};
use crate::error::AttachError;
use crate::header::{self, HEADER_BYTES, State};
use crate::layout::Layout;

/// What a file holds that holds nothing else than a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Empty,
    /// Its creator lives and has not finished, or died, if nobody has written over the header of a whole one.
    Half(Layout),
    Whole(Layout),
}

/// A file, as far as it is looked at.
pub(super) trait Source {
    /// Reads the beginning, or the whole if that is less, and returns the number of bytes.
    fn read(&self, bytes: &mut [u8]) -> Result<usize, AttachError>;
    fn len(&self) -> Result<u64, AttachError>;
    /// Returns whether a creator has locked it.
    fn is_being_made(&self) -> bool;
    /// Returns whether a member lives.
    fn has_members(&self) -> bool;
}

impl Source for File {
    fn read(&self, bytes: &mut [u8]) -> Result<usize, AttachError> {
        let mut read = 0;
        while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
            let more = self.read_at(rest, read as u64).map_err(AttachError::io("read the file"))?;
            if more == 0 {
                break;
            }
            read += more;
        }
        Ok(read)
    }

    fn len(&self) -> Result<u64, AttachError> {
        self.metadata().map(|metadata| metadata.len()).map_err(AttachError::io("look at the file"))
    }

    fn is_being_made(&self) -> bool {
        lock::is_locked(self, CREATION)
    }

    fn has_members(&self) -> bool {
        lock::is_any_seat_locked(self)
    }
}

/// Returns the layout of the whole segment in a file, after checking all of the header.
pub(super) fn check(file: &File) -> Result<Layout, AttachError> {
    check_kind(file)?;
    whole(file)
}

/// Refuses what is no file, as reading it could do anything.
pub(super) fn check_kind(file: &File) -> Result<(), AttachError> {
    let metadata = file.metadata().map_err(AttachError::io("look at the file"))?;
    if metadata.is_file() { Ok(()) } else { Err(AttachError::Foreign) }
}

fn whole(file: &impl Source) -> Result<Layout, AttachError> {
    let first = look(file)?;
    if let Found::Whole(layout) = first {
        return Ok(layout);
    }
    if file.is_being_made() {
        return Err(AttachError::Making);
    }
    // Between two looks: if both find that the segment is not whole, it was not meanwhile.
    let unused = match first {
        Found::Half(layout) => check_unused(file, &layout),
        _ => Ok(()),
    };
    // The creator may have finished between the look and the question. Or it has not locked the file that it opened:
    // then that was empty.
    match (first, look(file)?) {
        (_, Found::Whole(layout)) => Ok(layout),
        // Nor may another creator have begun since the question.
        (Found::Half(_), Found::Half(_)) if !file.is_being_made() => {
            Err(unused.err().unwrap_or(AttachError::HalfMade))
        }
        _ => Err(AttachError::Making),
    }
}

/// Refuses a segment that is not whole by its header, but that somebody has joined, or given a root. A creator that died
/// has left only zeros behind the header; whoever joins first of all begins a turn.
pub(super) fn check_unused(file: &impl Source, layout: &Layout) -> Result<(), AttachError> {
    // As far as the turns go.
    let mut bytes = vec![0; layout.pins as usize];
    let read = file.read(&mut bytes)?;
    let written =
        bytes.iter().take(read).enumerate().skip(HEADER_BYTES).find(|&(_, &byte)| byte != 0);
    written.map_or(Ok(()), |(at, _)| Err(AttachError::Used { at: at as u64 }))
}

/// Returns what a file holds.
pub(super) fn look(file: &impl Source) -> Result<Found, AttachError> {
    // Before the header: whoever is a member now joined a whole segment, and the header has said so since.
    let has_members = file.has_members();
    let mut bytes = [0; HEADER_BYTES];
    let read = file.read(&mut bytes)?;
    if read == 0 && !has_members {
        return Ok(Found::Empty);
    }
    // After the header: when that says that the segment is whole, the file has all of its bytes.
    let len = file.len()?;
    Ok(match header::decode(bytes.get(..read).unwrap_or(&[]), len)? {
        (layout, State::Whole) => Found::Whole(layout),
        (_, State::Making) if has_members => {
            return Err(AttachError::Corrupt { field: "state", value: State::Making as u64 });
        }
        (layout, State::Making) => Found::Half(layout),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{Source, whole};
    use crate::error::AttachError;
    use crate::header::{HEADER_BYTES, State, encode};
    use crate::layout::{Geometry, Layout};

    /// How far a creator is: it has opened the file, locked it, written the header, reserved memory, written that the
    /// segment is whole, unlocked it, joined.
    const STEPS: usize = 7;

    /// A file of a creator that is, at each call, where the script says.
    struct Scripted<'s> {
        script: &'s [usize],
        calls: Cell<usize>,
        layout: Layout,
    }

    impl Scripted<'_> {
        fn step(&self) -> usize {
            self.script[self.calls.replace(self.calls.get() + 1)]
        }
    }

    impl Source for Scripted<'_> {
        fn read(&self, bytes: &mut [u8]) -> Result<usize, AttachError> {
            let step = self.step();
            let state = match step {
                0 | 1 => return Ok(0),
                2 | 3 => State::Making,
                _ => State::Whole,
            };
            bytes[..HEADER_BYTES].copy_from_slice(&encode(&self.layout, state));
            if let Some(turn) = bytes.get_mut(self.layout.turns as usize) {
                *turn = u8::from(step == 6);
            }
            Ok(bytes.len())
        }

        fn len(&self) -> Result<u64, AttachError> {
            Ok(match self.step() {
                0 | 1 => 0,
                2 => 64,
                _ => self.layout.bytes,
            })
        }

        fn is_being_made(&self) -> bool {
            (1..5).contains(&self.step())
        }

        fn has_members(&self) -> bool {
            self.step() == 6
        }
    }

    /// Calls `work` with every script that goes on like this, and never backwards.
    fn scripts(script: &mut Vec<usize>, work: &mut impl FnMut(&[usize])) {
        if script.len() == 9 {
            return work(script);
        }
        for step in script.last().copied().unwrap_or(0)..STEPS {
            script.push(step);
            scripts(script, work);
            script.pop();
        }
    }

    /// Whoever attaches while a segment is made gets it, or is told to try again.
    #[test]
    fn creators_that_live_are_waited_for() {
        let layout = Layout::new(Geometry { units: 64, unit_bytes: 64, members: 2 }).unwrap();
        scripts(&mut Vec::new(), &mut |script| {
            let file = Scripted { script, calls: Cell::new(0), layout };
            let found = whole(&file);
            let last = script[file.calls.get() - 1];
            let is_right = match found {
                Ok(found) => found == layout && last >= 4,
                Err(AttachError::Making) => script[1] < 4,
                Err(_) => false,
            };
            assert!(is_right, "{script:?}: {found:?}");
        });
    }
}
