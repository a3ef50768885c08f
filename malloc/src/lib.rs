//! `malloc`, `free` and their relatives, of a lock-free heap: for a whole program, by `LD_PRELOAD` or linked.
//!
//! ```sh
//! cargo build --release -p nbbs-malloc
//! LD_PRELOAD=$PWD/target/release/libnbbs_malloc.so python3 -c 'print("it runs")'
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
//! # Layers
//!
//! ```text
//! functions    what C calls
//! memory       how the heap gets memory            report  what was used, at the end
//! idle         when memory goes back               line    lines that are written without memory
//! thread       the heap, and numbers of threads    system  `errno`, cancellation, pages, time
//! environment  what the environment says           loader  `dlopen`, for libraries that would have another `malloc`
//! ```
#![cfg(target_os = "linux")]
#![deny(clippy::multiple_unsafe_ops_per_block)]

mod environment;
mod functions;
mod idle;
mod line;
#[cfg(with_assembly)]
mod loader;
mod memory;
mod own;
mod report;
mod system;
mod thread;

pub use functions::{
    aligned_alloc, calloc, free, free_aligned_sized, free_sized, malloc, malloc_trim,
    malloc_usable_size, memalign, posix_memalign, pvalloc, realloc, reallocarray, valloc,
};
