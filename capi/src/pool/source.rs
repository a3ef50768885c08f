//! Where the memory of a pool comes from.
//!
//! A pool keeps its slots in an inner one, a typed pool of objects without size, whose addresses are one apart and only
//! name slots: slot `i` of a chunk at `m` is called `m + i` there, and its object is at `m + i * stride`. What the
//! inner pool asks of its source with an alignment of 1 are chunks of such slots; everything else are bitmaps and
//! tables.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use nbbs_pool::{ChunkSource, Exhausted};

use crate::error::{Code, Error};

/// Where a pool gets memory from, and gives it back to. Both functions may be called by several threads at once.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Returns `bytes` bytes at a multiple of `align`, a power of two, or null. What is less aligned is given back at
    /// once, as if there were nothing.
    pub alloc: Option<
        unsafe extern "C" fn(context: *mut c_void, bytes: usize, align: usize) -> *mut c_void,
    >,
    /// Takes back what `alloc` returned for the same sizes. Null: nothing is given back.
    pub free: Option<
        unsafe extern "C" fn(context: *mut c_void, block: *mut c_void, bytes: usize, align: usize),
    >,
    /// Passed to both functions.
    pub context: *mut c_void,
}

/// The shape of slots and chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Bytes from one object to the next.
    pub stride: usize,
    /// What makes 1 of the odd part of `stride`, multiplied.
    inverse: usize,
    pub align: usize,
    pub chunk_slots: usize,
    /// To what chunks are aligned, so that an object's address leads to its chunk.
    pub chunk_align: usize,
}

impl Shape {
    pub(super) fn new(size: usize, align: usize, chunk_slots: usize) -> Result<Self, Error> {
        let most = 1_usize << (usize::BITS - 3);
        let align = align.max(1);
        if !align.is_power_of_two() || align > most {
            return Err(Error::of(Code::Alignment, align as u64, most as u64));
        }
        let too_large = Error::of(Code::Size, size as u64, (most / chunk_slots.max(1)) as u64);
        if size == 0 || size > most {
            return Err(too_large);
        }
        let stride = size.next_multiple_of(align);
        let bytes = stride.checked_mul(chunk_slots).filter(|&bytes| bytes <= most);
        let chunk_align = bytes.ok_or(too_large)?.next_power_of_two().max(align);
        let inverse = inverse(stride >> stride.trailing_zeros());
        Ok(Self { stride, inverse, align, chunk_slots, chunk_align })
    }

    /// Returns the most objects of this stride that lie in one block.
    pub(super) fn most_in_block(&self) -> usize {
        usize::MAX / 8 / self.stride
    }

    /// Which object begins so many bytes behind the first of its chunk; more than any chunk has: none does. A division
    /// that has a remainder comes out larger than any that has none.
    #[inline]
    pub(super) fn number_at(&self, offset: usize) -> usize {
        offset.wrapping_mul(self.inverse).rotate_right(self.stride.trailing_zeros())
    }

    /// A refusal of the inner pool's, in what the source was asked for.
    pub(super) fn refusal(&self, reason: Exhausted) -> Error {
        match reason {
            Exhausted::Memory { bytes, align: 1 } => {
                let (bytes, align) = (bytes.saturating_mul(self.stride), self.chunk_align);
                Exhausted::Memory { bytes, align }.into()
            }
            other => other.into(),
        }
    }
}

/// The number that makes 1 of an odd one, multiplied.
fn inverse(odd: usize) -> usize {
    // Right to 3 bits, then to 6, 12, 24, 48, 96.
    (0..5).fold(odd, |found, _| found.wrapping_mul(2_usize.wrapping_sub(odd.wrapping_mul(found))))
}

/// The pool's source, as the inner one sees it.
#[derive(Debug)]
pub(super) enum Memory {
    /// One block of the caller's: bookkeeping between `begin` and `slots`, of which `cut` bytes are taken, and then
    /// slots, of which so many are `given`.
    Block { begin: *mut u8, slots: *mut u8, cut: AtomicUsize, given: AtomicUsize },
    /// The caller's functions, and how many chunks' memory was given back to them.
    Source { source: Source, shape: Shape, withdrawn: AtomicUsize },
}

impl Memory {
    /// Bookkeeping from `begin` on, objects from `slots` on.
    pub(super) const fn block(begin: *mut u8, slots: *mut u8) -> Self {
        Self::Block { begin, slots, cut: AtomicUsize::new(0), given: AtomicUsize::new(0) }
    }

    pub(super) const fn source(source: Source, shape: Shape) -> Self {
        Self::Source { source, shape, withdrawn: AtomicUsize::new(0) }
    }

    /// Chunks whose memory was given back, or is about to be.
    pub(super) fn withdrawn(&self) -> &AtomicUsize {
        static NONE: AtomicUsize = AtomicUsize::new(0);
        match self {
            Self::Block { .. } => &NONE,
            Self::Source { withdrawn, .. } => withdrawn,
        }
    }

    /// Cuts so many bytes off; their place.
    fn cut_off(
        begin: *mut u8,
        end: *mut u8,
        cut: &AtomicUsize,
        layout: Layout,
    ) -> Option<NonNull<u8>> {
        let room = end.addr() - begin.addr();
        let aligned = |cut: usize| {
            let padding = (begin.addr() + cut).wrapping_neg() & (layout.align() - 1);
            cut.checked_add(padding)
        };
        let further = |cut| aligned(cut)?.checked_add(layout.size()).filter(|&end| end <= room);
        // Relaxed: all of it is cut off by the thread that makes the pool.
        let before = cut.fetch_update(Ordering::Relaxed, Ordering::Relaxed, further).ok()?;
        NonNull::new(begin.wrapping_add(aligned(before)?))
    }

    /// What is really needed for what the inner pool asks for.
    fn real(layout: Layout, shape: &Shape) -> Option<Layout> {
        if layout.align() > 1 {
            return Some(layout);
        }
        let bytes = layout.size().checked_mul(shape.stride)?;
        Layout::from_size_align(bytes, shape.chunk_align).ok()
    }
}

// SAFETY: blocks of `Source` are what its functions promise, large enough and aligned by `real`. Those of `Block` are
// cut off one after another from memory that is the pool's until its end; slots have no bytes that the inner pool
// touches, and each chunk of them gets a stretch of addresses within the memory of the objects.
unsafe impl ChunkSource for Memory {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        match self {
            Self::Block { slots, given, .. } if layout.align() == 1 => {
                // Relaxed: as above.
                let first = given.fetch_add(layout.size(), Ordering::Relaxed);
                NonNull::new(slots.wrapping_add(first))
            }
            Self::Block { begin, slots, cut, .. } => Self::cut_off(*begin, *slots, cut, layout),
            Self::Source { source, shape, .. } => {
                let real = Self::real(layout, shape)?;
                // SAFETY: the caller's function, called as it was promised to be.
                let block = unsafe { source.alloc?(source.context, real.size(), real.align()) };
                let block = NonNull::new(block.cast::<u8>())?;
                if block.addr().get() % real.align() != 0 {
                    // SAFETY: it has just come for this layout, and nobody has seen it.
                    unsafe { self.free(block, layout) };
                    return None;
                }
                Some(block)
            }
        }
    }

    fn retire(&self, _: Layout) {
        if let Self::Source { withdrawn, .. } = self {
            // Relaxed: whoever has an object in the chunk's next memory came after that was installed, and so after this.
            withdrawn.fetch_add(1, Ordering::Relaxed);
        }
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        let Self::Source { source: Source { free, context, .. }, shape, .. } = self else {
            return;
        };
        if let Some(free) = free
            && let Some(layout) = Self::real(layout, shape)
        {
            // SAFETY: the block came from `alloc` for the same layout, by the trait's contract.
            unsafe { free(*context, block.as_ptr().cast(), layout.size(), layout.align()) };
        }
    }
}

/// The C library's memory.
#[cfg(feature = "std")]
pub(super) fn of_the_system() -> Option<Source> {
    use std::alloc::{GlobalAlloc, System};

    unsafe extern "C" fn alloc(_: *mut c_void, bytes: usize, align: usize) -> *mut c_void {
        match Layout::from_size_align(bytes, align) {
            // SAFETY: the inner pool asks for no empty blocks.
            Ok(layout) => unsafe { System.alloc(layout) }.cast(),
            Err(_) => core::ptr::null_mut(),
        }
    }
    unsafe extern "C" fn free(_: *mut c_void, block: *mut c_void, bytes: usize, align: usize) {
        if let Ok(layout) = Layout::from_size_align(bytes, align) {
            // SAFETY: the block came from `alloc` for the same layout.
            unsafe { System.dealloc(block.cast(), layout) };
        }
    }
    Some(Source { alloc: Some(alloc), free: Some(free), context: core::ptr::null_mut() })
}

/// There is none.
#[cfg(not(feature = "std"))]
pub(super) fn of_the_system() -> Option<Source> {
    None
}
