//! A library that is some program's `malloc` is never unloaded.

use std::env::var;

/// The processors on which a part of it is assembly: `cfg(with_assembly)`.
const WITH_ASSEMBLY: [&str; 3] = ["x86_64", "aarch64", "riscv64"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(with_assembly)");
    if var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| WITH_ASSEMBLY.contains(&arch.as_str())) {
        println!("cargo::rustc-cfg=with_assembly");
    }
    if var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
