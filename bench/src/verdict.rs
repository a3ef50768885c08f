//! Says which of two allocators is faster, as far as the rounds of both show it.

use crate::row::Row;

/// The least number of rounds that decide anything. Of two rounds each of allocators that are equally fast, every third
/// time none overlap; of three, every tenth.
const LEAST_ROUNDS: usize = 3;

/// The result of comparing two allocators by the spreads of their rounds. Better verdicts come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Each round of the first was faster than any round of the second.
    Faster,
    /// The rounds of the two overlap, or there are too few.
    Undecided,
    Slower,
}

/// A time of several rounds: the median, the least and the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds {
    pub ns: f64,
    pub least: f64,
    pub most: f64,
    /// How many there were. Old records do not say, and a simulator does the same every time.
    pub count: Option<usize>,
}

impl Rounds {
    /// Returns the times of an operation, of all threads together.
    pub fn of(row: &Row) -> Option<Self> {
        let (least, most) = row.spread()?;
        // Rounds that old records do not count are one if they have no spread.
        let one =
            || row.max_ns_per_op.filter(|_| row.min_ns_per_op == row.max_ns_per_op).map(|_| 1);
        Some(Self { ns: row.ns_per_op?, least, most, count: row.rounds.or_else(one) })
    }

    /// Says why it is undecided which of the two is faster, if it is.
    pub fn doubt(&self, other: &Self) -> Option<&'static str> {
        let few = |rounds: &Self| rounds.count.is_some_and(|count| count < LEAST_ROUNDS);
        let overlap = self.least <= other.most && other.least <= self.most;
        match few(self) || few(other) {
            true => Some("fewer than three rounds say too little"),
            false => overlap.then_some("their rounds overlap"),
        }
    }

    /// Compares the first with the other.
    pub fn beside(&self, other: &Self) -> Verdict {
        match self.ns < other.ns {
            _ if self.doubt(other).is_some() => Verdict::Undecided,
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

    #[test]
    fn fewer_than_three_rounds_decide_nothing() {
        let row = |rounds: &[f64]| {
            let mut row = Row::default();
            row.set_times(&rounds.iter().map(|&ns| (ns, 1)).collect::<Vec<_>>());
            row
        };
        let (many, slow) = (row(&[1.0, 1.1, 1.2]), row(&[9.0, 9.1, 9.2]));
        assert_eq!(Verdict::of(&many, &slow), Verdict::Faster);
        for few in [row(&[9.0]), row(&[9.0, 9.1])] {
            assert_eq!(Verdict::of(&many, &few), Verdict::Undecided);
            assert_eq!(Verdict::of(&few, &many), Verdict::Undecided);
        }
        // In old records.
        let uncounted = |row: &Row| Row { rounds: None, ..row.clone() };
        assert_eq!(Verdict::of(&uncounted(&many), &uncounted(&slow)), Verdict::Faster);
        assert_eq!(Verdict::of(&many, &uncounted(&row(&[9.0]))), Verdict::Undecided);
        // A simulator's.
        let simulated = |ns| Row { ns_per_op: Some(ns), ..Row::default() };
        assert_eq!(Verdict::of(&simulated(1.0), &simulated(1.1)), Verdict::Faster);
    }
}
