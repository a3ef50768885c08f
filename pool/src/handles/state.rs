//! The word of a slot.
//!
//! ```text
//! 63           32  31         30 .. 0
//! +---------------+----------+--------+
//! | generation    | occupied | guards |
//! +---------------+----------+--------+
//! ```
//!
//! The generation is that of the object in the slot, or of the next one if the slot is free. In a slot that is not
//! occupied but has guards, the object has been removed; the last guard destroys it.

use crate::error::HandleError;
use crate::sync::{Ordering, Word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(pub u64);

const OCCUPIED: u64 = 1 << 31;
const GUARDS: u64 = OCCUPIED - 1;
const GENERATION: u64 = 1 << 32;

impl State {
    pub(super) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) fn is_occupied(self) -> bool {
        self.0 & OCCUPIED != 0
    }

    pub(super) fn guards(self) -> u32 {
        (self.0 & GUARDS) as u32
    }

    /// Returns the state of a free slot once it has an object.
    pub(super) fn occupied(self) -> Self {
        Self(self.0 | OCCUPIED)
    }

    /// Returns the state after the object: that of a free slot, of the next generation.
    pub(super) fn free(self) -> Self {
        Self((self.0 & !(OCCUPIED | GUARDS)).wrapping_add(GENERATION))
    }
}

/// Adds a guard, if `check` accepts the state.
pub(super) fn pin<W: Word>(
    word: &W,
    check: impl Fn(State) -> Result<(), HandleError>,
) -> Result<(), HandleError> {
    // Acquire pairs with the Release in `insert`.
    let mut old = word.load(Ordering::Acquire);
    loop {
        let state = State(old);
        check(state)?;
        if u64::from(state.guards()) == GUARDS {
            return Err(HandleError::Pinned { guards: state.guards(), max: GUARDS as u32 });
        }
        match word.compare_exchange(old, old + 1, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => return Ok(()),
            Err(found) => old = found,
        }
    }
}

/// Removes a guard. Returns whether it was the last one of an object that has been removed.
pub(super) fn unpin<W: Word>(word: &W) -> bool {
    // Release: everything read under this guard has been read. Acquire pairs with the Release of the other guards, and
    // with that in `end`: the caller that destroys the object does so after them. Relaxed: a wrong guess fails.
    let mut old = word.load(Ordering::Relaxed);
    loop {
        match word.compare_exchange(old, old - 1, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return State(old - 1).guards() == 0 && !State(old).is_occupied(),
            Err(found) => old = found,
        }
    }
}

/// Ends the object, if `check` accepts the state. Returns whether the caller has to destroy it.
pub(super) fn end<W: Word, E>(word: &W, check: impl Fn(State) -> Result<(), E>) -> Result<bool, E> {
    // Acquire pairs with the Release in `insert`, and with that of guards that have gone.
    let mut old = word.load(Ordering::Acquire);
    loop {
        check(State(old))?;
        // Release pairs with the Acquire in `unpin`: the last guard destroys what we have seen complete.
        match word.compare_exchange(old, old & !OCCUPIED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok(State(old).guards() == 0),
            Err(found) => old = found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GUARDS, OCCUPIED, State, end, pin, unpin};
    use crate::error::HandleError;
    use core::cell::Cell;

    #[test]
    fn generations_come_round() {
        let last = State(u64::from(u32::MAX) << 32 | OCCUPIED | 3);
        assert_eq!((last.generation(), last.guards()), (u32::MAX, 3));
        assert_eq!(last.free(), State(0));
        assert_eq!(State(0).occupied().free().generation(), 1);
    }

    #[test]
    fn no_more_guards_than_can_be_counted() {
        let (last, guards) = (GUARDS as u32 - 1, GUARDS as u32);
        let word = Cell::new(7 << 32 | OCCUPIED | u64::from(last));
        let pinned = || pin(&word, |_| Ok(()));
        assert_eq!(pinned(), Ok(()));
        assert_eq!(pinned(), Err(HandleError::Pinned { guards, max: guards }));
        assert_eq!(State(word.get()), State(7 << 32 | OCCUPIED | GUARDS));
        assert_eq!(end(&word, |_| Ok::<(), ()>(())), Ok(false));
        assert!(!unpin(&word), "one of many");
        word.set(7 << 32 | 1);
        assert!(unpin(&word), "the last one");
    }
}
