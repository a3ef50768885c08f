//! The symptom by which a broken allocator is known.

use std::fmt;

use crate::Violation;

/// What a violation shows. A patient only counts as caught by the symptom that it is known for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// A unit is handed out twice.
    Overlap,
    /// More memory is lost than what a stopped thread had in hand.
    Loss,
    /// A thread waits for another that does not go on.
    Wait,
}

impl Symptom {
    /// Returns whether the violation shows this symptom.
    #[must_use]
    pub fn is_shown_by(self, violation: &Violation) -> bool {
        match self {
            Self::Overlap => matches!(violation, Violation::Overlap { .. }),
            Self::Loss => matches!(
                violation,
                Violation::NotWhole { .. } | Violation::Lost { .. } | Violation::BytesLost { .. }
            ),
            Self::Wait => matches!(violation, Violation::Stuck { .. }),
        }
    }
}

impl fmt::Display for Symptom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overlap => "hands out a unit twice",
            Self::Loss => "loses memory",
            Self::Wait => "waits",
        })
    }
}
