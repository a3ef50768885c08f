//! Tells the linker where the machine wants the kernel.

fn main() {
    let script = "src/arch/x86_64/link.ld";
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo names the folder");
    println!("cargo::rerun-if-changed={script}");
    println!("cargo::rustc-link-arg-bins=-T{folder}/{script}");
    // At the address of the script, and nowhere else.
    println!("cargo::rustc-link-arg-bins=--no-pie");
}
