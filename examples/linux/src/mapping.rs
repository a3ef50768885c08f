//! Memory by offset, and the words by which its contents are checked.

use std::fs::File;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, io};

use rustix::mm::{self, Advice, MapFlags, MprotectFlags, ProtFlags};

/// The allowed accesses to pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: an access ends the program.
    None,
    /// Reading and writing.
    All,
}

/// A mapping, which is removed when this value is dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// The range requested from the operating system: more than `bytes`, so that `start` could be aligned.
    whole: (NonNull<u8>, usize),
}

// SAFETY: addresses of memory about which any thread may ask the operating system, and which is only accessed by the
// atomics of `word`.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping as it was made; all references into it borrow `self`.
        let _ = unsafe { mm::munmap(self.whole.0.as_ptr().cast(), self.whole.1) };
    }
}

impl Mapping {
    /// Reserves addresses without memory, the first a multiple of `align` bytes. Nothing is charged for them before
    /// they are used.
    ///
    /// # Errors
    /// Those of the operating system: there are not enough addresses, or it does not promise them.
    pub fn reserve(bytes: usize, align: usize, access: Access) -> io::Result<Self> {
        let asked = bytes + align;
        let protection = match access {
            Access::None => ProtFlags::empty(),
            Access::All => ProtFlags::READ | ProtFlags::WRITE,
        };
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: this makes a new mapping, at a place that the system chooses.
        let at = unsafe { mm::mmap_anonymous(ptr::null_mut(), asked, protection, flags)? };
        let whole = NonNull::new(at.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: at most `align` bytes further, which were asked for in addition.
        let start =
            unsafe { whole.add(whole.addr().get().next_multiple_of(align) - whole.addr().get()) };
        Ok(Self { start, bytes, whole: (whole, asked) })
    }

    /// Maps the first `bytes` bytes of a file, shared with every process that maps them.
    ///
    /// # Errors
    /// Those of the operating system; the file is too short.
    pub fn shared(file: &File, bytes: usize) -> io::Result<Self> {
        if file.metadata()?.len() < bytes as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: this makes a new mapping, at a place that the system chooses, of a file that is long enough.
        let at = unsafe { mm::mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0)? };
        let start = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes, whole: (start, bytes) })
    }

    /// Returns its addresses.
    pub fn addresses(&self) -> Range<usize> {
        let start = self.start.addr().get();
        start..start + self.bytes
    }

    /// Returns `len` words from byte `from` on. All processes only access them by atomics.
    ///
    /// # Safety
    /// They can be accessed as long as `self` is there.
    pub unsafe fn words(&self, from: usize, len: usize) -> &[AtomicU64] {
        assert!(from.is_multiple_of(8) && from + 8 * len <= self.bytes);
        // SAFETY: within the mapping and aligned; the caller says that it can be accessed; any bits are a value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(from).cast(), len) }
    }

    /// Allows or forbids access to a range.
    ///
    /// # Errors
    /// Those of the operating system, above all if there are more ranges than it keeps apart (`vm.max_map_count`).
    pub fn protect(&self, range: &Range<usize>, access: Access) -> io::Result<()> {
        let flags = match access {
            Access::None => MprotectFlags::empty(),
            Access::All => MprotectFlags::READ | MprotectFlags::WRITE,
        };
        // SAFETY: pages of this mapping. A caller that forbids access ensures that nobody accesses them.
        unsafe { mm::mprotect(self.at(range).cast(), range.len(), flags)? };
        Ok(())
    }

    /// Tells the operating system something about a range.
    ///
    /// # Errors
    /// The operating system's.
    pub fn advise(&self, range: &Range<usize>, advice: Advice) -> io::Result<()> {
        // SAFETY: pages of this mapping, in which there is nothing but words of which any bits are a value.
        unsafe { mm::madvise(self.at(range).cast(), range.len(), advice)? };
        Ok(())
    }

    fn at(&self, range: &Range<usize>) -> *mut u8 {
        assert!(range.start <= range.end && range.end <= self.bytes);
        // SAFETY: within the mapping.
        unsafe { self.start.as_ptr().add(range.start) }
    }

    /// Replaces the contents `from` of a range by `to`: one word at each end of each page.
    ///
    /// # Errors
    /// A word that is not of `from`.
    ///
    /// # Safety
    /// The pages can be accessed.
    pub unsafe fn replace(
        &self,
        range: Range<usize>,
        from: Contents,
        to: Contents,
    ) -> Result<(), Foreign> {
        let page = rustix::param::page_size();
        for at in range.step_by(page).flat_map(|first| [first, first + page - 8]) {
            // SAFETY: the caller says so.
            let word = unsafe { &self.words(at, 1)[0] };
            let expected = from.word(at);
            // Relaxed: the allocator orders the holder of the block after its last holder, and this is what is checked
            // here. It is a swap, not a load and a store, with which the page would be provided twice: to read, and to
            // write.
            let found = word.swap(to.word(at), Ordering::Relaxed);
            if found != expected {
                return Err(Foreign { at, found, expected });
            }
        }
        Ok(())
    }
}

/// The contents of a block's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Zeros, as in memory that was never written to.
    Zero,
    /// Words made from a number and their place, never zero.
    Of(u64),
}

impl Contents {
    fn word(self, at: usize) -> u64 {
        match self {
            Self::Zero => 0,
            Self::Of(tag) => (tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at as u64) | 1,
        }
    }
}

/// A word of a block that differs from what its holder left there.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    at: usize,
    found: u64,
    expected: u64,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, found, expected } = self;
        write!(
            f,
            "byte {at:#x} of the memory: {found:#x} is not {expected:#x}, which its holder left there"
        )
    }
}

impl std::error::Error for Foreign {}
