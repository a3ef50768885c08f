//! Says which of two allocators is faster, as far as the rounds of both show it.

use crate::row::Row;

/// The result of comparing two allocators by the spreads of their rounds. Better verdicts come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Each round of the first was faster than any round of the second.
    Faster,
    /// The rounds of the two overlap.
    Undecided,
    Slower,
}

/// A time of several rounds: the median, the least and the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds {
    pub ns: f64,
    pub least: f64,
    pub most: f64,
}

impl Rounds {
    /// Returns the times of an operation, of all threads together.
    pub fn of(row: &Row) -> Option<Self> {
        let (least, most) = row.spread()?;
        Some(Self { ns: row.ns_per_op?, least, most })
    }

    /// Compares the first with the other.
    pub fn beside(&self, other: &Self) -> Verdict {
        let overlap = self.least <= other.most && other.least <= self.most;
        match self.ns < other.ns {
            _ if overlap => Verdict::Undecided,
            true => Verdict::Faster,
            false => Verdict::Slower,
        }
    }
}

impl Verdict {
    /// Compares two rows by the time of an operation. It is undecided if one has none.
    pub fn of(one: &Row, other: &Row) -> Self {
        let rounds = Rounds::of(one).zip(Rounds::of(other));
        rounds.map_or(Self::Undecided, |(one, other)| one.beside(&other))
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict;
    use crate::row::Row;

    #[test]
    fn a_verdict_takes_rounds_that_do_not_overlap() {
        let row = |rounds: [f64; 3]| {
            let mut row = Row::default();
            row.set_times(&rounds.map(|ns| (ns, 1)));
            row
        };
        let (fast, slow, both) = (row([1.0, 2.0, 3.0]), row([4.0, 5.0, 6.0]), row([1.0, 5.5, 6.0]));
        let verdicts = [(&fast, &slow), (&slow, &fast), (&both, &slow), (&fast, &both)];
        let [one, two, three, four] = verdicts.map(|(one, other)| Verdict::of(one, other));
        assert_eq!([one, two], [Verdict::Faster, Verdict::Slower]);
        assert_eq!([three, four], [Verdict::Undecided; 2]);
        assert_eq!(Verdict::of(&fast, &Row::default()), Verdict::Undecided);
    }
}
