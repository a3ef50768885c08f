//! Tests random layouts on several threads. Each block is filled with a pattern of its own, which nobody else may
//! overwrite.

mod support;

use std::alloc::Layout;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nbbs_heap::{Cpu, Heap, Small};
use support::{Block, Global, Memory};

/// Draws a layout: most are small, some have some units, few are large or strongly aligned.
fn layout(random: &mut fastrand::Rng) -> Layout {
    let most = match random.u8(0..100) {
        0..70 => 200,
        70..90 => 3000,
        90..99 => 20_000,
        _ => 200_000,
    };
    let align = 1 << if random.u8(0..50) == 0 { random.u32(0..16) } else { random.u32(0..5) };
    Layout::from_size_align(random.usize(1..=most), align).unwrap()
}

/// One thread allocates, resizes, frees and hands over at random, and frees all that it has or is given.
fn run(
    heap: impl Memory,
    seed: u64,
    steps: usize,
    senders: Vec<mpsc::Sender<Block>>,
    received: mpsc::Receiver<Block>,
) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut held: Vec<Block> = Vec::new();
    for _ in 0..steps {
        let at = random.usize(..held.len().max(1));
        match random.u8(0..16) {
            0..8 if held.len() < 2000 => {
                held.extend(Block::alloc(heap, layout(&mut random), random.u64(..)));
            }
            _ if held.is_empty() => {}
            8 => _ = held[at].resize(heap, layout(&mut random).size()),
            9 => {
                if let Err(kept) = senders[random.usize(..senders.len())].send(held.swap_remove(at))
                {
                    held.push(kept.0);
                }
            }
            _ => held.swap_remove(at).free(heap),
        }
        received.try_iter().for_each(|block| block.free(heap));
    }
    held.into_iter().for_each(|block| block.free(heap));
    drop(senders);
    received.into_iter().for_each(|block| block.free(heap));
}

fn stress(heap: impl Memory + Send, threads: u64, steps: usize) {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| mpsc::channel()).unzip();
    std::thread::scope(|scope| {
        for (seed, received) in receivers.into_iter().enumerate() {
            let senders = senders.clone();
            scope.spawn(move || run(heap, seed as u64, steps, senders, received));
        }
        drop(senders);
    });
}

/// Checks that everything was freed: half of the heap can be allocated in one piece.
fn is_whole<const BYTES: usize, const CPUS: usize, C: Cpu>(heap: &'static Heap<BYTES, CPUS, C>) {
    assert_eq!(heap.refused(), 0);
    let half = Layout::from_size_align(BYTES / 2, 1).unwrap();
    // A thread's cache is drained when the thread ends, and the end of a scope does not wait for that.
    let until = Instant::now() + Duration::from_secs(10);
    let at = loop {
        heap.trim();
        match heap.alloc(half) {
            Some(at) => break at,
            None => assert!(
                Instant::now() < until,
                "half of the heap cannot be had: {:?}",
                heap.stats()
            ),
        }
    };
    // SAFETY: allocated above.
    unsafe { heap.free(at, half) };
}

#[test]
fn threads_with_caches() {
    static HEAP: Heap<{ 64 << 20 }> = Heap::new();
    stress(Global(&HEAP), 4, 200_000);
    is_whole(&HEAP);
}

#[test]
fn a_heap_that_is_nearly_full() {
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    stress(Global(&HEAP), 3, 100_000);
    is_whole(&HEAP);
}

#[test]
fn cpus_that_share_caches() {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    /// The worst possible CPU number: a different one each time.
    struct Any;
    impl Cpu for Any {
        fn number() -> Option<usize> {
            Some(NEXT.fetch_add(1, Ordering::Relaxed) / 7)
        }
    }
    static HEAP: Heap<{ 16 << 20 }, 2, Any> = Heap::new();
    stress(Global(&HEAP), 4, 100_000);
    is_whole(&HEAP);
}

#[test]
fn small_heaps() {
    static FINE: Small<{ 1 << 20 }, 16> = Small::new();
    static COARSE: Small<300_000, 64> = Small::new();
    stress(Global(&FINE), 3, 50_000);
    stress(Global(&COARSE), 3, 50_000);
    assert_eq!(FINE.count_free_bytes(), FINE.bytes());
    assert_eq!(COARSE.count_free_bytes(), COARSE.bytes());
}
