//! Reads the inputs that the fuzzer has kept.

use std::fs::File;
use std::io::{Read, Result};
use std::path::Path;

/// Reads the inputs of a fuzz target, with their names, from `verify/fuzz/corpus/TARGET.tar`.
///
/// # Errors
/// The archive does not exist, or cannot be read.
pub fn corpus(target: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../verify/fuzz/corpus");
    let mut archive = tar::Archive::new(File::open(folder.join(target).with_extension("tar"))?);
    let mut inputs = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_file() {
            let name = format!("{target}/{}", entry.path()?.display());
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            inputs.push((name, bytes));
        }
    }
    Ok(inputs)
}
