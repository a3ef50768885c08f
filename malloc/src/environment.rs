//! What the environment says.

use core::ffi::{CStr, c_char};

unsafe extern "C" {
    fn secure_getenv(name: *const c_char) -> *const c_char;
}

/// Returns what the environment says. Nothing in a program that has more rights than who called it: it would write to
/// files for the caller.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends with a zero byte.
    let value = unsafe { secure_getenv(name.as_ptr()) };
    // SAFETY: the environment's strings end with a zero byte.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}
