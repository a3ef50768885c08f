//! Gives a guest's free memory back to its host, and to the guest again, without a lock. See the folder's README.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    linux_memory::status("balloon", linux_memory::balloon::run(&clap::Parser::parse()))
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("balloon: this example needs Linux: memfd_create, fallocate, /proc/PID/fd");
    ExitCode::FAILURE
}
