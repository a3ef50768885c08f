//! Arrays that lie in a block behind what they belong to.

use core::alloc::Layout;
use core::ptr::NonNull;

/// Returns an element of an array.
///
/// # Safety
/// The array has the element, initialised, and for `'a` it is reached by shared references only.
#[inline(always)]
pub(crate) unsafe fn element<'a, A>(first: NonNull<A>, idx: usize) -> &'a A {
    // SAFETY: the element lies in the array, by the contract.
    let at = unsafe { first.add(idx) };
    // SAFETY: by the contract.
    unsafe { at.as_ref() }
}

/// Makes an array of `len` values at `begin` in a block, and returns where it is.
///
/// # Safety
/// The array lies inside the block, aligned, and the block belongs to the caller.
pub(crate) unsafe fn make_array<A>(
    block: NonNull<u8>,
    begin: usize,
    len: usize,
    value: impl Fn() -> A,
) -> NonNull<A> {
    // SAFETY: inside the block, by the contract.
    let first = unsafe { block.add(begin) }.cast::<A>();
    for idx in 0..len {
        // SAFETY: as above.
        let at = unsafe { first.add(idx) };
        // SAFETY: aligned, and the caller's, by the contract.
        unsafe { at.write(value()) };
    }
    first
}

/// Appends an array of `len` words to the layout; returns where it begins.
pub(crate) fn extend<A>(layout: &mut Layout, len: usize) -> Option<usize> {
    let (longer, begin) = layout.extend(Layout::array::<A>(len).ok()?).ok()?;
    *layout = longer;
    Some(begin)
}
