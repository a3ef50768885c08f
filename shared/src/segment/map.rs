//! The mapping of a segment into this process's memory.

use std::ffi::c_void;
use std::fs::File;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, munmap};

use crate::error::AttachError;
use crate::process::Process;
use crate::slabs::Memory;

/// A mapping of the whole of a segment, shared with others.
pub(super) struct Map {
    start: NonNull<c_void>,
    bytes: NonZeroUsize,
    /// The process that has it: a child of that process does not.
    process: Process,
}

// SAFETY: it is memory that no thread has for itself, and it is only given away by shared atomics and raw pointers.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// Maps the first `bytes` bytes of a file, which has at least that many. A child does not inherit the mapping.
    pub fn new(file: &File, bytes: NonZeroUsize) -> Result<Self, AttachError> {
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address that the system chooses, of nothing that Rust knows.
        let start = unsafe { mmap(None, bytes, access, MapFlags::MAP_SHARED, file, 0) };
        let start = start.map_err(AttachError::system("map the segment"))?;
        let map = Self { start, bytes, process: Process::this() };
        // SAFETY: the mapping just made. It changes nothing for this process.
        let advised = unsafe { madvise(start, bytes.get(), MmapAdvise::MADV_DONTFORK) };
        advised.map_err(AttachError::system("keep the segment from children"))?;
        Ok(map)
    }

    /// Returns its address in this process.
    #[must_use]
    pub fn address(&self) -> usize {
        self.start.addr().get()
    }

    /// Returns `count` words from byte `at` on. `None` if they are not within it, or not aligned.
    #[must_use]
    pub fn words(&self, at: u64, count: usize) -> Option<&[AtomicU64]> {
        let bytes = count.checked_mul(8)?;
        let start = self.bytes(at, bytes)?.cast::<AtomicU64>();
        if !start.is_aligned() {
            return None;
        }
        // SAFETY: within the mapping, which lives as long as `self`, and aligned. Everybody here accesses these words
        // by atomics of this size; any bits are a value of one. A look at a slot that its caller does not hold may meet
        // plain writes of a block's holder; what it reads is dropped then (VERIFICATION.md, "Not covered").
        Some(unsafe { slice::from_raw_parts(start.as_ptr(), count) })
    }

    /// Returns the address of `bytes` bytes from byte `at` on. `None` if they are not within it.
    #[must_use]
    pub fn bytes(&self, at: u64, bytes: usize) -> Option<NonNull<u8>> {
        let at = usize::try_from(at).ok()?;
        if at.checked_add(bytes)? > self.bytes.get() {
            return None;
        }
        // SAFETY: `at` is within the mapping, or just behind it.
        Some(unsafe { self.start.cast::<u8>().add(at) })
    }
}

/// The units of a segment, in which slabs have words.
#[derive(Clone)]
pub(crate) struct Arena {
    map: Arc<Map>,
    start: u64,
    bytes: u64,
}

impl Arena {
    /// Creates the arena from one byte of the mapping to another.
    pub(super) fn new(map: Arc<Map>, start: u64, end: u64) -> Self {
        Self { map, start, bytes: end - start }
    }
}

impl Memory<AtomicU64> for Arena {
    #[inline(always)]
    fn words(&self, at: u64, count: usize) -> Option<&[AtomicU64]> {
        let end = at.checked_add(count as u64 * 8)?;
        if end > self.bytes {
            return None;
        }
        self.map.words(self.start + at, count)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // In a child something else may be at this address.
        if self.process.is_this() {
            // SAFETY: the mapping is this one's, and whatever borrows from it is gone.
            let _ = unsafe { munmap(self.start, self.bytes.get()) };
        }
    }
}
