//! Random layouts on several threads, each block filled with a pattern of its own which nobody else may overwrite.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::mpsc;

use nbbs_heap::Heap;

/// A block that somebody holds, filled with a pattern that says which block it is.
struct Held {
    at: NonNull<u8>,
    layout: Layout,
    seed: u64,
}

// SAFETY: whoever has it holds the block.
unsafe impl Send for Held {}

impl Held {
    fn alloc<const B: usize, const C: usize>(
        heap: &'static Heap<B, C>,
        random: &mut fastrand::Rng,
    ) -> Option<Self> {
        let layout = layout(random);
        let at = heap.alloc(layout)?;
        assert_eq!(at.as_ptr() as usize % layout.align(), 0, "{layout:?} is aligned");
        assert!(heap.contains(at.as_ptr()));
        let held = Self { at, layout, seed: random.u64(..) };
        held.fill(0..layout.size());
        Some(held)
    }

    fn byte(&self, at: usize) -> u8 {
        (self.seed.rotate_left(at as u32 * 8) as u8) ^ (at >> 3) as u8
    }

    fn fill(&self, range: std::ops::Range<usize>) {
        for at in range {
            // SAFETY: the block has so many bytes, and is ours.
            unsafe { self.at.add(at).write(self.byte(at)) };
        }
    }

    fn check(&self, bytes: usize) {
        for at in 0..bytes {
            // SAFETY: as above.
            assert_eq!(unsafe { self.at.add(at).read() }, self.byte(at), "handed out twice");
        }
    }

    fn resize<const B: usize, const C: usize>(
        &mut self,
        heap: &'static Heap<B, C>,
        random: &mut fastrand::Rng,
    ) {
        let size = layout(random).size();
        // SAFETY: we hold the block.
        let Some(at) = (unsafe { heap.resize(self.at, self.layout, size) }) else {
            return self.check(self.layout.size());
        };
        let before = self.layout.size();
        self.at = at;
        self.layout = Layout::from_size_align(size, self.layout.align()).unwrap();
        assert_eq!(at.as_ptr() as usize % self.layout.align(), 0);
        self.check(before.min(size));
        self.fill(before.min(size)..size);
    }

    fn free<const B: usize, const C: usize>(self, heap: &'static Heap<B, C>) {
        self.check(self.layout.size());
        // SAFETY: we hold the block, and give it up.
        unsafe { heap.free(self.at, self.layout) };
    }
}

/// Most are small, some have some units, few are large or much aligned.
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

/// Allocates, resizes, frees and hands over at random; at the end all of it is free, and one piece.
fn stress<const B: usize, const C: usize>(heap: &'static Heap<B, C>, threads: u64, steps: usize) {
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..threads).map(|_| mpsc::channel::<Held>()).unzip();
    std::thread::scope(|scope| {
        for (number, received) in receivers.into_iter().enumerate() {
            let senders = senders.clone();
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(number as u64);
                let mut held: Vec<Held> = Vec::new();
                for _ in 0..steps {
                    match random.u8(0..16) {
                        0..8 if held.len() < 2000 => held.extend(Held::alloc(heap, &mut random)),
                        8 if !held.is_empty() => {
                            let at = random.usize(..held.len());
                            held[at].resize(heap, &mut random);
                        }
                        9 if !held.is_empty() => {
                            let given = held.swap_remove(random.usize(..held.len()));
                            if let Err(kept) = senders[random.usize(..senders.len())].send(given) {
                                held.push(kept.0);
                            }
                        }
                        _ if !held.is_empty() => {
                            held.swap_remove(random.usize(..held.len())).free(heap)
                        }
                        _ => {}
                    }
                    while let Ok(block) = received.try_recv() {
                        block.free(heap);
                    }
                }
                held.into_iter().for_each(|block| block.free(heap));
                drop(senders);
                received.into_iter().for_each(|block| block.free(heap));
            });
        }
        drop(senders);
    });
    assert_eq!(heap.refused(), 0);
    heap.trim();
    // Another thread's cache is drained when it ends, which a join of a scope does not wait for.
    let all = Layout::from_size_align(B / 2, 1).unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let at = loop {
        match heap.alloc(all) {
            Some(at) => break at,
            None => assert!(
                std::time::Instant::now() < until,
                "half of the heap is free, and cannot be had"
            ),
        }
        heap.trim();
    };
    // SAFETY: allocated above.
    unsafe { heap.free(at, all) };
}

#[test]
fn threads_with_caches() {
    static HEAP: Heap<{ 64 << 20 }> = Heap::new();
    stress(&HEAP, 4, 200_000);
}

#[test]
fn a_heap_that_is_nearly_full() {
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    stress(&HEAP, 3, 100_000);
}

#[test]
fn cpus_that_share_caches() {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    // As wrong a number as it gets: another one each time.
    fn cpu() -> usize {
        NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed) / 7
    }
    static HEAP: Heap<{ 16 << 20 }, 2> = Heap::per_cpu(cpu);
    stress(&HEAP, 4, 100_000);
}
