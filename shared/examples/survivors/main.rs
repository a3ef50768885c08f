//! `survivors [SECONDS]`: a producer and a consumer exchange messages of any size through a segment, while a third
//! process, which allocates and frees as they do, is killed over and over. Nobody waits for it, every message arrives
//! as it was sent, and in the end no byte is missing. Ends after five seconds, or as many as are given.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("survivors: this example needs Linux, as segments do");
}
