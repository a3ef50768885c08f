//! Pages: in place of `BitmapPageAllocator`.

use ax_allocator::{AllocResult, BaseAllocator, PageAllocator};
use nbbs::{Buddy, MetadataBox};
use nbbs_adapters::{FRAME_SIZE, Region};

/// What the bitmap has, too: 4 GiB of addresses.
const PAGES: u64 = 1 << 20;

/// The arena, once it is known where it begins.
#[derive(Debug, Default)]
pub struct Pages<const PAGE_SIZE: usize>(Option<Region<'static>>);

impl<const PAGE_SIZE: usize> Pages<PAGE_SIZE> {
    /// No pages yet.
    pub const fn new() -> Self {
        Self(None)
    }

    fn region(&mut self) -> &mut Region<'static> {
        self.0.as_mut().expect("init comes first")
    }
}

impl<const PAGE_SIZE: usize> BaseAllocator for Pages<PAGE_SIZE> {
    fn init(&mut self, start: usize, size: usize) {
        // A kernel has a static `Metadata` for this.
        let metadata = Box::leak(Box::new(MetadataBox::new(PAGES).expect("memory")));
        let pages = Buddy::new_reserved(metadata.words(), PAGES).expect("as many words");
        // From the first page on, which is less aligned than what the tests ask for.
        let base = (start as u64).next_multiple_of(FRAME_SIZE);
        let region = Region::new(pages, base).expect("a base that is a page's");
        self.0.insert(region).init(start, size);
    }

    fn add_memory(&mut self, start: usize, size: usize) -> AllocResult {
        self.region().add_memory(start, size)
    }
}

impl<const PAGE_SIZE: usize> PageAllocator for Pages<PAGE_SIZE> {
    const PAGE_SIZE: usize = PAGE_SIZE;

    fn alloc_pages(&mut self, num_pages: usize, align: usize) -> AllocResult<usize> {
        self.region().alloc_pages(num_pages, align)
    }

    fn dealloc_pages(&mut self, pos: usize, num_pages: usize) {
        self.region().dealloc_pages(pos, num_pages);
    }

    fn alloc_pages_at(
        &mut self,
        base: usize,
        num_pages: usize,
        align: usize,
    ) -> AllocResult<usize> {
        self.region().alloc_pages_at(base, num_pages, align)
    }

    fn total_pages(&self) -> usize {
        self.0.map_or(0, |region| region.total_pages())
    }

    fn used_pages(&self) -> usize {
        self.0.map_or(0, |region| region.used_pages())
    }

    fn available_pages(&self) -> usize {
        self.0.map_or(0, |region| region.available_pages())
    }
}
