//! Tells the command by which compiler, from which commit and with which crates it was built, for records of measurements.

use std::env;
use std::process::Command;

/// The crates that contenders come from, by the feature that takes them in.
const CRATES: [(&str, &[&str]); 2] = [
    (
        "CARGO_FEATURE_SUITE",
        &[
            "buddy-alloc",
            "buddy_system_allocator",
            "frame-alloc",
            "good_memory_allocator",
            "linked_list_allocator",
            "rlsf",
            "rusty_alloc",
            "sharded-slab",
            "slab",
            "talc",
            "typed-arena",
        ],
    ),
    ("CARGO_FEATURE_NATIVE", &["mimalloc", "snmalloc-rs", "tikv-jemallocator"]),
];

fn main() {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let revision = output("git", &["describe", "--always", "--abbrev=12", "--dirty"]);
    println!("cargo::rustc-env=BUILT_BY={}", output(&rustc, &["--version"]));
    println!("cargo::rustc-env=BUILT_FROM={revision}");
    println!("cargo::rustc-env=BUILT_WITH={}", crates().join(", "));
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../Cargo.lock");
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

/// Returns the names and versions of the contenders' crates in this build.
fn crates() -> Vec<String> {
    let lock = std::fs::read_to_string("../Cargo.lock").unwrap_or_default();
    let taken = CRATES.iter().filter(|(feature, _)| env::var_os(feature).is_some());
    let version = |name: &&str| {
        let (_, entry) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
        Some(format!("{name} {}", entry.split('"').next()?))
    };
    taken.flat_map(|(_, names)| *names).filter_map(version).collect()
}

/// Returns the first line that a command prints, or "unknown".
fn output(command: &str, args: &[&str]) -> String {
    let output = Command::new(command).args(args).output();
    let output = output.ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text.as_deref().and_then(|text| text.lines().next()).unwrap_or("unknown");
    line.to_owned()
}
