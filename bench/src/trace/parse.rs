//! From the lines of a trace to its events.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};

use super::decode::{Frames, MAGIC};
use super::{Action, Event, Fault, MAX_CPU, MAX_ORDER, Trace, TraceError};

/// Reads the trace in `file`, a zstd file that messages call `shown`.
pub fn trace(shown: &str, file: &[u8]) -> Result<Trace, TraceError> {
    let mut reader = Reader::default();
    match reader.read_file(file) {
        Ok(()) => Ok(reader.into_trace(shown)),
        Err(fault) => {
            // A file that is no zstd, or cannot be opened, has no lines.
            let line = if matches!(fault, Fault::NotZstd) { 0 } else { reader.line };
            Err(TraceError { trace: shown.to_owned(), line, fault })
        }
    }
}

/// A block of the trace while it is read.
struct Block {
    number: usize,
    allocated: usize,
    freed: Option<usize>,
}

#[derive(Default)]
struct Reader {
    line: usize,
    blocks: HashMap<u64, Block>,
    cpus: usize,
    orders: Vec<u8>,
    events: Vec<Event>,
    live_units: u64,
    peak_units: u64,
}

impl Reader {
    fn read_file(&mut self, file: &[u8]) -> Result<(), Fault> {
        if !file.starts_with(&MAGIC) {
            return Err(Fault::NotZstd);
        }
        let mut text = BufReader::new(Frames::new(file));
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            self.line += 1;
            let read = text.read_until(b'\n', &mut bytes);
            match read.map_err(|error| Fault::Damaged(error.to_string()))? {
                0 if self.events.is_empty() => return Err(Fault::Empty),
                0 => return Ok(()),
                _ => {
                    self.read_line(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']))?
                }
            }
        }
    }

    fn read_line(&mut self, line: &str) -> Result<(), Fault> {
        if self.line == 1 && !line.starts_with("# page trace v1:") {
            return Err(Fault::Header(shorten(line)));
        }
        if line.starts_with('#') {
            return Ok(());
        }
        let unknown = || Fault::NotAnEvent(shorten(line));
        let fields: Vec<&str> = line.get(1..).ok_or_else(unknown)?.split(' ').collect();
        let event = match (line.as_bytes()[0], &fields[..]) {
            (b'+', [cpu, order, id]) => self.alloc(cpu, order, id)?,
            (b'-', [cpu, id]) => self.free(cpu, id)?,
            _ => return Err(unknown()),
        };
        self.cpus = self.cpus.max(event.cpu + 1);
        self.events.push(event);
        Ok(())
    }

    fn alloc(&mut self, cpu: &str, order: &str, id: &str) -> Result<Event, Fault> {
        let cpu = number(cpu, MAX_CPU).ok_or_else(|| Fault::Cpu(shorten(cpu)))?;
        let order = number(order, MAX_ORDER).ok_or_else(|| Fault::Order(shorten(order)))?;
        let id = number(id, u64::MAX).ok_or_else(|| Fault::Id(shorten(id)))?;
        let number = self.orders.len();
        let block = Block { number, allocated: self.line, freed: None };
        if let Some(before) = self.blocks.insert(id, block) {
            return Err(Fault::Reused { id, line: before.allocated });
        }
        self.orders.push(order as u8);
        self.live_units = self.live_units.saturating_add(1 << order);
        self.peak_units = self.peak_units.max(self.live_units);
        Ok(Event { cpu: cpu as usize, action: Action::Alloc, block: number })
    }

    fn free(&mut self, cpu: &str, id: &str) -> Result<Event, Fault> {
        let cpu = number(cpu, MAX_CPU).ok_or_else(|| Fault::Cpu(shorten(cpu)))?;
        let id = number(id, u64::MAX).ok_or_else(|| Fault::Id(shorten(id)))?;
        let block = self.blocks.get_mut(&id).ok_or(Fault::Unknown(id))?;
        if let Some(line) = block.freed.replace(self.line) {
            return Err(Fault::FreedTwice { id, line });
        }
        self.live_units -= 1 << self.orders[block.number];
        Ok(Event { cpu: cpu as usize, action: Action::Free, block: block.number })
    }

    fn into_trace(self, shown: &str) -> Trace {
        let Self { cpus, orders, events, peak_units, .. } = self;
        Trace { name: shown.to_owned(), cpus, orders, events, peak_units }
    }
}

/// Digits only, and at most `max`.
fn number(field: &str, max: u64) -> Option<u64> {
    let digits = !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
    field.parse().ok().filter(|&number| digits && number <= max)
}

/// What is quoted in a message: a line of garbage may be long.
fn shorten(text: &str) -> String {
    const MAX: usize = 60;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
