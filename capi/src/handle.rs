//! What the functions of pools, heaps and segments begin and end with.

use core::ffi::c_void;

use crate::error::{Code, Error, Hook, Reporter};
use crate::function::Told;
use crate::pointer;

/// What a C program has a pointer to, and which knows whom to tell of misuse.
pub(crate) trait Reporting {
    fn reporter(&self) -> Reporter;
}

/// Runs `work` on what a handle leads to; what it refuses goes to `error` and the hook.
///
/// # Safety
/// Both pointers are null, misaligned, or lead to a handle's and to memory for an `Error`.
#[inline(always)]
pub(crate) unsafe fn run<H: Reporting>(
    handle: *const H,
    error: Told,
    work: impl FnOnce(&H) -> Result<(), Error>,
) -> Code {
    // SAFETY: by the contract.
    unsafe { run_but(&[], handle, error, work) }
}

/// Runs `work` on what a handle leads to; what it refuses goes to `error`, and to the hook unless it has one of the
/// `ordinary` codes, which are answers here.
///
/// # Safety
/// Those of [`run`].
#[inline(always)]
pub(crate) unsafe fn run_but<H: Reporting>(
    ordinary: &[Code],
    handle: *const H,
    error: Told,
    work: impl FnOnce(&H) -> Result<(), Error>,
) -> Code {
    let (came_out, reporter) = match pointer::checked(handle, 1) {
        Ok(handle) => {
            // SAFETY: by the contract.
            let handle = unsafe { handle.as_ref() };
            (work(handle), handle.reporter())
        }
        Err(refused) => (Err(refused), Reporter::NOBODY),
    };
    let is_ordinary = |refused: &Error| refused.code().is_some_and(|code| ordinary.contains(&code));
    let reporter =
        if came_out.as_ref().is_err_and(is_ordinary) { Reporter::NOBODY } else { reporter };
    // SAFETY: by the contract.
    unsafe { reporter.answer(came_out, error) }
}

/// Sets the hook of what a handle leads to: the reporter at `place`.
///
/// # Safety
/// Both pointers are null, misaligned, or lead to a handle's, which nobody else is using, and to memory for an `Error`.
/// `place` makes a pointer to the handle's reporter of one to the handle.
pub(crate) unsafe fn set_hook<H>(
    handle: *mut H,
    (hook, context): (Hook, *mut c_void),
    error: Told,
    place: impl FnOnce(*mut H) -> *mut Reporter,
) -> Code {
    let set = pointer::checked(handle, 1).map(|handle| {
        // SAFETY: by the contract.
        unsafe { place(handle.as_ptr()).write(Reporter { hook, context }) };
    });
    // SAFETY: by the contract.
    unsafe { Reporter::NOBODY.answer(set, error) }
}

/// What `ask` says of what a handle leads to; of a null pointer, nothing.
///
/// # Safety
/// The pointer is null, misaligned, or leads to one.
pub(crate) unsafe fn ask<H, T: Default>(handle: *const H, ask: impl FnOnce(&H) -> T) -> T {
    // SAFETY: by the contract.
    pointer::checked(handle, 1)
        .map_or_else(|_| T::default(), |handle| ask(unsafe { handle.as_ref() }))
}
