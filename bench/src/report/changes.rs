//! Finds the differences between two records.

use std::collections::HashMap;

use serde::Serialize;

use super::record::Record;
use crate::args::UNIT_BYTES;
use crate::row::{Case, Name, Row};
use crate::table::{bytes, counted, table, time};
use crate::verdict::Verdict;

/// An allocator in a case that both records have.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    pub command: &'static str,
    #[serde(flatten)]
    pub case: Case,
    pub allocator: Name,
    pub safe: bool,
    pub old_ns_per_op: Option<f64>,
    pub new_ns_per_op: Option<f64>,
    /// The new time by the old: below 1 is faster.
    pub ratio: Option<f64>,
    /// Whether one of the two is noisy, or their rounds overlap or are too few.
    pub within_noise: bool,
    pub old_verified: Option<bool>,
    pub new_verified: Option<bool>,
}

/// The changes between two records.
pub struct Changes {
    /// The rows, in three groups: first what was verified before and is wrong now, then what is outside the noise, then
    /// the rest. In each group the largest change comes first.
    pub rows: Vec<Change>,
    pub only_old: usize,
    pub only_new: usize,
}

impl Changes {
    pub fn between(old: &Record, new: &Record) -> Self {
        let key = |entry: &Row| (entry.case(), entry.allocator.clone());
        let mut left: HashMap<(Case, Name), &Row> =
            old.rows.iter().map(|entry| (key(entry), entry)).collect();
        let mut rows = Vec::new();
        let mut only_new = 0;
        for entry in &new.rows {
            match left.remove(&key(entry)) {
                Some(before) => rows.push(Change::between(before, entry)),
                None => only_new += 1,
            }
        }
        let size = |change: &Change| change.ratio.map_or(0.0, |ratio| ratio.ln().abs());
        rows.sort_by(|one, other| {
            let rank = |change: &Change| (!change.verdict_changed(), change.within_noise);
            rank(one).cmp(&rank(other)).then(size(other).total_cmp(&size(one)))
        });
        Self { rows, only_old: left.len(), only_new }
    }

    /// Returns whether no safe allocator that was verified before is found wrong now.
    pub fn all_verified(&self) -> bool {
        !self.rows.iter().any(|row| {
            row.safe && row.old_verified != Some(false) && row.new_verified == Some(false)
        })
    }

    /// Returns the table of the first rows, and a summary of the rest.
    pub fn to_table(&self, most: usize) -> String {
        let header = ["workload", "allocator", "threads", "size", "old", "new", "new / old", ""];
        let mut table = table(&header, 2);
        for row in self.rows.iter().take(most) {
            table.add_row(row.cells());
        }
        let sure = self.rows.iter().filter(|row| row.is_sure()).count();
        let hidden = self.rows.len().saturating_sub(most);
        let cases = counted(self.rows.len(), "case");
        let mut text = format!("{table}\n{cases}, of which {sure} changed beyond their noise");
        text += &format!(
            "; {} only in the old record, {} only in the new",
            self.only_old, self.only_new
        );
        if hidden > 0 {
            let are = if hidden == 1 { "is" } else { "are" };
            text += &format!("; {} {are} not shown (--most)", counted(hidden, "row"));
        }
        text + ".\n  ~  within the noise: the rounds overlap, lie more than a quarter of their median apart, or are fewer than three"
    }
}

impl Change {
    fn between(old: &Row, new: &Row) -> Self {
        let ratio = old.ns_per_op.zip(new.ns_per_op).filter(|(old, new)| *old > 0.0 && *new > 0.0);
        Self {
            command: "compare",
            case: new.case(),
            allocator: new.allocator.clone(),
            safe: new.safe,
            old_ns_per_op: old.ns_per_op,
            new_ns_per_op: new.ns_per_op,
            ratio: ratio.map(|(old, new)| (new / old * 1000.0).round() / 1000.0),
            within_noise: old.noisy || new.noisy || Verdict::of(old, new) == Verdict::Undecided,
            old_verified: old.verified,
            new_verified: new.verified,
        }
    }

    fn verdict_changed(&self) -> bool {
        // A case that nobody judged is not found wrong.
        (self.old_verified == Some(false)) != (self.new_verified == Some(false))
    }

    fn is_sure(&self) -> bool {
        self.ratio.is_some() && !self.within_noise
    }

    fn cells(&self) -> [String; 8] {
        let figure = |ns: Option<f64>, verified: Option<bool>| match ns {
            Some(ns) => time(ns),
            None if verified == Some(false) => "FAILED".to_owned(),
            None => "-".to_owned(),
        };
        let Case { workload, phase, order, size_bytes, threads, .. } = &self.case;
        let parts = [workload, phase].into_iter().filter(|part| !part.is_empty());
        let size = size_bytes.or(order.map(|order| UNIT_BYTES << order));
        let mark = if self.ratio.is_some() && self.within_noise { "~" } else { "" };
        [
            parts.map(|part| &**part).collect::<Vec<_>>().join(", "),
            if self.safe {
                self.allocator.clone().into_owned()
            } else {
                format!("{} (UNSAFE)", self.allocator)
            },
            threads.to_string(),
            size.map_or("mixed".to_owned(), bytes),
            figure(self.old_ns_per_op, self.old_verified),
            figure(self.new_ns_per_op, self.new_verified),
            self.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
            mark.to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::Changes;
    use crate::market::Kind;
    use crate::report::record::Record;
    use crate::row::Row;

    #[test]
    fn one_is_not_a_plural() {
        let record = |count| {
            let row = |threads| Row::named("fill", "nbbs", Kind::BackEnd, threads);
            let mut record = Record::default();
            record.rows = (1..=count).map(row).collect();
            record
        };
        for (count, most, words) in [
            (1, 9, "\n1 case, of which 0 changed"),
            (1, 0, "; 1 row is not shown (--most)"),
            (2, 9, "\n2 cases, of which 0 changed"),
            (2, 0, "; 2 rows are not shown (--most)"),
        ] {
            let text = Changes::between(&record(count), &record(count)).to_table(most);
            assert!(text.contains(words), "{words} in {text}");
        }
    }
}
