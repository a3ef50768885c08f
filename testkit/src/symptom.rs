//! What a broken allocator is known by.

use std::fmt;

use crate::Violation;

/// What a violation shows. A patient counts as caught by the one that it is known for, and by nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// A unit is handed out twice.
    Overlap,
    /// More memory is gone than what a thread that stopped had in hand.
    Loss,
    /// Somebody waits for a thread that does not go on.
    Wait,
}

impl Symptom {
    /// Whether this is what the violation shows.
    #[must_use]
    pub fn is_shown_by(self, violation: &Violation) -> bool {
        match self {
            Self::Overlap => matches!(violation, Violation::Overlap { .. }),
            Self::Loss => matches!(violation, Violation::NotWhole { .. } | Violation::Lost { .. }),
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
