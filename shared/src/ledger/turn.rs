//! A turn: what others see of the member on a seat. One word, on a cache line of its own.
//!
//! ```text
//! 63         41   40   39                      0
//! +------------+------+-------------------------+
//! | generation | live | count, odd while it acts |
//! +------------+------+-------------------------+
//! ```
//!
//! Once the member has its seat only it writes the turn, by plain stores, as long as it is alive. Afterwards its
//! recoverer clears the mark and the count. Before that, somebody who wants the seat may say that the member has
//! *deserted* it: the mark is clear, and the count 1. Then the next member on the seat begins a generation.

const COUNT_BITS: u32 = 40;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const LIVE: u64 = 1 << COUNT_BITS;
const GENERATION: u32 = COUNT_BITS + 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn(pub u64);

impl Turn {
    pub const fn generation(self) -> u64 {
        self.0 >> GENERATION
    }

    pub const fn is_live(self) -> bool {
        self.0 & LIVE != 0
    }

    /// Returns whether whoever wanted the seat has said that the member has died, which nobody has recovered or replaced
    /// since.
    pub const fn is_deserted(self) -> bool {
        !self.is_live() && self.acts()
    }

    /// Returns whether the member is in the middle of an operation.
    pub const fn acts(self) -> bool {
        self.0 & 1 == 1
    }

    /// Returns whether nobody has come, died and been found dead, or left between these turns of a seat.
    pub const fn is_one_life(self, other: Self) -> bool {
        self.0 & !COUNT == other.0 & !COUNT
    }

    /// Returns the turn with which the next generation begins.
    pub const fn seated(self) -> Self {
        Self((self.generation().wrapping_add(1) << GENERATION) | LIVE)
    }

    /// Returns the turn of a member that is gone: it has left, or has been recovered.
    pub const fn gone(self) -> Self {
        Self(self.0 & !(LIVE | COUNT))
    }

    /// Returns the turn of a member that has [deserted](Self::is_deserted) its seat.
    pub const fn deserted(self) -> Self {
        Self(self.gone().0 | 1)
    }

    /// Returns the next turn: an operation begins, or ends.
    #[inline(always)]
    pub const fn next(self) -> Self {
        Self(self.0 & !COUNT | self.0.wrapping_add(1) & COUNT)
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNT, Turn};

    #[test]
    fn a_life() {
        let born = Turn(0).seated();
        assert!(born.is_live() && !born.acts());
        assert_eq!(born.generation(), 1);
        assert!(born.next().acts() && !born.next().next().acts());
        assert!(!born.gone().is_live());
        assert_eq!(born.next().gone().seated().generation(), 2);
        assert!(born.is_one_life(born.next()) && !born.is_one_life(born.gone()));
        assert!(!born.is_one_life(born.next().gone().seated()));
        assert!(!born.next().gone().seated().acts());
        for turn in [born, born.next(), born.next().gone()] {
            assert!(turn.deserted().is_deserted() && !turn.is_deserted());
            assert!(!turn.deserted().is_live() && !turn.deserted().gone().is_deserted());
            assert_eq!(turn.deserted().seated(), born.seated());
        }
    }

    #[test]
    fn counts_wrap_within_their_bits() {
        let last = Turn(Turn(0).seated().0 | COUNT);
        assert!(last.acts());
        assert_eq!(last.next(), Turn(0).seated());
        assert_eq!(Turn(u64::MAX).seated().generation(), 0);
    }
}
