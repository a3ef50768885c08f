//! Which CPU a caller runs on, and which operations on one CPU may overlap.

use core::fmt;
use core::marker::PhantomData;

/// Tells on which CPU the caller runs, for a heap with a cache for each CPU.
///
/// A number that is wrong, or stale when it is used, costs time and nothing else, unless [`OVERLAP`](Self::OVERLAP)
/// says more. Numbers from the heap's `CPUS` on share caches.
///
/// ```
/// use nbbs_heap::{Cpu, Heap};
///
/// struct Current;
///
/// impl Cpu for Current {
///     fn number() -> Option<usize> {
///         Some(0) // from a register that says it
///     }
/// }
///
/// static HEAP: Heap<{ 1 << 20 }, 4, Current> = Heap::new();
/// # assert!(HEAP.alloc(std::alloc::Layout::new::<u64>()).is_some());
/// ```
pub trait Cpu: 'static {
    /// Which operations with one number may overlap: any, unless the implementation promises that they only nest.
    const OVERLAP: Overlap<Self> = Overlap::any();

    /// Returns the number of the caller's CPU; `None` if caches are by thread.
    ///
    /// The heap calls it in each of its operations, so it must not use that heap. If it panics, the process is aborted:
    /// an allocator must not unwind.
    ///
    /// ```
    /// # use nbbs_heap::Cpu;
    /// assert_eq!(<()>::number(), None); // a heap has `()` by default
    /// ```
    fn number() -> Option<usize>;

    /// Gives the caller a number, if it has none yet. The heap calls it whenever the caller's cache could not serve an
    /// allocation or the free of a slot by itself, and then asks for the number again, so that
    /// [`number`](Self::number), which is part of every operation, need not look whether there is one. The rules are
    /// those of `number`.
    ///
    /// A handler that interrupts it and uses the heap calls it, too: where handlers do, look again before the number is
    /// kept, and keep the first, as what the cache of the other holds would be lost.
    ///
    /// ```
    /// use nbbs_heap::{Cpu, Heap, Overlap};
    /// use std::cell::Cell;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// thread_local!(static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) });
    /// static NEXT: AtomicUsize = AtomicUsize::new(0);
    ///
    /// struct Thread;
    ///
    /// impl Cpu for Thread {
    ///     // SAFETY: no two threads get the same number, and until it has one a thread has that of no cache.
    ///     const OVERLAP: Overlap<Self> = unsafe { Overlap::nested() };
    ///
    ///     fn number() -> Option<usize> {
    ///         Some(NUMBER.get())
    ///     }
    ///
    ///     fn claim_number() { // no handler uses this heap
    ///         if NUMBER.get() == usize::MAX {
    ///             NUMBER.set(NEXT.fetch_add(1, Ordering::Relaxed));
    ///         }
    ///     }
    /// }
    ///
    /// static HEAP: Heap<{ 1 << 20 }, 4, Thread> = Heap::new();
    ///
    /// assert!(HEAP.alloc(std::alloc::Layout::new::<u64>()).is_some());
    /// assert_eq!(NUMBER.get(), 0);
    /// ```
    fn claim_number() {}

    /// Returns the lane of the buddy allocator for the caller with that number, whenever its cache could not serve an
    /// operation by itself. CPUs of one lane allocate near each other, and so reuse what others of them have freed, but
    /// contend if they do so at the same time. The rules are those of [`number`](Self::number).
    ///
    /// ```
    /// # use nbbs_heap::Cpu;
    /// struct Thread;
    ///
    /// impl Cpu for Thread {
    ///     fn number() -> Option<usize> {
    ///         Some(0) // up to as many as there are threads
    ///     }
    ///
    ///     fn lane(number: usize) -> usize {
    ///         number % 8 // threads of four processors
    ///     }
    /// }
    /// # assert_eq!(Thread::lane(9), 1);
    /// ```
    fn lane(number: usize) -> usize {
        number
    }

    /// Whether the heap calls [`give_back`](Self::give_back). Then it counts how much memory is idle: a read-modify-write
    /// on a word that all threads share for each run and slab that is allocated or goes back, and whenever all slots of
    /// a slab are taken or have become free.
    const GIVES_BACK: bool = false;

    /// Is called when much memory is *idle*, that is, free though it was in use since it was last zero, and so could go
    /// back to where it came from: by [`Heap::discard`](crate::Heap::discard), after a [`trim`](crate::Heap::trim), as
    /// slabs of which all slots are free are idle, too; by the trim alone where that gives pages to Linux. Of `touched`
    /// bytes that may be other than zero `idle` are idle: in one of the regions half of them, and 64 MiB, or a quarter
    /// of the region.
    ///
    /// The heap calls it at the end of [`drain`](crate::Heap::drain) and of frees that are more than a hit in a cache,
    /// until `discard` was called, or the last part of [`discard_next`](crate::Heap::discard_next); then not before an
    /// eighth of `touched`, or the least from above, is idle beside what was left, or beside the least since. It is for
    /// the function to decide whether it is time. It must leave `errno`, where there is one, as it is: it is part of a
    /// free. In contrast to the other functions it may use the heap, other callers may call it meanwhile, and a free in
    /// it calls it again. If it panics, the process is aborted.
    ///
    /// ```
    /// use nbbs_heap::{Cpu, Heap};
    /// use std::alloc::Layout;
    ///
    /// struct Thread;
    ///
    /// impl Cpu for Thread {
    ///     fn number() -> Option<usize> {
    ///         None
    ///     }
    ///
    ///     const GIVES_BACK: bool = true;
    ///
    ///     fn give_back(_idle: u64, _touched: u64) {
    ///         HEAP.trim(); // on Linux this is all
    ///         // A system call, elsewhere. Here the pages are made zero instead.
    ///         // SAFETY: nobody else has the pages.
    ///         let zero = |pages: std::ptr::NonNull<u8>, bytes| unsafe { pages.write_bytes(0, bytes) };
    ///         // SAFETY: they are zero.
    ///         let bytes = unsafe {
    ///             HEAP.discard(4096, |pages, bytes| {
    ///                 zero(pages, bytes);
    ///                 true
    ///             })
    ///         };
    ///         assert!(bytes.is_ok());
    ///         # CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    ///     }
    /// }
    ///
    /// static HEAP: Heap<{ 16 << 20 }, 1, Thread> = Heap::new();
    /// # static CALLS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    ///
    /// let layout = Layout::new::<[u8; 9 << 20]>();
    /// let block = HEAP.alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// unsafe { HEAP.free(block, layout) }; // calls `give_back`
    /// # assert_eq!(CALLS.load(std::sync::atomic::Ordering::Relaxed), 1);
    /// ```
    fn give_back(_idle: u64, _touched: u64) {}
}

/// Caches are by thread.
impl Cpu for () {
    #[inline]
    fn number() -> Option<usize> {
        None
    }
}

/// Which operations may overlap that get the same number from `C`, and so use the same cache.
///
/// ```
/// use nbbs_heap::{Cpu, Heap, Overlap};
///
/// struct Current;
///
/// impl Cpu for Current {
///     // SAFETY: this kernel has no threads, and a CPU's handlers end before what they interrupt continues.
///     const OVERLAP: Overlap<Self> = unsafe { Overlap::nested() };
///
///     fn number() -> Option<usize> {
///         Some(0) // from a register that says it
///     }
/// }
///
/// static HEAP: Heap<{ 1 << 20 }, 4, Current> = Heap::new();
/// # assert!(HEAP.alloc(std::alloc::Layout::new::<u64>()).is_some());
/// ```
///
/// The promise is for one type's numbers only:
///
/// ```compile_fail,E0308
/// # use nbbs_heap::{Cpu, Overlap};
/// # struct Current;
/// # impl Cpu for Current {
/// #     // SAFETY: as above.
/// #     const OVERLAP: Overlap<Self> = unsafe { Overlap::nested() };
/// #     fn number() -> Option<usize> { Some(0) }
/// # }
/// struct Other;
///
/// impl Cpu for Other {
///     const OVERLAP: Overlap<Self> = Current::OVERLAP;
///     # fn number() -> Option<usize> { Some(0) }
/// }
/// ```
pub struct Overlap<C: ?Sized> {
    is_nested: bool,
    // Invariant: with a lifetime in it, a supertype of `C` may have numbers of its own.
    of: PhantomData<fn(C) -> C>,
}

impl<C: ?Sized> Overlap<C> {
    /// Any operations may overlap. Using a cache takes a read-modify-write; who finds it in use bypasses it.
    ///
    /// ```
    /// use nbbs_heap::{Cpu, Overlap};
    ///
    /// struct Current;
    ///
    /// impl Cpu for Current {
    ///     const OVERLAP: Overlap<Self> = Overlap::any(); // as by default
    ///     # fn number() -> Option<usize> { Some(0) }
    /// }
    /// # assert_eq!(format!("{:?}", Current::OVERLAP), "Overlap { is_nested: false }");
    /// ```
    #[must_use]
    pub const fn any() -> Self {
        Self { is_nested: false, of: PhantomData }
    }

    /// Operations overlap only if one interrupts the other. Using a cache takes no read-modify-write; a handler that
    /// interrupts an operation bypasses it. So do operations with numbers from the heap's `CPUS` on.
    ///
    /// ```
    /// use nbbs_heap::{Cpu, Heap, Overlap};
    /// use std::cell::Cell;
    ///
    /// thread_local!(static NUMBER: Cell<Option<usize>> = const { Cell::new(None) });
    ///
    /// struct Thread;
    ///
    /// impl Cpu for Thread {
    ///     // SAFETY: each thread sets another number, before it allocates.
    ///     const OVERLAP: Overlap<Self> = unsafe { Overlap::nested() };
    ///
    ///     fn number() -> Option<usize> {
    ///         NUMBER.get()
    ///     }
    /// }
    ///
    /// static HEAP: Heap<{ 1 << 20 }, 4, Thread> = Heap::new();
    ///
    /// NUMBER.set(Some(0));
    /// assert!(HEAP.alloc(std::alloc::Layout::new::<u64>()).is_some());
    /// ```
    ///
    /// # Safety
    /// An operation begins when the heap calls `C::number`. Of two operations that get the same number, either one
    /// happens before the other, or one interrupts the other, in its thread or on its CPU, and ends before that
    /// continues. So interrupts may stay enabled, but a thread must not be preempted or moved to another CPU in an
    /// operation: a kernel disables preemption, a program gives each of its threads a number of its own. If this rule
    /// is broken, memory may be handed out twice.
    #[must_use]
    pub const unsafe fn nested() -> Self {
        Self { is_nested: true, of: PhantomData }
    }

    pub(crate) const fn is_nested(&self) -> bool {
        self.is_nested
    }
}

impl<C: ?Sized> fmt::Debug for Overlap<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlap").field("is_nested", &self.is_nested).finish()
    }
}

/// A type that differs from another by a lifetime only, and is its supertype, may have numbers of its own. It takes
/// neither the other's promise nor its heap:
///
/// ```
/// # use nbbs_heap::{Cpu, Heap, Overlap};
/// struct Of<T>(T);
/// type Sub = Of<for<'a> fn(&'a u8)>;
///
/// impl Cpu for Sub {
///     // SAFETY: there are no threads.
///     const OVERLAP: Overlap<Self> = unsafe { Overlap::nested() };
///     fn number() -> Option<usize> { Some(0) }
/// }
/// static HEAP: Heap<{ 1 << 20 }, 1, Sub> = Heap::new();
/// ```
///
/// ```compile_fail,E0308
/// # use nbbs_heap::{Cpu, Overlap};
/// # struct Of<T>(T);
/// # type Sub = Of<for<'a> fn(&'a u8)>;
/// # type Super = Of<fn(&'static u8)>;
/// fn promise(of: Overlap<Sub>) -> Overlap<Super> { of }
/// ```
///
/// ```compile_fail,E0308
/// # use nbbs_heap::{Cpu, Heap};
/// # struct Of<T>(T);
/// # type Sub = Of<for<'a> fn(&'a u8)>;
/// # type Super = Of<fn(&'static u8)>;
/// fn heap(of: &'static Heap<0, 1, Sub>) -> &'static Heap<0, 1, Super> { of }
/// ```
#[cfg(doctest)]
struct Supertypes;
