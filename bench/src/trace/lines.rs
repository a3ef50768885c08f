//! Reads the event lines of a trace file, and their fields.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};

use super::decode::{Frames, MAGIC};
use super::{Fault, TraceError};

/// The form of the first line and of the events of a kind of trace.
pub struct Format {
    /// The beginning of the first line, before a name.
    pub header: &'static str,
    /// The forms of an event.
    pub forms: &'static str,
}

impl Format {
    /// Calls `visit` with the number, the sign and the fields of each event of `file`, a zstd file that messages
    /// call `shown`.
    pub fn read(
        &self,
        shown: &str,
        file: &[u8],
        mut visit: impl FnMut(usize, u8, &[&str]) -> Result<(), Fault>,
    ) -> Result<(), TraceError> {
        // A file that is not zstd has no lines.
        let mut number = 0;
        self.read_lines(file, &mut number, &mut visit).map_err(|fault| TraceError {
            file: shown.to_owned(),
            line: number,
            fault,
        })
    }

    fn read_lines(
        &self,
        file: &[u8],
        number: &mut usize,
        visit: &mut impl FnMut(usize, u8, &[&str]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if !file.starts_with(&MAGIC) {
            return Err(Fault::NotZstd);
        }
        let mut text = BufReader::new(Frames::new(file));
        let (mut bytes, mut events) = (Vec::new(), 0_u64);
        loop {
            bytes.clear();
            *number += 1;
            let read = text.read_until(b'\n', &mut bytes);
            if read.map_err(|error| Fault::Damaged(error.to_string()))? == 0 {
                return if events == 0 { Err(Fault::Empty) } else { Ok(()) };
            }
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim_end_matches(['\n', '\r']);
            if *number == 1 && !line.starts_with(self.header.trim_end_matches(" NAME")) {
                return Err(Fault::Header { header: self.header, found: shorten(line) });
            }
            if !line.starts_with('#') {
                let fields = line.get(1..).ok_or_else(|| self.unknown(line))?;
                let fields: Vec<&str> = fields.split(' ').collect();
                match visit(*number, line.as_bytes()[0], &fields) {
                    Err(Fault::NotAnEvent { .. }) => return Err(self.unknown(line)),
                    other => other?,
                }
                events += 1;
            }
        }
    }

    fn unknown(&self, line: &str) -> Fault {
        Fault::NotAnEvent { line: shorten(line), forms: self.forms }
    }
}

/// Returns the fault of a line that has none of the forms; [`Format::read`] fills these in.
pub fn no_event() -> Fault {
    Fault::NotAnEvent { line: String::new(), forms: "" }
}

/// The blocks of a trace by their IDs.
#[derive(Default)]
pub struct Ids(HashMap<u64, Block>);

/// A block of the trace while it is read.
pub struct Block {
    pub number: usize,
    allocated: usize,
    freed: Option<usize>,
}

impl Ids {
    /// Adds a block that is allocated in that line.
    pub fn alloc(&mut self, id: &str, line: usize) -> Result<usize, Fault> {
        let (id, number) = (self::id(id)?, self.0.len());
        match self.0.insert(id, Block { number, allocated: line, freed: None }) {
            Some(before) => Err(Fault::Reused { id, line: before.allocated }),
            None => Ok(number),
        }
    }

    /// Finds a live block.
    pub fn live(&mut self, id: &str) -> Result<&mut Block, Fault> {
        let id = self::id(id)?;
        let block = self.0.get_mut(&id).ok_or(Fault::Unknown(id))?;
        match block.freed {
            Some(line) => Err(Fault::FreedTwice { id, line }),
            None => Ok(block),
        }
    }

    /// Marks a live block as freed in that line.
    pub fn free(&mut self, id: &str, line: usize) -> Result<usize, Fault> {
        let block = self.live(id)?;
        block.freed = Some(line);
        Ok(block.number)
    }
}

fn id(field: &str) -> Result<u64, Fault> {
    number(field, u64::MAX).ok_or_else(|| Fault::Id(shorten(field)))
}

/// Parses a number of digits only, at most `max`.
pub fn number(field: &str, max: u64) -> Option<u64> {
    let digits = !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
    field.parse().ok().filter(|&number| digits && number <= max)
}

/// Shortens a text for a message, since a line of garbage may be long.
pub fn shorten(text: &str) -> String {
    const MAX: usize = 60;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
