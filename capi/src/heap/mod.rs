//! Memory of any size and alignment.
//!
//! ```text
//! mod      making heaps      blocks   alloc, free, malloc and its kin      stats    looking on
//! ```

mod blocks;
mod stats;

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::NonNull;

use nbbs_heap::{On, Placed};

use crate::error::{Code, Error, Hook, Reporter};
use crate::function::told;
use crate::handle::{self, Reporting, run};
use crate::pointer;
use crate::setting::Setting;
pub use blocks::*;
pub use stats::*;

/// A heap: memory of any size and alignment, for any number of threads. Made by `nbbs_heap_create`.
#[derive(Debug)]
pub struct Heap {
    placed: &'static Placed,
    cpu: CpuNumber,
    /// Calls with one number only nest.
    nested: bool,
    context: *mut c_void,
    reporter: Reporter,
}

/// Returns the number of the CPU on which it is called. An old or a wrong number costs time and nothing else, unless it
/// was given to `nbbs_heap_set_nested_cpu`.
pub type CpuNumber = Option<unsafe extern "C" fn(context: *mut c_void) -> usize>;

impl Reporting for Heap {
    #[inline(always)]
    fn reporter(&self) -> Reporter {
        self.reporter
    }
}

impl Heap {
    /// The heap as seen from the caller's CPU.
    #[inline(always)]
    fn here(&self) -> On<'_> {
        let cpu = match self.cpu {
            // SAFETY: the function may be called with its context, as `nbbs_heap_set_cpu` was promised.
            Some(cpu) => unsafe { cpu(self.context) },
            None => current_cpu(),
        };
        if self.nested {
            // SAFETY: as `nbbs_heap_set_nested_cpu` was promised.
            return unsafe { self.placed.on_nested(cpu) };
        }
        self.placed.on(cpu)
    }

    /// Says how it learns on which CPU a call runs.
    ///
    /// # Safety
    /// The pointer is null, misaligned, or leads to a heap that nobody else is using.
    unsafe fn set_cpu(
        heap: *mut Self,
        cpu: CpuNumber,
        nested: bool,
        context: *mut c_void,
    ) -> Result<(), Error> {
        pointer::checked(heap, 1).map(|mut heap| {
            // SAFETY: by the contract.
            let heap = unsafe { heap.as_mut() };
            (heap.cpu, heap.nested, heap.context) = (cpu, nested && cpu.is_some(), context);
        })
    }
}

/// The CPU on which the caller runs; an access to a thread-local would not do, as `lane` says.
#[cfg(all(feature = "std", target_os = "linux"))]
#[inline(always)]
fn current_cpu() -> usize {
    unsafe extern "C" {
        safe fn sched_getcpu() -> core::ffi::c_int;
    }
    sched_getcpu() as usize
}

/// What stands for it where nobody says: the thread's lane.
#[cfg(not(all(feature = "std", target_os = "linux")))]
fn current_cpu() -> usize {
    crate::lane::thread_lane()
}

/// Where the heap's own place ends, behind which is that of its caches.
const FRONT: Layout = Layout::new::<Heap>();

/// Returns how many bytes of memory, at any address, `nbbs_heap_create` needs for a heap with `caches` caches that
/// hands out `bytes` bytes, rounded up to a KiB. A cache takes 24 KiB, the bookkeeping 1.6 % of the bytes, and some
/// KiB. 0 if there can be no such heap: `bytes` is 0, or more than 4 TiB less 2 KiB (on 32 bits, than 1 GiB), or there
/// are more caches than addresses.
#[unsafe(no_mangle)]
pub extern "C" fn nbbs_heap_bytes(caches: usize, bytes: usize) -> usize {
    let front = FRONT.size() + FRONT.align() - 1;
    Placed::bytes_for(caches, bytes).and_then(|all| all.checked_add(front)).unwrap_or(0)
}

/// Returns the most caches that a heap can have, by bisection: a refusal may take its time.
fn most_caches() -> usize {
    let (mut fit, mut above) = (0, usize::MAX);
    while above - fit > 1 {
        let caches = fit + (above - fit) / 2;
        if nbbs_heap_bytes(caches, 1) == 0 { above = caches } else { fit = caches }
    }
    fit
}

/// Makes a heap in `memory`, whatever that holds, with `caches` caches: one for each CPU is best, and 0
/// means 1. The caches and the bookkeeping lie at the front of the memory, and the heap hands out the rest.
///
/// `memory` is `bytes` long. It is the heap's until nobody uses the heap, or what it handed out, any more; a heap need
/// not be ended. An operation uses the cache of the CPU on which it runs. On Linux `sched_getcpu` says which;
/// elsewhere, and in the freestanding library, a function that `nbbs_heap_set_cpu` names.
///
/// A store for each word of the caches and the bookkeeping. Refuses with `NULL`, `SIZE`, `SETTING` (`caches`),
/// `TOO_SHORT`; the memory has not changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_create(
    memory: *mut c_void,
    bytes: usize,
    caches: usize,
    heap: *mut *mut Heap,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_heap_create, error);
    let make = || {
        let memory = pointer::checked(memory.cast::<u8>(), 1)?;
        let place = pointer::checked(heap, 4)?;
        pointer::check_bytes(memory.as_ptr().cast(), bytes)?;
        let needed = nbbs_heap_bytes(caches, 1);
        let too_short = Error::of(Code::TooShort, bytes as u64, needed as u64);
        if needed == 0 {
            let most = most_caches();
            return Err(Setting::Caches.refused(caches as u64, 0..=most as u64));
        }
        let skip = memory.addr().get().wrapping_neg() % FRONT.align();
        let front = skip + FRONT.size();
        let left = bytes.checked_sub(front).ok_or(too_short)?;
        // SAFETY: the memory is longer than this.
        let rest = unsafe { memory.add(front) };
        // SAFETY: so much is left of the memory, which is the heap's.
        let placed = unsafe { Placed::new(rest, left, caches) };
        let placed: &'static Placed = placed.map_err(|_| too_short)?;
        let (cpu, context, reporter) = (None, core::ptr::null_mut(), Reporter::NOBODY);
        // SAFETY: less than `front`.
        let made: NonNull<Heap> = unsafe { memory.add(skip) }.cast();
        // SAFETY: memory for a heap, aligned for one, in front of what is placed.
        unsafe { made.write(Heap { placed, cpu, nested: false, context, reporter }) };
        // SAFETY: the caller's promise about pointers.
        unsafe { place.write(made.as_ptr()) };
        Ok(())
    };
    // SAFETY: the caller's promise about pointers.
    unsafe { Reporter::NOBODY.answer(make(), error) }
}

/// Adds `bytes` bytes at `memory` to the heap, which keeps them. This can be done seven times. The bookkeeping of the
/// new memory takes 1.6 % at its front.
///
/// Clearing that costs a store for each word. Refuses with `NULL`, `SIZE`, `TOO_SHORT`, `REGIONS`, `OVERLAP`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_add(
    heap: *const Heap,
    memory: *mut c_void,
    bytes: usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_heap_add, error);
    // SAFETY: the caller's promise about pointers, and about the memory.
    unsafe {
        run(heap, error, |heap| {
            let memory = pointer::checked(memory.cast::<u8>(), 2)?;
            pointer::check_bytes(memory.as_ptr().cast(), bytes)?;
            Ok(heap.placed.add(memory, bytes)?)
        })
    }
}

/// Has `cpu` say on which CPU an operation runs; null: as if this function had never been called. `context` is passed
/// on to `cpu`, which is called from wherever the heap is, handlers included. Call this function only while nobody else
/// is using the heap. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_set_cpu(
    heap: *mut Heap,
    cpu: CpuNumber,
    context: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_heap_set_cpu, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { Reporter::NOBODY.answer(Heap::set_cpu(heap, cpu, false, context), error) }
}

/// Has `cpu` say on which CPU an operation runs, where two calls with one CPU number meet in one way only: the second
/// interrupts the first, and is over before that goes on. Then a call that the CPU's cache serves takes no
/// read-modify-write. Null: as if this function had never been called. `context` is passed on to `cpu`.
///
/// So interrupts stay enabled, but a thread may not be preempted or moved during a call: a kernel disables preemption,
/// a program gives each of its threads a number of its own. Where this is not kept, memory may be handed out twice. A
/// handler that interrupts its CPU's cache goes past it, and so does a number that has no cache. Call this function
/// only while nobody else is using the heap. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_set_nested_cpu(
    heap: *mut Heap,
    cpu: CpuNumber,
    context: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_heap_set_nested_cpu, error);
    // SAFETY: the caller's promise about pointers, and about who calls when.
    unsafe { Reporter::NOBODY.answer(Heap::set_cpu(heap, cpu, true, context), error) }
}

/// Has `hook` told of misuse of the heap; null: nobody is told. Call it only while nobody else is using the heap.
/// Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_set_hook(
    heap: *mut Heap,
    hook: Hook,
    context: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_heap_set_hook, error);
    // SAFETY: a heap that nobody else is using, by the contract.
    let place = |heap: *mut Heap| unsafe { &raw mut (*heap).reporter };
    // SAFETY: as above, and the caller's promise about pointers.
    unsafe { handle::set_hook(heap, (hook, context), error, place) }
}
