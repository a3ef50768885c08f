//! Every layout is served as it was asked for, and no memory twice.

mod support;

use std::alloc::Layout;
use std::collections::VecDeque;
use std::ptr::NonNull;

use nbbs_heap::{Heap, Small};
use proptest::prelude::*;
use support::programs::{Op, Step, run, run_bytes};
use support::subjects::{Given, Spare};
use support::{Block, assert_whole, layout};
use testkit::Addresses;

#[test]
fn every_size_and_alignment() {
    static HEAP: Heap<{ (if cfg!(miri) { 2 } else { 32 }) << 20 }> = Heap::new();
    let (owners, mut held) = (Addresses::default(), VecDeque::<Block>::new());
    let step = if cfg!(miri) { 19_973 } else { 61 };
    let aligns = (0..=if cfg!(miri) { 16 } else { 20 }).step_by(if cfg!(miri) { 4 } else { 1 });
    for align in aligns.map(|log2| 1 << log2) {
        let around = |size: usize| [size - 1, size, size + 1];
        let powers = (if cfg!(miri) { 14 } else { 4 }..=15).flat_map(|log2| around(1 << log2));
        for size in (0..=40_000).step_by(step).chain(powers) {
            while held.len() > 12 {
                let oldest = held.pop_front().unwrap();
                owners.give(oldest.at.addr().get(), oldest.layout).unwrap();
                oldest.free(&HEAP);
            }
            let block = Block::alloc(&HEAP, layout(size, align), size as u64).unwrap();
            owners.take(block.at.addr().get(), block.layout).unwrap();
            held.push_back(block);
        }
    }
    held.into_iter().for_each(|block| block.free(&HEAP));
    assert_whole(&HEAP);
    assert_eq!(HEAP.refused(), 0);
}

#[test]
fn layouts_that_nobody_can_have() {
    static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    let most = isize::MAX as usize;
    let beyond_32_bits = usize::try_from(1_u64 << 32).unwrap_or(most);
    let aligns = (0..usize::BITS - 2).step_by(if cfg!(miri) { 30 } else { 1 });
    for align in aligns.map(|log2| 1_usize << log2) {
        for size in [most - (align - 1), most / 2, beyond_32_bits, 1 << 20, 1 << 19] {
            let Ok(of) = Layout::from_size_align(size, align) else { continue };
            let found = HEAP.alloc(of);
            // Half of the memory, where a multiple of the alignment happens to lie before it.
            let is_aligned =
                |at: NonNull<u8>| size == 1 << 19 && at.addr().get().is_multiple_of(align);
            assert!(found.is_none_or(is_aligned), "{of:?}");
            // SAFETY: allocated here.
            found.inspect(|&at| unsafe { HEAP.free(at, of) });
        }
        let nothing = Layout::from_size_align(0, align).unwrap();
        if let Some(at) = HEAP.alloc(nothing) {
            assert_eq!(at.addr().get() % align, 0);
            // SAFETY: allocated here.
            unsafe { HEAP.free(at, nothing) };
        }
    }
    for size in [0, 100, 50_000] {
        let mut block = Block::alloc(&HEAP, layout(size, 8), 1).unwrap();
        for size in [most - 7, most, usize::MAX, beyond_32_bits, 1 << 20] {
            assert!(!block.resize(&HEAP, size), "{size}");
        }
        block.free(&HEAP);
    }
    assert_whole(&HEAP);
    assert_eq!(HEAP.refused(), 0);
}

fn size() -> impl Strategy<Value = usize> {
    // Runs that a cache keeps are handed out again for the same length.
    let runs = prop::sample::select(vec![33_000, 40_000, 66_000]);
    prop_oneof![4 => 0..300_usize, 3 => 0..5000_usize, 2 => 0..40_000_usize, 1 => 0..300_000_usize, 2 => runs]
}

/// The bytes of a heap in given memory: mostly too few for a cache to keep runs.
fn bytes() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 1..300_000_usize, 1 => 3_000_000..3_400_000_usize]
}

fn step() -> impl Strategy<Value = Step> {
    let align = prop_oneof![8 => 0..5_u32, 1 => 0..18_u32];
    let op = prop_oneof![
        8 => (size(), align, prop::bool::weighted(0.2))
            .prop_map(|(size, align, zeroed)| Op::Alloc { size, align, zeroed }),
        3 => (any::<usize>(), size()).prop_map(|(pick, size)| Op::Resize { pick, size }),
        5 => any::<usize>().prop_map(|pick| Op::Free { pick }),
        1 => any::<usize>().prop_map(|pick| Op::FreeAt { pick }),
        1 => Just(Op::Trim),
        1 => size().prop_map(|bytes| Op::Add { bytes }),
        1 => Just(Op::Audit),
    ];
    (0..4_usize, op).prop_map(|(cpu, op)| Step { cpu, op })
}

fn program() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 0..if cfg!(miri) { 20 } else { 400 })
}

fn cases() -> ProptestConfig {
    let cases = if cfg!(miri) { 1 } else { 200 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn programs(program in program()) {
        static HEAP: Heap<{ (if cfg!(miri) { 1 } else { 8 }) << 20 }> = Heap::new();
        run(&HEAP, Spare::default(), &program);
    }

    /// If there is too little memory for many slabs, slots are runs of their own, and allocations fail.
    #[test]
    fn programs_in_little_memory(program in program()) {
        static HEAP: Heap<{ 200 << 10 }> = Heap::new();
        run(&HEAP, Spare::default(), &program);
    }

    /// Programs run one after the other, without a thread's cache, as a handler has none.
    #[test]
    fn programs_past_the_cache(program in program()) {
        static FIRST: Heap<{ 100 << 10 }> = Heap::new();
        static HEAP: Heap<{ 300 << 10 }> = Heap::new();
        // The first heap in which a thread allocates a slot has its cache.
        Block::alloc(&FIRST, layout(1, 1), 1).unwrap().free(&FIRST);
        Block::alloc(&HEAP, layout(1, 1), 1).unwrap().free(&HEAP);
        let used: usize = HEAP.stats().classes().iter().map(|class| class.used).sum();
        assert_eq!(used, 0, "a cache keeps the slot");
        run(&HEAP, Spare::default(), &program);
    }

    /// New heaps, which get more memory as they go on.
    #[test]
    fn programs_in_given_memory(program in program(), caches in 1..4_usize, bytes in bytes()) {
        Given::with(caches, bytes, |heap, spare| run(heap, spare, &program));
    }

    #[test]
    fn programs_of_small_heaps(program in program()) {
        run(&Small::<{ 16 << 10 }, 16>::new(), Spare::default(), &program);
        run(&Small::<{ 100 << 10 }, 64>::new(), Spare::default(), &program);
    }
}

/// The inputs that the fuzzer has kept: each is a program.
#[test]
#[cfg_attr(miri, ignore = "reads a file")]
fn the_corpus() {
    let inputs = testkit::corpus("heap").unwrap();
    assert!(inputs.len() >= 10, "{} programs", inputs.len());
    for (name, program) in inputs {
        println!("{name}");
        run_bytes(&program);
    }
}
