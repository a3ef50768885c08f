//! `malloc`, `free` and their relatives, of a lock-free heap: for a whole program, by `LD_PRELOAD` or linked.
//!
//! ```sh
//! cargo build --release -p nbbs-malloc
//! LD_PRELOAD=target/release/libnbbs_malloc.so python3 -c 'print(sum(range(10)))'
//! ```
//!
//! A program in Rust gets them, for all that it links in C and C++, by `use nbbs_malloc as _;`.
//!
//! ```
//! # #[cfg(target_os = "linux")]
//! # {
//! use nbbs_malloc as _;
//!
//! // SAFETY: the block is freed once.
//! unsafe {
//!     let block = libc::malloc(100);
//!     assert_eq!(libc::malloc_usable_size(block), 112); // glibc says 104
//!     libc::free(block);
//! }
//! # }
//! ```
//!
//! - **A signal handler may allocate and free**, whatever it interrupts. With the C library's `malloc` it may wait for
//!   ever for a lock that the interrupted code holds.
//! - **A child of `fork` may allocate at once**, whatever the other threads of its parent were doing: there is no lock
//!   that they could hold, and no `pthread_atfork`.
//! - **A wrong `free` ends the program** where the heap can tell, with the address and the reason.
//!
//! The memory is mapped when it is first asked for, as much address space as the machine has memory, of which only
//! what is used takes memory. Where the system counts address space (`ulimit -v`, `vm.overcommit_memory=2`), it is 64
//! MiB at first, and doubled whenever it is full, seven times.
//!
//! # Layers
//!
//! ```text
//! functions    what C calls                            report  what was used, at the end
//! memory       the heap, and how it gets memory        fail    how a program ends that frees what it must not
//! environment  what the environment says
//! ```
#![cfg(target_os = "linux")]

mod environment;
mod fail;
mod functions;
mod memory;
mod report;

pub use functions::*;
