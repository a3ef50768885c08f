//! Making memory larger or smaller, in place or by moving it.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::{OfRuns, Operations};
use crate::class::{Class, UNIT, is_aligned};
use crate::region::Runs;

/// A heap, as one caller sees it who changes the size of what it holds.
pub trait Resize<'h>: Operations<'h> {
    /// Makes memory larger or smaller in place, if possible. Returns whether it was.
    #[inline]
    fn resize_in_place(self, at: NonNull<u8>, old: Layout, new: Layout) -> bool {
        match (Class::of(old), Class::of(new)) {
            (None, None) => self.resize_run(at, old.size(), new.size()),
            (from, to) => from == to,
        }
    }

    /// Makes memory larger or smaller, and moves its contents if necessary. Returns `None` if there is no memory; then
    /// nothing has changed.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up for what is returned.
    unsafe fn resize(self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        let new = Layout::from_size_align(size, layout.align()).ok()?;
        // SAFETY: as the caller promises.
        unsafe { self.resize_to(at, layout, new) }
    }

    /// Changes the layout of memory, as [`resize`](Self::resize) changes its size.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with the layout `old`, and gives it up for what is returned.
    unsafe fn resize_to(self, at: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        let is_aligned = is_aligned(at.addr().get(), new.align());
        let stays = || is_aligned && self.resize_in_place(at, old, new);
        if !moves(old.size(), new) && stays() {
            return Some(at);
        }
        // SAFETY: as the caller promises.
        let free = || unsafe { self.free(at, old) };
        // SAFETY: as the caller promises.
        let moved = unsafe { relocate(at, old, new, |new| self.alloc(new), free) };
        moved.or_else(|| self.resize_refused(at, stays, new))
    }

    /// Changes a layout without more memory, which was refused: the refusal has emptied the cache, which may have kept
    /// what lies behind, so that the block `stays` where it is. Returns `at` if the layout is changed.
    #[cold]
    fn resize_refused(
        self,
        at: NonNull<u8>,
        stays: impl FnOnce() -> bool,
        new: Layout,
    ) -> Option<NonNull<u8>> {
        if stays() { Some(at) } else { self.shrink_to_slot(at, Class::of(new)?) }
    }

    /// Makes a run one that serves as a slot of this class, if it is longer than that: the last resort of a heap that is
    /// full. Returns `at` if it was made so.
    #[cold]
    fn shrink_to_slot(self, at: NonNull<u8>, class: Class) -> Option<NonNull<u8>> {
        let run = self.find(at).ok().filter(|run| run.may_hold(class))?;
        let shrinks = run.bytes() >= class.size();
        (shrinks && self.resize_run(at, run.bytes(), class.size())).then_some(at)
    }
}

impl<'h, O: Operations<'h>> Resize<'h> for O {}

/// Returns whether memory of so many bytes moves to get the layout `new`, if there is memory: what becomes a run of less
/// than half. What it leaves in place would lie in a hole as long as it was, which nothing as long fits into again; and
/// the copy is shorter than that.
pub fn moves(old: usize, new: Layout) -> bool {
    let units = Runs::<UNIT>::units_of;
    units(new.size()) < units(old) / 2 && Class::of(new).is_none()
}

/// Allocates memory of the layout `new`, copies to it what fits of the contents of `at`, of the layout `old`, and frees
/// that. Returns `None` if there is no memory; then nothing has changed.
///
/// # Safety
/// The caller holds `at`, and what `alloc` returns.
pub unsafe fn relocate(
    at: NonNull<u8>,
    old: Layout,
    new: Layout,
    alloc: impl FnOnce(Layout) -> Option<NonNull<u8>>,
    free: impl FnOnce(),
) -> Option<NonNull<u8>> {
    let moved = alloc(new)?;
    // SAFETY: the caller holds both, and they have this many bytes.
    unsafe { moved.copy_from_nonoverlapping(at, old.size().min(new.size())) };
    free();
    Some(moved)
}
