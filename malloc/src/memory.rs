//! How the heap gets memory, and gives it back.

use core::alloc::Layout;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nbbs_heap::Placed;

use crate::environment;
use crate::idle;
use crate::line::{Text, say};
use crate::system::{discard, keeping_errno, map, page, uncancelled, unmap};
use crate::thread::HEAP;

/// The bytes of address space that the heap was given, or is being given. Relaxed everywhere, as below: a number that
/// chooses who gives it more; the heap itself says what it has.
static GIVEN: AtomicUsize = AtomicUsize::new(0);

/// Whether somebody is giving it some: a hint, which is lost where two do, and left by who stayed in the parent of a
/// fork until the child itself does.
static IS_GROWING: AtomicBool = AtomicBool::new(false);

/// How often a caller looks whether another has given the heap memory, before it does so itself. Bounded, as it may be
/// a handler that has interrupted that one, or the child of a process in which that one was.
const PATIENCE: u32 = 1000;

/// How often a caller asks for address space in vain, while that of others changes meanwhile.
const TRIES: u32 = 8;

/// The bytes that the heap gets first where the system counts address space, if it has four times as much.
const CAUTIOUS: usize = 64 << 20;

/// How often the heap's memory can double: it has eight regions.
const DOUBLINGS: u32 = 7;

/// The most bytes of a region: 4 TiB, or what a quarter of 32 bits can address.
const MOST: usize = match 1_usize.checked_shl(42) {
    Some(bytes) => bytes,
    None => 1 << 30,
};

/// Calls `alloc`, and again whenever the heap was given more memory because it had none for this layout.
#[inline]
pub fn with_more(
    layout: Layout,
    alloc: impl Fn(Layout) -> Option<NonNull<u8>>,
) -> Option<NonNull<u8>> {
    alloc(layout).or_else(|| grow_until(layout, alloc))
}

#[cold]
fn grow_until(
    layout: Layout,
    alloc: impl Fn(Layout) -> Option<NonNull<u8>>,
) -> Option<NonNull<u8>> {
    let (mut patience, mut tries) = (PATIENCE, TRIES);
    loop {
        let given = GIVEN.load(Ordering::Relaxed);
        if let Some(block) = alloc(layout) {
            return Some(block);
        }
        if patience > 0 && IS_GROWING.load(Ordering::Relaxed) {
            patience -= 1;
            // SAFETY: it only lets others run.
            unsafe { libc::sched_yield() };
            continue;
        }
        IS_GROWING.store(true, Ordering::Relaxed);
        let is_done = uncancelled(|| grow(given, layout));
        IS_GROWING.store(false, Ordering::Relaxed);
        // Refused, though perhaps because another got the last that there was, which the next look finds.
        tries -= u32::from(!is_done);
        if tries == 0 || !is_done && GIVEN.load(Ordering::Relaxed) == given {
            return None;
        }
    }
}

/// Gives the heap as much address space as it has, at first what [`first`] says, and at least twice what a layout
/// takes; or less, if the system has less. Does nothing if it has been given some since it had `given`. Returns whether
/// it has more now.
fn grow(given: usize, layout: Layout) -> bool {
    let needed = layout.size().checked_add(layout.align());
    // A region has less to spare than a heap of its own would.
    let Some(least) = needed.and_then(|bytes| Placed::bytes_for(1, bytes)) else { return false };
    let least = least.max(1 << 20);
    let usual = if given == 0 { first() } else { given };
    let wanted = usual.max(least.saturating_mul(2)).min(MOST);
    let halves = (0..usize::BITS).map(|by| wanted >> by).take_while(|&bytes| bytes > least);
    // Of what no program usually gets the system is to say whether it can ever have that.
    let mapped = halves.chain([least]).find_map(|bytes| Some((map(bytes, bytes <= usual)?, bytes)));
    let Some((start, bytes)) = mapped else { return false };
    let (claimed, relaxed) = (given.saturating_add(bytes), Ordering::Relaxed);
    let is_ours = GIVEN.compare_exchange(given, claimed, relaxed, relaxed).is_ok();
    // SAFETY: the memory was just mapped for the heap, and is zero.
    if is_ours && unsafe { HEAP.add_zeroed(start, bytes) }.is_ok() {
        return true;
    }
    // SAFETY: nobody else knows of the memory, which the heap has not taken.
    unsafe { unmap(start, bytes) };
    if is_ours {
        // The heap has all the regions that it can have.
        GIVEN.fetch_sub(bytes, relaxed);
    }
    false
}

/// The bytes of a block whose pages go back to the system when it is freed: as many as glibc unmaps in any case.
const LARGE: usize = 32 << 20;

/// Gives the whole pages of a block back to the system, if it is large, before it is freed. Returns which of its bytes are
/// zero then.
///
/// # Safety
/// The caller holds what is allocated there, with this many bytes, and needs its contents no more.
pub unsafe fn forget(at: NonNull<u8>, bytes: usize) -> Range<usize> {
    if bytes < LARGE {
        return 0..0;
    }
    let page = page();
    let (skip, last) = (at.addr().get().wrapping_neg() % page, (at.addr().get() + bytes) % page);
    let pages = skip..bytes - last;
    // SAFETY: the block is longer than a page.
    let first = unsafe { at.add(skip) };
    // SAFETY: the pages lie in the block, which is the caller's.
    let is_zero = keeping_errno(|| unsafe { discard(first, pages.len()) });
    if is_zero { pages } else { 0..0 }
}

/// Gives whole free pages back to the system, also of slabs of which no slot is in use. Returns how many bytes these
/// were.
pub fn trim() -> usize {
    HEAP.trim();
    // SAFETY: the heap's pages are mapped, and those that it passes are free, and nobody else's meanwhile.
    let discard = |at, bytes| unsafe { discard(at, bytes) };
    // SAFETY: so many bytes are a page; what `discard` says has gone is zero.
    let bytes = unsafe { HEAP.discard(page(), discard) }.unwrap_or(0);
    idle::all_has_gone();
    bytes
}

/// The bytes of memory, in use or free, of which the free pages go back by one call: 3 to 10 ms.
const PART: usize = 32 << 20;

/// Gives back a part of the free pages of a region in which much is idle, before the first part also what the caller's
/// cache keeps. Returns how many bytes went to the system, and whether no part is left.
pub fn trim_part(is_first: bool) -> (u64, bool) {
    if is_first {
        HEAP.drain();
    }
    // SAFETY: as above.
    let discard = |at, bytes| unsafe { discard(at, bytes) };
    // SAFETY: as above.
    let part = unsafe { HEAP.discard_next(PART, page(), discard) };
    // Refused only if the system's pages had more than 64 KiB.
    part.map_or((0, true), |part| (part.bytes as u64, part.is_last))
}

/// Returns how much address space the heap gets first: what `NBBS_MALLOC_MIB` says, or as many bytes as the machine has
/// memory; [less](cautious) where the system counts them.
fn first() -> usize {
    if let Some(mib) = asked_for() {
        return mib << 20;
    }
    // SAFETY: it only answers.
    let pages = usize::try_from(unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) });
    let bytes = pages.map_or(CAUTIOUS, |pages| pages.saturating_mul(page()));
    match limit() {
        Some(most) => cautious(most).min(bytes),
        None if is_strict() => cautious(bytes),
        None => bytes,
    }
}

/// Returns the number in `NBBS_MALLOC_MIB`, if there is one. Says so if it is none from 1 to what a region can have.
fn asked_for() -> Option<usize> {
    environment::with(c"NBBS_MALLOC_MIB", |value| {
        let number = value.to_str().ok().and_then(|value| value.parse().ok());
        let mib = number.filter(|mib| (1..=MOST >> 20).contains(mib));
        if mib.is_none() {
            let most = MOST >> 20;
            say(format_args!(
                "NBBS_MALLOC_MIB={}: expected a whole number from 1 to {most}",
                Text(value)
            ));
        }
        mib
    })?
}

/// Returns how many bytes the heap gets first where at most `most` can be had: few, but so many that it can become as
/// large as that.
fn cautious(most: usize) -> usize {
    CAUTIOUS.min(most / 4).max(most >> DOUBLINGS)
}

/// Returns the limit of the process to its address space, or to its private part, if there is one.
fn limit() -> Option<usize> {
    let limit_of = |what| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: it writes the limit.
        let is_known = unsafe { libc::getrlimit(what, &raw mut limit) } == 0;
        let bytes =
            is_known.then_some(limit.rlim_cur).filter(|&bytes| bytes != libc::RLIM_INFINITY);
        bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
    };
    limit_of(libc::RLIMIT_AS).into_iter().chain(limit_of(libc::RLIMIT_DATA)).min()
}

/// Returns whether the system counts address space that nobody uses: `vm.overcommit_memory` is 2.
fn is_strict() -> bool {
    let mut mode = [0_u8; 1];
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero byte.
    let file = unsafe { libc::open(c"/proc/sys/vm/overcommit_memory".as_ptr(), flags) };
    if file < 0 {
        return false;
    }
    // SAFETY: at most one byte is written to `mode`.
    unsafe { libc::read(file, mode.as_mut_ptr().cast(), 1) };
    // SAFETY: the file was opened above, and is not used any more.
    unsafe { libc::close(file) };
    mode == *b"2"
}
