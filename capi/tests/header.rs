//! `include/nbbs.h` is what the source says. `NBBS_WRITE_HEADER=1 cargo test -p nbbs-c --test header` writes it anew.

use std::path::Path;
use std::{env, fs};

#[test]
fn header_is_what_the_source_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config::from_root_or_default(root);
    let version = |text: String| text.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    config.after_includes = config.after_includes.map(version);
    let bindings = cbindgen::Builder::new().with_crate(root).with_config(config).generate();
    let mut made = Vec::new();
    bindings.expect("the source is understood").write(&mut made);

    let path = root.join("include/nbbs.h");
    if env::var_os("NBBS_WRITE_HEADER").is_some() {
        fs::write(&path, &made).expect("the header can be written");
    }
    let found = fs::read(&path).expect("the header is there");
    assert!(found == made, "{} differs from the source: see {}", path.display(), file!());
}
