//! Prints `nbbs.h` as the source of `nbbs-c` has it: `cargo run -p nbbs-header >capi/include/nbbs.h`.

use std::io;
use std::path::Path;

fn main() -> anyhow::Result<()> {
    let capi = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut config = cbindgen::Config::from_root_or_default(capi);
    // One version for the workspace.
    let version = |text: String| text.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    config.after_includes = config.after_includes.map(version);
    cbindgen::Builder::new().with_crate(capi).with_config(config).generate()?.write(io::stdout());
    Ok(())
}
