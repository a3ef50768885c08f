//! Reads objects of JSON, with errors that name the key, as in `machine.cpus`.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

/// Reads an object.
///
/// # Errors
/// It lacks a key, or a key has a value of another type; the error names the key.
pub fn keyed<T: DeserializeOwned>(object: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(object).map_err(|error| match error.path().iter().next() {
        Some(Segment::Map { .. }) => format!("{}: {}", error.path(), error.inner()),
        _ => error.inner().to_string(),
    })
}
