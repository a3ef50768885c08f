//! Tells the linker where the machine wants the kernel.

fn main() {
    let said = |name| std::env::var(name).expect("cargo says it");
    let (folder, machine) = (said("CARGO_MANIFEST_DIR"), said("CARGO_CFG_TARGET_ARCH"));
    let script = format!("src/arch/{machine}/link.ld");
    println!("cargo::rerun-if-changed={script}");
    println!("cargo::rustc-link-arg-bins=-T{folder}/{script}");
    // At the address of the script, and nowhere else.
    println!("cargo::rustc-link-arg-bins=--no-pie");
}
