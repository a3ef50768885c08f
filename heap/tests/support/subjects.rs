//! The heaps that programs run on.

use std::alloc::Layout;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nbbs_heap::{AddError, Cpu, Heap, On, Placed, Small};

use super::{Block, Memory, memory};

/// A heap that answers everything a program can ask, or does nothing if it has no such operation.
pub trait Subject: Memory {
    /// Returns the heap as a CPU sees it.
    fn on(self, _cpu: usize) -> Self {
        self
    }

    fn alloc_zeroed(self, layout: Layout) -> Option<NonNull<u8>>;

    /// Frees a block by its address alone, and checks how large the heap says it is.
    ///
    /// # Safety
    /// As [`GlobalAlloc::dealloc`](std::alloc::GlobalAlloc::dealloc).
    unsafe fn free_at(self, at: NonNull<u8>, layout: Layout);

    fn trim(self) {}

    /// Adds memory.
    ///
    /// # Safety
    /// The memory belongs to the heap from now on.
    unsafe fn add(self, at: NonNull<u8>, bytes: usize) -> Result<(), AddError>;

    /// Checks that all is in order while these blocks are held.
    fn audit(self, held: &[Block]);

    /// Checks that all of it is free, and that no free was refused.
    fn assert_whole(self);
}

impl<const B: usize, const N: usize, C: Cpu> Subject for &'static Heap<B, N, C> {
    fn alloc_zeroed(self, layout: Layout) -> Option<NonNull<u8>> {
        Heap::alloc_zeroed(self, layout)
    }

    unsafe fn free_at(self, at: NonNull<u8>, layout: Layout) {
        let usable = self.usable(at).unwrap();
        assert!(usable >= layout.size(), "{layout:?}: {usable} bytes");
        // SAFETY: as the caller promises.
        assert_eq!(unsafe { Heap::free_at(self, at) }, Ok(usable));
    }

    fn trim(self) {
        Heap::trim(self);
    }

    unsafe fn add(self, at: NonNull<u8>, bytes: usize) -> Result<(), AddError> {
        // SAFETY: as the caller promises.
        unsafe { Heap::add(self, at, bytes) }
    }

    fn audit(self, _held: &[Block]) {
        assert_eq!(Heap::audit(self), Ok(()));
    }

    fn assert_whole(self) {
        super::assert_whole(self);
        assert_eq!(self.refused(), 0);
    }
}

/// A heap in given memory, as a CPU sees it. Blocks are resized by their address alone.
#[derive(Clone, Copy)]
pub struct Given {
    heap: &'static Placed,
    caches: usize,
    cpu: usize,
}

/// Memory for a heap and for what is added to it, used again and again; and how much of it is left to be added.
const GIVEN: usize = 4 << 20;
const LEFT: usize = 512 << 10;

impl Given {
    /// Runs a program on a new heap with this many caches, in so many bytes; half a MiB is left to be added.
    pub fn with(caches: usize, bytes: usize, run: impl FnOnce(Self, Spare)) {
        thread_local! {
            static MEMORY: Cell<Option<NonNull<u8>>> = const { Cell::new(None) };
        }
        let memory = MEMORY.take().unwrap_or_else(|| memory(GIVEN));
        let (all, left) = (Placed::bytes_for(caches, bytes).unwrap(), LEFT);
        assert!(all + left <= GIVEN);
        // SAFETY: the memory is leaked, has this many bytes, and is nobody else's while it is not in `MEMORY`.
        let (heap, more) =
            unsafe { (Placed::new(memory, all, caches).unwrap(), memory.add(GIVEN - left)) };
        run(Self { heap, caches, cpu: 0 }, Spare { at: Some(more), left });
        MEMORY.set(Some(memory));
    }

    /// Numbers that are even take the cache, the others know that nobody else has it: the only thread is this.
    fn on_cpu(self) -> On<'static> {
        if self.cpu.is_multiple_of(2) {
            return self.heap.on(self.cpu / 2);
        }
        // SAFETY: there is no other thread, and no handler.
        unsafe { self.heap.on_nested(self.cpu / 2) }
    }
}

/// The blocks that were resized by their addresses, and are freed so.
fn resized() -> MutexGuard<'static, BTreeSet<usize>> {
    static RESIZED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
    RESIZED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory for Given {
    fn alloc(self, layout: Layout) -> Option<NonNull<u8>> {
        self.on_cpu().alloc(layout)
    }

    unsafe fn free(self, at: NonNull<u8>, layout: Layout) {
        if resized().contains(&at.addr().get()) {
            // SAFETY: as the caller promises.
            unsafe { self.free_at(at, layout) };
            return;
        }
        // SAFETY: as the caller promises.
        unsafe { self.on_cpu().free(at, layout) };
    }

    unsafe fn resize(self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        let on = self.on_cpu();
        if layout.align() <= 16 {
            // SAFETY: as the caller promises.
            let moved = unsafe { on.resize_at(at, size) }.unwrap()?;
            resized().remove(&at.addr().get());
            resized().insert(moved.addr().get());
            return Some(moved);
        }
        // What is moved by its address alone would only be aligned to 16 bytes.
        let moved = on.alloc(Layout::from_size_align(size, layout.align()).ok()?)?;
        // SAFETY: the caller holds both, which have this many bytes, and gives one up.
        unsafe {
            moved.copy_from_nonoverlapping(at, layout.size().min(size));
            self.free(at, layout);
        }
        Some(moved)
    }

    fn contains(self, at: *const u8) -> bool {
        self.heap.contains(at)
    }
}

impl Subject for Given {
    fn on(self, cpu: usize) -> Self {
        Self { cpu, ..self }
    }

    fn alloc_zeroed(self, layout: Layout) -> Option<NonNull<u8>> {
        self.on_cpu().alloc_zeroed(layout)
    }

    unsafe fn free_at(self, at: NonNull<u8>, layout: Layout) {
        let usable = self.on_cpu().usable(at).unwrap();
        assert!(usable >= layout.size(), "{layout:?}: {usable} bytes");
        resized().remove(&at.addr().get());
        // SAFETY: as the caller promises.
        assert_eq!(unsafe { self.on_cpu().free_at(at) }, Ok(usable));
    }

    fn trim(self) {
        self.on_cpu().trim();
    }

    unsafe fn add(self, at: NonNull<u8>, bytes: usize) -> Result<(), AddError> {
        // SAFETY: as the caller promises.
        unsafe { self.heap.add(at, bytes) }
    }

    fn audit(self, _held: &[Block]) {
        assert_eq!(self.heap.audit(), Ok(()));
    }

    fn assert_whole(self) {
        (0..self.caches).for_each(|cpu| _ = self.heap.on(cpu).trim());
        self.audit(&[]);
        let stats = self.heap.stats();
        assert_eq!(stats.free, stats.bytes, "not whole: {} bytes of runs", stats.runs);
        assert_eq!(self.heap.refused(), 0);
    }
}

impl<const B: usize, const U: usize> Memory for &Small<B, U> {
    fn alloc(self, layout: Layout) -> Option<NonNull<u8>> {
        Small::alloc(self, layout)
    }

    unsafe fn free(self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        assert!(unsafe { Small::free(self, at, layout) }, "{layout:?}: a free is refused");
    }

    unsafe fn resize(self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { Small::resize(self, at, layout, size) }
    }

    fn contains(self, at: *const u8) -> bool {
        Small::contains(self, at)
    }
}

impl<const B: usize, const U: usize> Subject for &Small<B, U> {
    fn alloc_zeroed(self, layout: Layout) -> Option<NonNull<u8>> {
        Small::alloc_zeroed(self, layout)
    }

    unsafe fn free_at(self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { Memory::free(self, at, layout) };
    }

    unsafe fn add(self, _at: NonNull<u8>, bytes: usize) -> Result<(), AddError> {
        Err(AddError::TooSmall { bytes, needed: usize::MAX })
    }

    /// Units are in blocks, or free.
    fn audit(self, held: &[Block]) {
        let units = |block: &Block| block.layout.size().max(1).next_multiple_of(U);
        assert_eq!(
            self.bytes() - self.count_free_bytes(),
            held.iter().map(units).sum::<usize>(),
            "bytes in use"
        );
    }

    fn assert_whole(self) {
        self.audit(&[]);
    }
}

/// Memory that can be added to a heap.
#[derive(Default)]
pub struct Spare {
    at: Option<NonNull<u8>>,
    left: usize,
}

impl Spare {
    /// Takes so many bytes, if there are that many.
    pub fn take(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let at = self.at?;
        self.left = self.left.checked_sub(bytes)?;
        // SAFETY: it has this many bytes.
        self.at = Some(unsafe { at.add(bytes) });
        Some(at)
    }
}
