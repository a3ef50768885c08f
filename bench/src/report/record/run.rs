//! One run of a record.

use super::Header;

/// Where the rows of a run come from, and how it went.
#[derive(Clone, Debug)]
pub struct Run {
    pub header: Header,
    /// Rows that were written.
    pub rows: u64,
    /// What was asked for and could not be measured: each with why.
    pub skipped: Vec<String>,
    /// Whether its end was reached. Older formats have none: their runs never end, and were written whole.
    pub ended: bool,
}

impl Run {
    /// No rows yet.
    pub fn new(header: Header) -> Self {
        Self { header, rows: 0, skipped: Vec::new(), ended: false }
    }

    /// Whether its end is still to come.
    pub fn lacks_end(&self) -> bool {
        self.header.has_end() && !self.ended
    }

    /// What a reader must know of it, if it was cut off.
    pub fn warning(&self) -> Option<String> {
        let (rows, command) = (self.rows, &self.header.command);
        self.lacks_end().then(|| format!("incomplete: {command} was cut off after {rows} rows"))
    }
}
