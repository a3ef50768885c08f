//! Tests heaps under an owner map of their bytes, and faulty heaps, whose faults it must find.

use std::alloc::Layout;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use nbbs_bench::market::{CheckedHeap, Contender, HEAPS, Heap, Kind, find};
use testkit::Violation;

const BYTES: u64 = 1 << 22;

/// A block that is freed once, by the thread that has it.
struct Held {
    at: NonNull<u8>,
    layout: Layout,
}

impl Held {
    fn alloc(heap: &dyn Heap, random: &mut fastrand::Rng) -> Option<Self> {
        let size = 1 << random.u32(0..14);
        let layout = Layout::from_size_align(random.usize(1..=size), 1 << random.u32(0..8));
        let layout = layout.unwrap();
        Some(Self { at: heap.alloc(layout)?, layout })
    }

    fn free(self, heap: &dyn Heap) {
        // SAFETY: the block is held, with this layout, and ends here.
        unsafe { heap.free(self.at, self.layout) };
    }

    fn resize(&mut self, heap: &dyn Heap, size: usize) {
        // SAFETY: the block is held, with this layout, and its new place is remembered.
        if let Some(at) = unsafe { heap.resize(self.at, self.layout, size) } {
            *self =
                Self { at, layout: Layout::from_size_align(size, self.layout.align()).unwrap() };
        }
    }
}

/// Allocates, resizes and frees random blocks on one thread: first more allocations, then more frees.
fn run(heap: &dyn Heap, seed: u64, steps: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut held: Vec<Held> = Vec::new();
    for step in 0..steps {
        let grow = if step / 500 % 2 == 0 { 0.7 } else { 0.3 };
        if random.f64() < grow {
            held.extend(Held::alloc(heap, &mut random));
        } else if !held.is_empty() {
            let place = random.usize(..held.len());
            if random.u8(..) < 64 {
                held[place].resize(heap, random.usize(1..10_000));
            } else {
                held.swap_remove(place).free(heap);
            }
        }
    }
    held.into_iter().for_each(|held| held.free(heap));
}

fn verdict(heap: &dyn Heap, threads: u64, steps: usize) -> Result<(), Violation> {
    let checked = CheckedHeap::new(heap);
    thread::scope(|scope| {
        let spawn = |seed| {
            let checked = &checked;
            scope.spawn(move || run(checked, seed, steps))
        };
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        // This waits until the threads have given back what they kept, which the end of the scope does not.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    checked.finish()
}

#[test]
fn every_heap_is_right() {
    for heap in HEAPS {
        for (threads, steps) in [(1, 20_000), (4, 5_000)] {
            let result = heap.with_heap(BYTES, |heap| verdict(heap, threads, steps));
            assert_eq!(result, Ok(()), "{}, {threads} threads", heap.name);
        }
    }
}

#[test]
fn heaps_are_contenders_like_others() {
    for heap in HEAPS {
        assert_eq!(heap.kind(), Kind::Heap, "{}", heap.name);
        let found: &Contender = find(heap.name).unwrap();
        assert!(std::ptr::eq(found, heap), "{} is a name of something else too", heap.name);
    }
    let all_of_it = |name| {
        find(name).unwrap().with_heap(BYTES, |heap| {
            let layout = Layout::from_size_align(BYTES as usize, 1).unwrap();
            heap.alloc(layout).is_some()
        })
    };
    assert_eq!(["chunk", "buddy-alloc"].map(all_of_it), [true, false], "bookkeeping within");
}

#[test]
fn heaps_at_one_time_are_not_the_same() {
    for contender in HEAPS {
        contender.with_heap(BYTES, |one| {
            contender.with_heap(BYTES, |other| {
                let Some((one, other)) = one.region().zip(other.region()) else { return };
                let apart = one.end <= other.start || other.end <= one.start;
                assert!(apart, "{}: {one:x?} and {other:x?}", contender.name);
            });
        });
    }
}

#[test]
fn the_least_heap_has_room_for_a_block() {
    for heap in HEAPS {
        let refused = heap.with_heap(heap.min_units, |heap| {
            let checked = CheckedHeap::new(heap);
            let block = checked.alloc(Layout::new::<u64>());
            let refused = block.is_none();
            // SAFETY: the block is held, with this layout, and ends here.
            block.into_iter().for_each(|at| unsafe { checked.free(at, Layout::new::<u64>()) });
            checked.finish().map(|()| refused)
        });
        assert_eq!(refused, Ok(false), "{} of {} bytes", heap.name, heap.min_units);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// A block begins inside the one before.
    Overlap,
    /// A block is not aligned.
    Misaligned,
    /// A resized block loses its contents.
    Forgets,
    /// A free writes to another block.
    Scribbles,
    /// A block lies behind the heap's memory.
    Outside,
    /// What is freed is lost.
    Leaks,
}

/// A heap that hands out the first half of its memory from first to last, and takes it back when all has been freed. From
/// the hundredth call on it is faulty.
struct Faulty {
    fault: Fault,
    calls: AtomicUsize,
    live: AtomicUsize,
    next: AtomicUsize,
    memory: Vec<AtomicUsize>,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        let memory: Vec<_> = (0..1 << 20).map(|_| AtomicUsize::new(0)).collect();
        Self {
            fault,
            calls: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            next: AtomicUsize::new(128),
            memory,
        }
    }

    fn is_wrong(&self) -> bool {
        self.calls.load(Relaxed) > 100
    }

    fn give_up(&self) {
        let leaks = self.fault == Fault::Leaks && self.is_wrong();
        if self.live.fetch_sub(1, Relaxed) == 1 && !leaks {
            self.next.store(128, Relaxed);
        }
    }

    fn at(&self, place: usize) -> NonNull<u8> {
        let first = NonNull::new(self.memory.as_ptr().cast_mut().cast::<u8>()).unwrap();
        // SAFETY: the place lies in the memory.
        unsafe { first.add(place) }
    }
}

// SAFETY: this is a lie: the memory is valid, but may be handed out twice, to one thread.
unsafe impl Heap for Faulty {
    fn metadata_bytes(&self) -> Option<usize> {
        None
    }

    fn region(&self) -> Option<Range<usize>> {
        let begin = self.at(0).addr().get();
        Some(begin..begin + size_of_val(&*self.memory) / 2)
    }

    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.calls.fetch_add(1, Relaxed);
        let wrong = self.is_wrong();
        let half = size_of_val(&*self.memory) / 2;
        let base = self.at(0).addr().get();
        let place = (base + self.next.load(Relaxed)).next_multiple_of(layout.align()) - base;
        let place = match self.fault {
            Fault::Overlap if wrong => place - layout.align(),
            Fault::Misaligned if wrong && layout.align() > 1 => place + 1,
            Fault::Outside if wrong => place + half,
            _ => place,
        };
        let end = place + layout.size();
        if place < half {
            if end > half {
                return None;
            }
            self.next.fetch_max(end, Relaxed);
        }
        self.live.fetch_add(1, Relaxed);
        Some(self.at(place))
    }

    unsafe fn free(&self, at: NonNull<u8>, _layout: Layout) {
        if self.fault == Fault::Scribbles && self.is_wrong() {
            // SAFETY: there is a byte before the first block.
            unsafe { at.sub(1).write(!at.sub(1).read()) };
        }
        self.give_up();
    }

    unsafe fn resize(&self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        let moved = self.alloc(Layout::from_size_align(size, layout.align()).unwrap())?;
        if self.fault != Fault::Forgets {
            // SAFETY: both blocks have this many bytes.
            unsafe { moved.copy_from(at, size.min(layout.size())) };
        }
        self.give_up();
        Some(moved)
    }
}

#[test]
fn what_is_wrong_is_found() {
    let found = |fault| verdict(&Faulty::new(fault), 1, 3_000);
    assert_eq!(found(Fault::None), Ok(()));
    assert!(matches!(found(Fault::Overlap), Err(Violation::BytesOverlap { .. })));
    assert!(matches!(found(Fault::Misaligned), Err(Violation::BytesMisaligned { .. })));
    assert!(matches!(found(Fault::Forgets), Err(Violation::ContentsChanged { .. })));
    assert!(matches!(found(Fault::Scribbles), Err(Violation::ContentsChanged { .. })));
    assert!(matches!(found(Fault::Outside), Err(Violation::BytesOutside { .. })));
    assert!(matches!(found(Fault::Leaks), Err(Violation::BytesLost { .. })));
    let kept = find("chunk").unwrap().with_heap(BYTES, |heap| {
        let checked = CheckedHeap::new(heap);
        checked.alloc(Layout::new::<u64>());
        checked.finish()
    });
    assert!(matches!(kept, Err(Violation::BytesStillHeld { .. })));
}
