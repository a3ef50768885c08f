//! Keeps the rows of a run in a record, on a page, or both.

use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, ensure};

#[cfg(feature = "suite")]
use super::page::Awaited;
use super::record::{Header, Writer};
use crate::row::Row;

/// The rows of a run in progress.
pub struct Kept {
    record: Option<(PathBuf, Writer)>,
    #[cfg(feature = "suite")]
    page: Option<Awaited>,
}

impl Kept {
    /// Opens the page and the record, as far as they are asked for: now, since a run may take hours.
    ///
    /// # Errors
    /// A file cannot be written or holds something else, both are the same, one is among the `traces` that the run
    /// reads, or the page needs the feature `suite`.
    pub fn new<'a>(
        record: Option<&Path>,
        page: Option<&Path>,
        traces: impl IntoIterator<Item = &'a PathBuf>,
    ) -> anyhow::Result<Self> {
        if let (Some(record), Some(page)) = (record, page) {
            ensure!(!is_same(record, page), "{} cannot be both record and page", page.display());
        }
        for trace in traces {
            for (what, path) in [("record", record), ("page", page)] {
                let is_trace = path.is_some_and(|path| is_same(path, trace));
                ensure!(!is_trace, "{} is a trace, and cannot be the {what}", trace.display());
            }
        }
        #[cfg(feature = "suite")]
        let page = page.map(Awaited::open).transpose()?;
        #[cfg(not(feature = "suite"))]
        if page.is_some() {
            return Err(super::takes_suite());
        }
        let begin = |path: &Path| {
            let writer = Writer::create(path, &Header::of_this_run());
            anyhow::Ok((path.to_owned(), writer.with_context(|| refused(path))?))
        };
        let record = record.map(begin).transpose()?;
        Ok(Self {
            record,
            #[cfg(feature = "suite")]
            page,
        })
    }

    /// Adds rows to the record and the page, if there are any. When this returns, the record's file has them.
    ///
    /// # Errors
    /// The record cannot be written, or the page cannot show a row.
    pub fn add(&mut self, rows: &[Row]) -> anyhow::Result<()> {
        let rows = rows.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
        if let Some((path, writer)) = &mut self.record {
            writer.add(&rows).with_context(|| refused(path))?;
        }
        #[cfg(feature = "suite")]
        self.page.as_mut().map_or(Ok(()), |page| page.add(&rows))?;
        Ok(())
    }

    /// Adds what is not measured, and why.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn skip(&mut self, what: &str) -> anyhow::Result<()> {
        if let Some((path, writer)) = &mut self.record {
            writer.skip(what).with_context(|| refused(path))?;
        }
        #[cfg(feature = "suite")]
        self.page.iter_mut().for_each(|page| page.skip(what));
        Ok(())
    }

    /// Ends the record and writes the page.
    ///
    /// # Errors
    /// One of them cannot be written.
    pub fn finish(self) -> anyhow::Result<()> {
        if let Some((path, writer)) = self.record {
            writer.end().with_context(|| refused(&path))?;
        }
        #[cfg(feature = "suite")]
        self.page.map_or(Ok(()), Awaited::finish)?;
        Ok(())
    }
}

/// Returns whether two paths lead to the same file, which need not exist.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let full = |path: &Path| path.canonicalize().or_else(|_| absolute(path)).ok();
    full(one).is_some_and(|one| full(other) == Some(one))
}

/// Returns the message about a file that cannot be written.
pub fn refused(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}

#[cfg(test)]
mod tests {
    use super::Kept;
    use crate::market::Kind;
    use crate::report::record::Record;
    use crate::row::Row;

    #[test]
    fn a_record_stays_until_there_are_rows() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["r.jsonl", "r.zst"] {
            let path = directory.path().join(name);
            let old = format!("{{\"record\":{}}}", "1".repeat(10_000)).into_bytes();
            std::fs::write(&path, &old).unwrap();
            let keep = || Kept::new(Some(&path), None, []).unwrap();
            keep().skip("nothing").unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), old);
            let mut kept = keep();
            kept.skip("something").unwrap();
            kept.add(&[Row::named("fill", "nbbs", Kind::BackEnd, 1)]).unwrap();
            kept.finish().unwrap();
            let record = Record::open(&path).unwrap();
            assert!(record.runs[0].ended && record.runs[0].skipped == ["something"]);
            assert_eq!(record.rows.len(), 1);
        }
    }

    #[test]
    fn a_trace_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("t.zst");
        std::fs::write(&trace, "events").unwrap();
        let same = directory.path().join(".").join("t.zst");
        for (record, page, words) in [
            (Some(&*same), None, "is a trace, and cannot be the record"),
            (None, Some(&*same), "is a trace, and cannot be the page"),
        ] {
            let refused = Kept::new(record, page, [&trace]).err().unwrap().to_string();
            assert!(refused.ends_with(words), "{refused}");
            assert_eq!(std::fs::read_to_string(&trace).unwrap(), "events");
        }
        assert!(Kept::new(Some(&directory.path().join("r.zst")), None, [&trace]).is_ok());
    }
}
