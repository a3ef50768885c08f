//! Rows as comma-separated values, under the names of the first row's figures.

use std::fmt;
use std::io;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::row::Row;

/// Values on standard output.
pub struct Csv {
    writer: csv::Writer<io::Stdout>,
    begun: bool,
}

impl Default for Csv {
    fn default() -> Self {
        Self { writer: csv::Writer::from_writer(io::stdout()), begun: false }
    }
}

impl Csv {
    /// Prints a row, and the names before the first.
    ///
    /// # Errors
    /// Nobody reads it.
    pub fn print(&mut self, row: &Row) -> anyhow::Result<()> {
        let Cells(cells) = serde_json::from_str(&serde_json::to_string(row)?)?;
        if !std::mem::replace(&mut self.begun, true) {
            self.writer.write_record(cells.iter().map(|(name, _)| name))?;
        }
        self.writer.write_record(cells.iter().map(|(_, value)| text(value)))?;
        Ok(self.writer.flush()?)
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An object's names and values, in their order, which a map would lose.
struct Cells(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Cells {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Cells;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cells, A::Error> {
                let mut cells = Vec::new();
                while let Some(cell) = map.next_entry()? {
                    cells.push(cell);
                }
                Ok(Cells(cells))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
