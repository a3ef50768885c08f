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
    /// Whether it came to its end.
    pub ended: bool,
}

impl Run {
    /// No rows yet. Older formats have no ends: those runs were written whole.
    pub fn new(header: Header) -> Self {
        let ended = !header.has_end();
        Self { header, rows: 0, skipped: Vec::new(), ended }
    }

    /// What a reader must know of it, if it was cut off.
    pub fn warning(&self) -> Option<String> {
        let (rows, command) = (self.rows, &self.header.command);
        (!self.ended).then(|| format!("incomplete: {command} was cut off after {rows} rows"))
    }
}
