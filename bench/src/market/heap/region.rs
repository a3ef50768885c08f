//! Memory for a heap to manage.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System, handle_alloc_error};
use std::ops::Range;
use std::ptr::NonNull;

/// The alignment of regions, as of large pages.
const ALIGN: usize = 1 << 21;

/// Memory from the system. All of it has been written to: no page fault is left in it.
#[derive(Debug)]
pub(crate) struct Region {
    at: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the region is memory like that of a box: its owner may use it from any thread.
unsafe impl Send for Region {}
// SAFETY: a shared region gives out its address and size, and nothing else.
unsafe impl Sync for Region {}

impl Region {
    /// Creates a region of `bytes` zeroed bytes.
    pub fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes.max(1), ALIGN).expect("a size of memory");
        // SAFETY: the layout's size is not 0.
        let at = unsafe { System.alloc(layout) };
        let at = NonNull::new(at).unwrap_or_else(|| handle_alloc_error(layout));
        // SAFETY: `at` begins a block of this layout, which is ours.
        unsafe { at.write_bytes(0, layout.size()) };
        Self { at, layout }
    }

    /// Returns where it begins.
    pub fn begin(&self) -> NonNull<u8> {
        self.at
    }

    /// Returns its addresses.
    pub fn addresses(&self) -> Range<usize> {
        let begin = self.at.addr().get();
        begin..begin + self.bytes()
    }

    /// Returns how many bytes it has.
    pub fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the block came from `System` with this layout, and its owner ends here.
        unsafe { System.dealloc(self.at.as_ptr(), self.layout) };
    }
}
