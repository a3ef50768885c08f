//! The chunk allocator: next fit over a bitmap, with a hint that prefers small gaps.
//!
//! It follows P. Schuster's `simple_chunk_allocator` (2022). Memory is divided into chunks of one size, with a bit for
//! each; a block takes as many adjoining chunks as its size needs. The search tries every free chunk in turn, from the
//! hint on and once around. A freed gap becomes the hint if it is smaller than the hint before; once the hint has been
//! taken, the chunk after the latest block's first is the hint.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ptr::NonNull;

use super::locked::{Sequential, move_block};
use super::region::Region;

/// The place where the next search begins, and how much is believed to be free there.
#[derive(Clone, Copy, Debug)]
struct Hint {
    chunk: usize,
    chunks: usize,
    align: usize,
}

/// The chunk allocator, with chunks of `CHUNK` bytes.
#[derive(Debug)]
pub(crate) struct Chunks<const CHUNK: usize> {
    begin: NonNull<u8>,
    /// A bit a chunk: 1 if it is in use.
    bitmap: Box<[u8]>,
    chunks: usize,
    hint: Hint,
}

// SAFETY: the region belongs to the owner of this value, on any thread.
unsafe impl<const CHUNK: usize> Send for Chunks<CHUNK> {}

impl<const CHUNK: usize> Chunks<CHUNK> {
    fn is_free(&self, chunk: usize) -> bool {
        self.bitmap[chunk / 8] >> (chunk % 8) & 1 == 0
    }

    fn flip(&mut self, first: usize, chunks: usize) {
        for chunk in first..first + chunks {
            self.bitmap[chunk / 8] ^= 1 << (chunk % 8);
        }
    }

    /// Returns the number of chunks that a block of `bytes` bytes takes.
    fn chunks_for(bytes: usize) -> usize {
        bytes.max(1).div_ceil(CHUNK)
    }

    /// Finds `chunks` free chunks at an address of the alignment, and returns the first.
    fn find(&self, chunks: usize, align: usize) -> Option<usize> {
        let fits = |&first: &usize| {
            self.is_free(first)
                && first + chunks <= self.chunks
                && (self.begin.addr().get() + first * CHUNK).is_multiple_of(align)
                && (first + 1..first + chunks).all(|chunk| self.is_free(chunk))
        };
        (self.hint.chunk..self.chunks).chain(0..self.hint.chunk).find(fits)
    }
}

// SAFETY: a block's chunks lie in the region and have their bits set until it is freed, and `find` skips chunks whose
// bits are set.
unsafe impl<const CHUNK: usize> Sequential for Chunks<CHUNK> {
    unsafe fn new(region: &Region) -> Self {
        let chunks = region.bytes() / CHUNK / 8 * 8;
        let bitmap = vec![0; chunks / 8].into_boxed_slice();
        let hint = Hint { chunk: 0, chunks, align: CHUNK };
        Self { begin: region.begin(), bitmap, chunks, hint }
    }

    fn metadata_bytes(&self) -> Option<usize> {
        Some(size_of::<Self>() + self.bitmap.len())
    }

    fn alloc(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let chunks = Self::chunks_for(layout.size());
        let first = self.find(chunks, layout.align())?;
        self.flip(first, chunks);
        if !self.is_free(self.hint.chunk) {
            self.hint = Hint { chunk: (first + 1) % self.chunks, chunks: 1, align: CHUNK };
        }
        // SAFETY: the chunk lies in the region.
        Some(unsafe { self.begin.add(first * CHUNK) })
    }

    unsafe fn free(&mut self, at: NonNull<u8>, layout: Layout) {
        let chunks = Self::chunks_for(layout.size());
        let first = (at.addr().get() - self.begin.addr().get()) / CHUNK;
        self.flip(first, chunks);
        let (hint, align) = (self.hint, layout.align());
        let smaller = chunks < hint.chunks;
        let less_aligned = chunks == hint.chunks && (CHUNK + 1..hint.align).contains(&align);
        if smaller || less_aligned {
            self.hint = Hint { chunk: first, chunks, align };
        }
    }

    unsafe fn resize(
        &mut self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        let (old, new) = (Self::chunks_for(layout.size()), Self::chunks_for(size));
        if new <= old {
            let first = (at.addr().get() - self.begin.addr().get()) / CHUNK;
            self.flip(first + new, old - new);
            return Some(at);
        }
        // SAFETY: as the caller promises.
        unsafe { move_block(self, at, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Chunks, Layout, NonNull, Region, Sequential};

    fn offset(heap: &mut Chunks<256>, size: usize, align: usize) -> Option<usize> {
        let layout = Layout::from_size_align(size, align).unwrap();
        let at = heap.alloc(layout)?;
        Some(at.addr().get() - heap.begin.addr().get())
    }

    fn free(heap: &mut Chunks<256>, offset: usize, size: usize) {
        let layout = Layout::from_size_align(size, 1).unwrap();
        // SAFETY: the tests hold what they free.
        unsafe {
            let at: NonNull<u8> = heap.begin.add(offset);
            heap.free(at, layout);
        }
    }

    #[test]
    fn next_fit_until_a_smaller_gap_is_freed() {
        let region = Region::new(16 * 256);
        // SAFETY: the region outlives the heap.
        let mut heap = unsafe { Chunks::<256>::new(&region) };
        for place in 0..8 {
            assert_eq!(offset(&mut heap, 512, 1), Some(place * 512));
        }
        assert_eq!(offset(&mut heap, 1, 1), None);
        free(&mut heap, 1024, 512);
        free(&mut heap, 2048, 512);
        // The hint was a gap of one chunk, so the two gaps of two do not become it; the search goes around.
        assert_eq!(offset(&mut heap, 100, 1), Some(1024));
        assert_eq!(offset(&mut heap, 512, 512), Some(2048));
        assert_eq!(offset(&mut heap, 256, 1024), None, "the last free chunk is at 1280");
        assert_eq!(offset(&mut heap, 256, 256), Some(1280));
    }
}
