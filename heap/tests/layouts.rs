//! Every layout is served as it was asked for, and no memory twice.

mod support;

use std::alloc::Layout;
use std::collections::{BTreeMap, VecDeque};
use std::ptr::NonNull;

use nbbs_heap::Heap;
use proptest::prelude::*;
use support::{Block, assert_whole, layout};

/// Records who has which bytes.
#[derive(Default)]
struct Owners(BTreeMap<usize, usize>);

impl Owners {
    fn add(&mut self, block: &Block) {
        let start = block.at.addr().get();
        let end = start + block.layout.size().max(1);
        if let Some((_, &before)) = self.0.range(..end).next_back() {
            assert!(before <= start, "{block:?}: handed out twice");
        }
        self.0.insert(start, end);
    }

    fn remove(&mut self, block: &Block) {
        assert!(self.0.remove(&block.at.addr().get()).is_some());
    }
}

#[test]
fn every_size_and_alignment() {
    static HEAP: Heap<{ (if cfg!(miri) { 2 } else { 32 }) << 20 }> = Heap::new();
    let (mut owners, mut held) = (Owners::default(), VecDeque::new());
    let step = if cfg!(miri) { 19_973 } else { 61 };
    let aligns = (0..=if cfg!(miri) { 16 } else { 20 }).step_by(if cfg!(miri) { 4 } else { 1 });
    for align in aligns.map(|log2| 1 << log2) {
        let around = |size: usize| [size - 1, size, size + 1];
        let powers = (if cfg!(miri) { 14 } else { 4 }..=15).flat_map(|log2| around(1 << log2));
        for size in (0..=40_000).step_by(step).chain(powers) {
            while held.len() > 12 {
                let oldest: Block = held.pop_front().unwrap();
                owners.remove(&oldest);
                oldest.free(&HEAP);
            }
            let block = Block::alloc(&HEAP, layout(size, align), size as u64).unwrap();
            owners.add(&block);
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
    let aligns = (0..62).step_by(if cfg!(miri) { 30 } else { 1 });
    for align in aligns.map(|log2| 1_usize << log2) {
        for size in [most - (align - 1), most / 2, 1 << 32, 1 << 20, 1 << 19] {
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
        for size in [most - 7, most, usize::MAX, 1 << 32, 1 << 20] {
            assert!(!block.resize(&HEAP, size), "{size}");
        }
        block.free(&HEAP);
    }
    assert_whole(&HEAP);
    assert_eq!(HEAP.refused(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Alloc(usize, u32),
    Resize(usize, usize),
    Free(usize),
    Trim,
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0..300_usize, 3 => 0..5000_usize, 2 => 0..40_000_usize, 1 => 0..300_000_usize]
}

fn step() -> impl Strategy<Value = Step> {
    let align = prop_oneof![8 => 0..5_u32, 1 => 0..18_u32];
    prop_oneof![
        8 => (size(), align).prop_map(|(size, align)| Step::Alloc(size, align)),
        3 => (any::<usize>(), size()).prop_map(|(which, size)| Step::Resize(which, size)),
        6 => any::<usize>().prop_map(Step::Free),
        1 => Just(Step::Trim),
    ]
}

fn cases() -> ProptestConfig {
    let cases = if cfg!(miri) { 1 } else { 200 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Runs a program, and checks that all of the heap is free then.
fn run<const B: usize>(heap: &'static Heap<B>, program: Vec<Step>) {
    let (mut owners, mut held) = (Owners::default(), Vec::<Block>::new());
    for (seed, step) in program.into_iter().enumerate() {
        match step {
            Step::Alloc(size, align) => {
                let found = Block::alloc(heap, layout(size, 1 << align), seed as u64);
                found.iter().for_each(|block| owners.add(block));
                held.extend(found);
            }
            Step::Resize(which, size) if !held.is_empty() => {
                let which = which % held.len();
                let block = &mut held[which];
                owners.remove(block);
                block.resize(heap, size);
                owners.add(block);
            }
            Step::Free(which) if !held.is_empty() => {
                let block = held.swap_remove(which % held.len());
                owners.remove(&block);
                block.free(heap);
            }
            Step::Trim => _ = heap.trim(),
            _ => {}
        }
    }
    held.into_iter().for_each(|block| block.free(heap));
    assert_whole(heap);
    assert_eq!(heap.refused(), 0);
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn programs(program in prop::collection::vec(step(), 0..if cfg!(miri) { 20 } else { 400 })) {
        static HEAP: Heap<{ 8 << 20 }> = Heap::new();
        run(&HEAP, program);
    }

    /// If there is too little memory for many slabs, slots are runs of their own, and allocations fail.
    #[test]
    fn programs_in_little_memory(
        program in prop::collection::vec(step(), 0..if cfg!(miri) { 20 } else { 400 })
    ) {
        static HEAP: Heap<{ 200 << 10 }> = Heap::new();
        run(&HEAP, program);
    }

    /// Programs run one after the other, without a thread's cache, as a handler has none.
    #[test]
    fn programs_past_the_cache(
        program in prop::collection::vec(step(), 0..if cfg!(miri) { 20 } else { 400 })
    ) {
        static FIRST: Heap<{ 100 << 10 }> = Heap::new();
        static HEAP: Heap<{ 300 << 10 }> = Heap::new();
        FIRST.trim();
        run(&HEAP, program);
    }
}
