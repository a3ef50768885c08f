//! ax-allocator's benchmarks, word for word: of its allocators, and of nbbs beside them.
#![feature(allocator_api, btreemap_alloc)]

use arceos::Bytes;
use ax_allocator::{AllocatorRc, BuddyByteAllocator, SlabByteAllocator, TlsfByteAllocator};
use criterion::{Criterion, criterion_group, criterion_main};

use utils::MemoryPool;

mod utils {
    include!(concat!(env!("OUT_DIR"), "/utils.rs"));
}

mod own {
    include!(concat!(env!("OUT_DIR"), "/collections.rs"));

    pub fn all(c: &mut Criterion) {
        criterion_benchmark(c);
    }
    pub const BYTES: usize = POOL_SIZE;
}

fn nbbs(c: &mut Criterion) {
    let mut pool = MemoryPool::new(own::BYTES);
    own::bench(c, "nbbs", AllocatorRc::new(Bytes::new(), pool.as_slice()));
}

criterion_group!(benches, own::all, nbbs);
criterion_main!(benches);
