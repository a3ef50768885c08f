//! `processes [DEATHS]`: real processes that share a segment; two live on, others come, one after the other, and are
//! killed by SIGKILL at any moment, some after they were stopped. 200 deaths unless told otherwise.
//!
//! An owner map in a segment of its own knows who holds which unit. Survivors recover as they go, so that several do at
//! once, and each must go on after every death and beside everyone who is stopped. When a segment's life ends, every
//! unit must be free, and come at every order.

#[cfg(target_os = "linux")]
mod deaths;
#[cfg(target_os = "linux")]
mod life;
#[cfg(target_os = "linux")]
mod member;
#[cfg(target_os = "linux")]
mod stage;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    deaths::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
