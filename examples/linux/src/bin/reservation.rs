//! An address range of 64 GiB, of which only what is allocated is backed by memory. See the folder's README.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    linux_memory::status("reservation", linux_memory::reservation::run(&clap::Parser::parse()))
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("reservation: this example needs Linux: madvise, huge pages, /proc/self/smaps");
    ExitCode::FAILURE
}
