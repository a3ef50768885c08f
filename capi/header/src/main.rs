//! Prints a header as the source of `nbbs-c` has it: `cargo run -p nbbs-header >capi/include/nbbs.h`, and
//! `cargo run -p nbbs-header nb >capi/include/nbbs/nb.h`, which has the names `nb_*` alone.

use std::io;
use std::path::Path;

use cbindgen::{Builder, Config};

/// Where the `nb_*` functions are, and what they are made of.
const PLAIN: [&str; 3] = ["plain/mod.rs", "malloc.rs", "error.rs"];

fn main() -> anyhow::Result<()> {
    let capi = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut config = Config::from_root_or_default(capi);
    let header = std::env::args_os().nth(1).map(|name| name.to_string_lossy().into_owned());
    let builder = match header.as_deref() {
        None => {
            // One version for the workspace.
            let version = |text: String| text.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
            config.after_includes = config.after_includes.map(version);
            Builder::new().with_crate(capi)
        }
        Some("nb") => {
            let part =
                Config::from_file(capi.join("cbindgen-nb.toml")).map_err(anyhow::Error::msg)?;
            config.header = part.header;
            config.include_guard = part.include_guard;
            config.after_includes = part.after_includes;
            config.export.item_types = part.export.item_types;
            config.export.exclude.extend(part.export.exclude);
            let src = |file| capi.join("src").join(file);
            PLAIN.iter().fold(Builder::new(), |builder, file| builder.with_src(src(file)))
        }
        Some(other) => anyhow::bail!("no header is called {other}: nb, or none"),
    };
    builder.with_config(config).generate()?.write(io::stdout());
    Ok(())
}
