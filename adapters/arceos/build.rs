//! Takes the tests and benchmarks out of the published crate, as cargo has unpacked it, so that they can be included
//! with other allocators under the names that they use. Nothing else in them is changed.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, ensure};
use cargo_metadata::MetadataCommand;

fn main() -> anyhow::Result<()> {
    let metadata = MetadataCommand::new().exec()?;
    let package = metadata.packages.iter().find(|package| *package.name == "ax-allocator");
    let package = package.context("no package ax-allocator")?;
    let source = package.manifest_path.parent().context("no folder")?.as_std_path();
    println!("cargo:rustc-env=AX_ALLOCATOR_VERSION={}", package.version);

    let bitmap = read(&source.join("src/bitmap.rs"))?;
    let tests = bitmap.split_once("#[cfg(test)]\nmod tests {").context("bitmap.rs has no tests")?;
    write("pages.rs", &format!("mod tests {{{}", tests.1))?;

    // What a file begins with cannot be included, and what it names is to be found where it is included.
    let bytes = without_features(&read(&source.join("tests/allocator.rs"))?);
    write("bytes.rs", &replaced(&bytes, "use ax_allocator::", "use super::")?)?;
    write("utils.rs", &read(&source.join("benches/utils/mod.rs"))?)?;
    let benches = without_features(&read(&source.join("benches/collections.rs"))?);
    let benches = replaced(&benches, "mod utils;\n", "")?;
    let benches = replaced(&benches, "use ax_allocator::", "use super::")?;
    let benches = replaced(&benches, "use self::utils::", "use super::utils::")?;
    let benches = replaced(&benches, "\ncriterion_group!(benches, criterion_benchmark);", "")?;
    let benches = replaced(&benches, "\ncriterion_main!(benches);", "")?;
    let benches = replaced(&benches, ", criterion_group, criterion_main", "")?;
    write("collections.rs", &replaced(&benches, "fn bench(", "pub fn bench(")?)?;
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", source.display());
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn write(name: &str, text: &str) -> anyhow::Result<()> {
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(folder.join(name), text).with_context(|| name.to_owned())
}

fn without_features(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("#![feature("));
    lines.collect::<Vec<_>>().join("\n")
}

/// The text with `from`, which is there once, replaced.
fn replaced(text: &str, from: &str, to: &str) -> anyhow::Result<String> {
    ensure!(text.matches(from).count() == 1, "ax-allocator has changed: no line with {from:?}");
    Ok(text.replace(from, to))
}
