//! Parses the lines of a page trace into events.

use super::lines::{Format, Ids, no_event, number, shorten};
use super::{Action, Event, Fault, MAX_CPU, MAX_ORDER, Trace, TraceError};

const PAGES: Format =
    Format { header: "# page trace v1: NAME", forms: "\"+CPU ORDER ID\" nor \"-CPU ID\"" };

/// Reads the trace in `file`, a zstd file that messages call `shown`.
pub fn trace(shown: &str, file: &[u8]) -> Result<Trace, TraceError> {
    let mut reader = Reader::default();
    PAGES.read(shown, file, |line, sign, fields| reader.read_event(line, sign, fields))?;
    let Reader { cpus, orders, events, peak_units, .. } = reader;
    Ok(Trace { name: "", cpus, orders, events, peak_units })
}

#[derive(Default)]
struct Reader {
    blocks: Ids,
    cpus: usize,
    orders: Vec<u8>,
    events: Vec<Event>,
    live_units: u64,
    peak_units: u64,
}

impl Reader {
    fn read_event(&mut self, line: usize, sign: u8, fields: &[&str]) -> Result<(), Fault> {
        let event = match (sign, fields) {
            (b'+', [cpu, order, id]) => self.alloc(line, cpu, order, id)?,
            (b'-', [cpu, id]) => self.free(line, cpu, id)?,
            _ => return Err(no_event()),
        };
        self.cpus = self.cpus.max(event.cpu + 1);
        self.events.push(event);
        Ok(())
    }

    fn alloc(&mut self, line: usize, cpu: &str, order: &str, id: &str) -> Result<Event, Fault> {
        let cpu = self::cpu(cpu)?;
        let order = number(order, MAX_ORDER).ok_or_else(|| Fault::Order(shorten(order)))?;
        let block = self.blocks.alloc(id, line)?;
        self.orders.push(order as u8);
        self.live_units = self.live_units.saturating_add(1 << order);
        self.peak_units = self.peak_units.max(self.live_units);
        Ok(Event { cpu, action: Action::Alloc, block })
    }

    fn free(&mut self, line: usize, cpu: &str, id: &str) -> Result<Event, Fault> {
        let cpu = self::cpu(cpu)?;
        let block = self.blocks.free(id, line)?;
        self.live_units -= 1 << self.orders[block];
        Ok(Event { cpu, action: Action::Free, block })
    }
}

fn cpu(field: &str) -> Result<usize, Fault> {
    let cpu = number(field, MAX_CPU).ok_or_else(|| Fault::Cpu(shorten(field)))?;
    Ok(cpu as usize)
}
