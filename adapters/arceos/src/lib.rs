//! nbbs under the names of ax-allocator's allocators: the glue that a kernel made of ArceOS' parts would have.

mod bytes;
mod pages;

pub use bytes::Bytes;
pub use pages::Pages;

/// Of the crate whose tests these are.
pub const VERSION: &str = env!("AX_ALLOCATOR_VERSION");
