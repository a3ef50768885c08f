//! Reads objects of JSON, with errors that name the key.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads an object.
///
/// # Errors
/// It lacks a key, or a key has a value of another type; the error names the key.
pub fn keyed<T: DeserializeOwned>(object: &Value) -> Result<T, String> {
    T::deserialize(object).map_err(|error| {
        let error = error.to_string();
        match culprit::<T>(object, &error) {
            Some(key) => format!("{key}: {error}"),
            None => error,
        }
    })
}

/// Returns the key whose value alone causes the error, which does not name it; what is missing is named already.
fn culprit<'a, T: DeserializeOwned>(object: &'a Value, error: &str) -> Option<&'a String> {
    let alone = |key: &&String| {
        let only = Map::from_iter([((*key).clone(), object[*key].clone())]);
        T::deserialize(Value::Object(only)).is_err_and(|only| only.to_string() == error)
    };
    object.as_object()?.keys().find(alone).filter(|_| !error.starts_with("missing field"))
}
