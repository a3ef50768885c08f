//! Tells the command by which compiler and from which commit it was built, for records of measurements.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let revision = output("git", &["describe", "--always", "--abbrev=12", "--dirty"]);
    println!("cargo::rustc-env=BUILT_BY={}", output(&rustc, &["--version"]));
    println!("cargo::rustc-env=BUILT_FROM={revision}");
    println!("cargo::rerun-if-changed=build.rs");
    // What is measured, and what measures it, may differ from the commit.
    for folder in ["bench", "nbbs", "heap", "pool", "capi", "baselines", "testkit"] {
        println!("cargo::rerun-if-changed=../{folder}/src");
    }
    // This file grows with every commit and checkout.
    let log = output("git", &["rev-parse", "--git-path", "logs/HEAD"]);
    if std::path::Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// Returns the first line that a command prints, or "unknown".
fn output(command: &str, args: &[&str]) -> String {
    let output = Command::new(command).args(args).output();
    let output = output.ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text.as_deref().and_then(|text| text.lines().next()).unwrap_or("unknown");
    line.to_owned()
}
