//! What the environment says.

use core::ffi::{CStr, c_char};

unsafe extern "C" {
    fn secure_getenv(name: *const c_char) -> *const c_char;
}

/// Calls `visit` with what the environment says. Nothing in a program that has more rights than its caller, for whom it
/// would write to files.
pub fn with<R>(name: &CStr, visit: impl FnOnce(&CStr) -> R) -> Option<R> {
    // SAFETY: the name ends with a zero byte.
    let value = unsafe { secure_getenv(name.as_ptr()) };
    // SAFETY: the string ends with a zero byte, and stays during `visit`: POSIX forbids to change the environment
    // beside a `getenv`.
    (!value.is_null()).then(|| visit(unsafe { CStr::from_ptr(value) }))
}
