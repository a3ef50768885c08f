//! The heap of the program, and how it gets memory.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};

use nbbs_heap::Heap;

use crate::environment::variable;

/// The heap of the program, which has no memory at first.
pub static HEAP: Heap<0> = Heap::new();

/// The bytes of address space that the heap was given, or is being given. Relaxed everywhere: a number that chooses who
/// gives it more; the heap itself says what it has.
static GIVEN: AtomicUsize = AtomicUsize::new(0);

/// The bytes that the heap gets first where the system counts address space.
const CAUTIOUS: usize = 64 << 20;

/// Calls `alloc`, and again whenever the heap was given more memory because it had none for this layout.
#[inline]
pub fn with_more(layout: Layout, alloc: impl Fn() -> Option<NonNull<u8>>) -> Option<NonNull<u8>> {
    alloc().or_else(|| grow_until(layout, alloc))
}

#[cold]
fn grow_until(layout: Layout, alloc: impl Fn() -> Option<NonNull<u8>>) -> Option<NonNull<u8>> {
    loop {
        let given = GIVEN.load(Ordering::Relaxed);
        if let Some(block) = alloc() {
            return Some(block);
        }
        match grow(given, layout) {
            Growth::Done => {}
            // The other one may not be done yet. Whoever cannot wait for that gives the heap a region more.
            // SAFETY: it only lets others run.
            Growth::ByAnother => _ = unsafe { libc::sched_yield() },
            Growth::Refused => return None,
        }
    }
}

/// What became of an attempt to give the heap memory.
enum Growth {
    Done,
    ByAnother,
    Refused,
}

/// Gives the heap as much address space as it has, at first what [`first`] says, and at least twice what a layout takes;
/// or less, if the system has less. Does nothing if it has been given some since it had `given`.
fn grow(given: usize, layout: Layout) -> Growth {
    let least = layout.size().saturating_add(layout.align()).saturating_mul(2).max(1 << 20);
    let wanted = if given == 0 { first() } else { given }.max(least);
    let halves = (0..usize::BITS).map(|by| wanted >> by).take_while(|&bytes| bytes >= least);
    let mapped = halves.map(|bytes| (map(bytes), bytes)).find(|(start, _)| start.is_some());
    let Some((Some(start), bytes)) = mapped else { return Growth::Refused };
    let (claimed, relaxed) = (given.saturating_add(bytes), Ordering::Relaxed);
    let is_ours = GIVEN.compare_exchange(given, claimed, relaxed, relaxed).is_ok();
    // SAFETY: the memory was just mapped for the heap, and is zero.
    if is_ours && unsafe { HEAP.add_zeroed(start, bytes) }.is_ok() {
        return Growth::Done;
    }
    // SAFETY: nobody else knows of the memory, which the heap has not taken.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    if !is_ours {
        return Growth::ByAnother;
    }
    // The heap has all the regions that it can have.
    GIVEN.fetch_sub(bytes, relaxed);
    Growth::Refused
}

/// Gives whole free pages back to the system. Returns how many bytes these were.
pub fn give_back() -> usize {
    HEAP.trim();
    // SAFETY: the pages are private and anonymous, so that they are zero afterwards.
    let take = |at: NonNull<u8>, bytes| unsafe {
        libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_DONTNEED) == 0
    };
    // SAFETY: as above.
    unsafe { HEAP.discard(page(), take) }.unwrap_or(0)
}

/// The bytes of a page.
pub fn page() -> usize {
    // SAFETY: it only answers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Returns how much address space the heap gets first: what `NBBS_MALLOC_MIB` says, or as many bytes as the machine has
/// memory, or [few](CAUTIOUS) where the system counts them.
fn first() -> usize {
    if let Some(mib) = asked_for() {
        return mib.saturating_mul(1 << 20);
    }
    if is_counted() {
        return CAUTIOUS;
    }
    // SAFETY: it only answers.
    let pages = usize::try_from(unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) });
    pages.map_or(CAUTIOUS, |pages| pages.saturating_mul(page()))
}

/// Returns the number in `NBBS_MALLOC_MIB`, if there is one above 0.
fn asked_for() -> Option<usize> {
    variable(c"NBBS_MALLOC_MIB")?.to_str().ok()?.parse().ok().filter(|&mib| mib > 0)
}

/// Returns whether the system counts address space that is not used: a limit of the process, or strict overcommit.
fn is_counted() -> bool {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: it writes the limit.
    let is_limited = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0
        && limit.rlim_cur != libc::RLIM_INFINITY;
    is_limited || is_strict()
}

/// Returns whether `vm.overcommit_memory` is 2.
fn is_strict() -> bool {
    let mut mode = [0_u8; 1];
    // SAFETY: the path ends with a zero byte, and at most one byte is written to `mode`.
    unsafe {
        let file = libc::open(
            c"/proc/sys/vm/overcommit_memory".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        );
        if file < 0 {
            return false;
        }
        libc::read(file, mode.as_mut_ptr().cast(), 1);
        libc::close(file);
    }
    mode == *b"2"
}

fn map(bytes: usize) -> Option<NonNull<u8>> {
    let (access, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: a new mapping, wherever the system finds room.
    let start: *mut c_void = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}
