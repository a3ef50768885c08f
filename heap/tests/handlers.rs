//! Signal handlers that allocate and free in the middle of a thread's allocations and frees.
#![cfg(all(unix, not(miri)))]

mod support;

use std::os::unix::thread::JoinHandleExt;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use nbbs_heap::{Cpu, Heap, Overlap};
use nix::sys::pthread::pthread_kill;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use support::{Block, assert_whole, layout};

const SIZES: [usize; 8] = [8, 64, 300, 1000, 2000, 5000, 30_000, 50_000];

/// Held by the test that runs: beside others whoever sends a signal waits for a processor, and takes ten times as long.
static ALONE: Mutex<()> = Mutex::new(());

/// The state shared by a handler and the thread that it interrupts: a block of each size, which begins with its size.
struct Scene<const B: usize, C: 'static = ()> {
    heap: &'static Heap<B, 1, C>,
    left: [AtomicPtr<u8>; SIZES.len()],
    /// The number of handlers that have begun, and of those that have ended.
    begun: AtomicUsize,
    ended: AtomicUsize,
    stop: AtomicBool,
}

impl<const B: usize, C: Cpu> Scene<B, C> {
    const fn new(heap: &'static Heap<B, 1, C>) -> Self {
        Self {
            heap,
            left: [const { AtomicPtr::new(null_mut()) }; SIZES.len()],
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        }
    }

    /// Leaves a block for the other, and frees what was left before.
    fn exchange(&self, number: usize) {
        let of = layout(SIZES[number], 8);
        let new = self.heap.alloc(of).map_or(null_mut(), |at| {
            // SAFETY: the block is ours.
            unsafe { at.write_bytes(number as u8, of.size()) };
            at.as_ptr()
        });
        let Some(old) = NonNull::new(self.left[number].swap(new, Ordering::AcqRel)) else { return };
        for at in [0, of.size() / 2, of.size() - 1] {
            // SAFETY: the one that takes the block out holds it.
            let found = unsafe { old.add(at).read() };
            assert_eq!(found, number as u8, "handed out twice");
        }
        // SAFETY: as above.
        unsafe { self.heap.free(old, of) };
    }

    /// Acts as a handler: it uses no memory except the heap's.
    fn handle(&self) {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        // One in sixteen allocates something larger.
        let which =
            |by| if number.is_multiple_of(16) { number / 16 + by } else { (number + by) % 2 };
        let blocks = [0, 1, 1].map(|by| {
            let size = SIZES[which(by) % SIZES.len()];
            Block::alloc(self.heap, layout(size, 8), number as u64)
        });
        self.exchange(which(0) % SIZES.len());
        blocks.into_iter().flatten().for_each(|block| block.free(self.heap));
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Allocates and frees a few blocks, with nothing in between that takes as long as the heap itself: so most signals come
    /// in the middle of an operation.
    fn hurry(&self, tag: u64) {
        let of = layout(64, 8);
        let blocks = [(); 24].map(|()| self.heap.alloc(of).map(NonNull::cast::<u64>));
        let ours = || (tag..).zip(blocks).filter_map(|(tag, block)| Some((tag, block?)));
        // SAFETY: the blocks are ours.
        ours().for_each(|(tag, block)| unsafe { block.write(tag) });
        for (tag, block) in ours() {
            // SAFETY: as above; it is given up.
            unsafe {
                assert_eq!(block.read(), tag, "handed out twice");
                self.heap.free(block.cast(), of);
            }
        }
    }

    /// Acts as the interrupted thread, until it is told to stop.
    fn work(&self) {
        let mut random = fastrand::Rng::with_seed(1);
        let mut held: Vec<Block> = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            // Mostly operations that take no longer than the heap itself.
            let small = random.u8(..) < 250;
            let size = SIZES[random.usize(..if small { 2 } else { SIZES.len() })];
            if small {
                self.hurry(random.u64(..1 << 63));
            }
            match random.u8(..16) {
                0..7 if held.len() < 200 => {
                    held.extend(Block::alloc(self.heap, layout(size, 8), random.u64(..)));
                }
                7 if !held.is_empty() => {
                    let which = random.usize(..held.len());
                    held[which].resize(self.heap, size);
                }
                8 => self.exchange(random.usize(..if small { 2 } else { SIZES.len() })),
                9 if random.u8(..) == 0 => _ = self.heap.trim(),
                _ if !held.is_empty() => {
                    held.swap_remove(random.usize(..held.len())).free(self.heap)
                }
                _ => {}
            }
        }
        held.into_iter().for_each(|block| block.free(self.heap));
    }

    /// Interrupts a thread a number of times, also in its handlers.
    fn run(&'static self, signals: usize, signal: Signal, handler: extern "C" fn(i32)) {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let action = SigAction::new(
            SigHandler::Handler(handler),
            SaFlags::SA_NODEFER | SaFlags::SA_RESTART,
            SigSet::empty(),
        );
        // SAFETY: the handler does what the heap promises may be done in one.
        unsafe { sigaction(signal, &action) }.unwrap();
        let worker = thread::spawn(|| self.work());
        for sent in 0..signals {
            pthread_kill(worker.as_pthread_t(), signal).unwrap();
            (0..sent * 7 % 64).for_each(|_| std::hint::spin_loop());
            // No signal is under way when the next is sent, and at most two handlers have not ended, since there is one
            // stack.
            while self.begun.load(Ordering::Relaxed) <= sent
                || self.ended.load(Ordering::Relaxed) + 2 <= sent
            {
                assert!(!worker.is_finished(), "a block was handed out twice");
                thread::yield_now();
            }
        }
        while self.ended.load(Ordering::Relaxed) < signals {
            thread::yield_now();
        }
        self.stop.store(true, Ordering::Relaxed);
        worker.join().unwrap();
        for (left, size) in self.left.iter().zip(SIZES) {
            if let Some(at) = NonNull::new(left.swap(null_mut(), Ordering::AcqRel)) {
                // SAFETY: the one that takes the block out holds it.
                unsafe { self.heap.free(at, layout(size, 8)) };
            }
        }
        assert_whole(self.heap);
        assert_eq!(self.heap.refused(), 0);
    }
}

/// Interrupts a thread by so many signals, on a heap of its own of so many bytes, whose CPUs are told by a type.
macro_rules! interrupt {
    ($bytes:expr, $cpu:ty, $signals:expr, $signal:expr) => {{
        static HEAP: Heap<{ $bytes }, 1, $cpu> = Heap::new();
        static SCENE: Scene<{ $bytes }, $cpu> = Scene::new(&HEAP);
        extern "C" fn handler(_: i32) {
            SCENE.handle();
        }
        SCENE.run($signals, $signal, handler);
    }};
}

#[test]
fn beside_the_cache_of_the_thread() {
    interrupt!(16 << 20, (), 24_000, Signal::SIGUSR1);
}

#[test]
fn beside_the_cache_of_the_cpu() {
    /// The only CPU.
    struct First;
    impl Cpu for First {
        fn number() -> Option<usize> {
            Some(0)
        }
    }
    interrupt!(16 << 20, First, 36_000, Signal::SIGUSR2);
}

#[test]
fn beside_the_cache_of_a_cpu_where_operations_nest() {
    /// The only CPU.
    struct First;
    impl Cpu for First {
        // SAFETY: one thread uses the heap, and its handlers; the test does after it.
        const OVERLAP: Overlap<Self> = unsafe { Overlap::nested() };

        fn number() -> Option<usize> {
            Some(0)
        }
    }
    interrupt!(16 << 20, First, 36_000, Signal::SIGALRM);
}

#[test]
fn where_memory_is_short() {
    interrupt!(512 << 10, (), 500, Signal::SIGURG);
}

/// A thread's first use of the heap is in a handler, which has interrupted `malloc`.
#[cfg(target_os = "linux")]
#[test]
fn the_first_use_is_in_a_handler() {
    use std::time::{Duration, Instant};

    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    static HANDLED: AtomicUsize = AtomicUsize::new(0);
    /// The number of threads whose first use has begun, and which may end.
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn handler(_: i32) {
        Block::alloc(&HEAP, layout(100, 8), 1).unwrap().free(&HEAP);
        HANDLED.fetch_add(1, Ordering::Release);
    }
    let action = SigAction::new(SigHandler::Handler(handler), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does what the heap promises may be done in one.
    unsafe { sigaction(Signal::SIGWINCH, &action) }.unwrap();
    let wait_for = |counter: &AtomicUsize, number| {
        let until = Instant::now() + Duration::from_secs(20);
        while counter.load(Ordering::Acquire) < number {
            if Instant::now() > until {
                eprintln!("a handler waits for what it has interrupted");
                std::process::abort();
            }
            thread::yield_now();
        }
    };
    for number in 1..=200 {
        let worker = thread::spawn(move || {
            BEGUN.store(number, Ordering::Release);
            // The test's own allocator is the C library's.
            while HANDLED.load(Ordering::Relaxed) < number {
                (1..40).for_each(|size| drop(std::hint::black_box(vec![0_u8; size * 100])));
            }
        });
        wait_for(&BEGUN, number);
        pthread_kill(worker.as_pthread_t(), Signal::SIGWINCH).unwrap();
        wait_for(&HANDLED, number);
        worker.join().unwrap();
    }
    assert_whole(&HEAP);
    assert_eq!(HEAP.refused(), 0);
}
