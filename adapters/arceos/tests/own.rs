//! ax-allocator's tests, word for word: of its allocators, and of nbbs in their place.
#![feature(allocator_api, btreemap_alloc)]

/// What its tests take from their crate.
const fn align_up(pos: usize, align: usize) -> usize {
    (pos + align - 1) & !(align - 1)
}

const fn is_aligned(base_addr: usize, align: usize) -> bool {
    base_addr & (align - 1) == 0
}

mod own {
    use ax_allocator::{AllocatorRc, BuddyByteAllocator, SlabByteAllocator, TlsfByteAllocator};

    mod pages {
        use ax_allocator::{BaseAllocator, BitmapPageAllocator, PageAllocator};

        const MAX_ALIGN_1GB: usize = 0x4000_0000;
        include!(concat!(env!("OUT_DIR"), "/pages.rs"));
    }

    mod bytes {
        include!(concat!(env!("OUT_DIR"), "/bytes.rs"));
    }
}

mod nbbs {
    use arceos::{
        Bytes as BuddyByteAllocator, Bytes as SlabByteAllocator, Bytes as TlsfByteAllocator,
    };
    use ax_allocator::AllocatorRc;

    mod pages {
        use arceos::Pages as BitmapPageAllocator;
        use ax_allocator::{BaseAllocator, PageAllocator};

        const MAX_ALIGN_1GB: usize = 0x4000_0000;
        include!(concat!(env!("OUT_DIR"), "/pages.rs"));
    }

    mod bytes {
        include!(concat!(env!("OUT_DIR"), "/bytes.rs"));
    }
}
