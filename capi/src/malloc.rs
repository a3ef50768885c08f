//! `malloc` and `free` as the caller of `nb_init` sees them.

use core::ffi::c_void;

/// Allocates like `malloc`.
pub type Malloc = Option<unsafe extern "C" fn(bytes: usize) -> *mut c_void>;
/// Frees like `free`.
pub type Free = Option<unsafe extern "C" fn(block: *mut c_void)>;

#[cfg(feature = "std")]
mod libc {
    use core::ffi::c_void;

    unsafe extern "C" {
        pub(super) fn malloc(bytes: usize) -> *mut c_void;
        pub(super) fn free(block: *mut c_void);
    }
}

/// The C library's, where there is one.
#[cfg(feature = "std")]
pub(crate) const DEFAULT: (Malloc, Free) = (Some(libc::malloc), Some(libc::free));
#[cfg(not(feature = "std"))]
pub(crate) const DEFAULT: (Malloc, Free) = (None, None);
