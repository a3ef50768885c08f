//! Tells the linker where the machine expects the kernel.

fn main() {
    let said = |name| std::env::var(name).expect("cargo says it");
    let (folder, machine) = (said("CARGO_MANIFEST_DIR"), said("CARGO_CFG_TARGET_ARCH"));
    let script = format!("src/arch/{machine}/link.ld");
    println!("cargo::rerun-if-changed={script}");
    println!("cargo::rustc-link-arg-bins=-T{folder}/{script}");
    // The kernel lies at the address of the script, and nowhere else.
    println!("cargo::rustc-link-arg-bins=--no-pie");
}
