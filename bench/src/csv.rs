//! Prints rows as comma-separated values, under the names of their figures.

use std::fmt;
use std::io;

use anyhow::Context;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::output::UNWRITABLE;
use crate::row::Row;

/// A writer of values to standard output.
pub struct Csv {
    writer: csv::Writer<io::Stdout>,
    /// The names in the latest header line.
    names: Vec<String>,
}

impl Default for Csv {
    fn default() -> Self {
        let writer = csv::WriterBuilder::new().flexible(true).from_writer(io::stdout());
        Self { writer, names: Vec::new() }
    }
}

impl Csv {
    /// Prints a row. Prints the names first, before the first row and before a row that has other names.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn print(&mut self, row: &Row) -> anyhow::Result<()> {
        let Cells(cells) = serde_json::from_str(&serde_json::to_string(row)?)?;
        let (names, values): (Vec<String>, Vec<Value>) = cells.into_iter().unzip();
        self.write(names, &values).context(UNWRITABLE)
    }

    fn write(&mut self, names: Vec<String>, values: &[Value]) -> csv::Result<()> {
        if names != self.names {
            self.writer.write_record(&names)?;
            self.names = names;
        }
        self.writer.write_record(values.iter().map(text))?;
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

/// An object's names and values, in the order that a map would lose.
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
