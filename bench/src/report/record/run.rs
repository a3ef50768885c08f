//! One run of a record.

use super::Header;

/// A run: where its rows come from, and whether it is complete.
#[derive(Clone, Debug)]
pub struct Run {
    pub header: Header,
    /// The number of rows that were written.
    pub rows: u64,
    /// What was asked for and could not be measured, with the reasons.
    pub skipped: Vec<String>,
    /// Whether its end was reached. Runs of older formats have no end, and were written as a whole.
    pub ended: bool,
}

impl Run {
    /// Creates a run without rows.
    pub fn new(header: Header) -> Self {
        Self { header, rows: 0, skipped: Vec::new(), ended: false }
    }

    /// Returns whether its end is missing.
    pub fn lacks_end(&self) -> bool {
        self.header.has_end() && !self.ended
    }

    /// Returns a warning for the reader, if the run was cut off.
    pub fn warning(&self) -> Option<String> {
        let (rows, command) = (self.rows, &self.header.command);
        self.lacks_end().then(|| format!("incomplete: {command} was cut off after {rows} rows"))
    }
}
