//! Little memory of any size: heaps whose bookkeeping is two bits for each unit.
//!
//! ```text
//! mod      making heaps      blocks   alloc, free, resize      stats    looking on
//! ```

mod blocks;
mod stats;

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::NonNull;

use nbbs_heap::{AddError, PlacedSmall};

use crate::error::{Code, Error, Hook, Reporter};
use crate::function::told;
use crate::handle::{self, Reporting};
use crate::pointer;
use crate::setting::Setting;
pub use blocks::*;
pub use stats::*;

/// A heap for little memory: the first fit, without caches. Made by `nbbs_small_create`.
#[derive(Debug)]
pub struct Small {
    placed: Placed,
    reporter: Reporter,
}

/// A heap by its unit.
#[derive(Debug)]
enum Placed {
    Of16(PlacedSmall<'static, 16>),
    Of32(PlacedSmall<'static, 32>),
    Of64(PlacedSmall<'static, 64>),
}

impl Reporting for Small {
    fn reporter(&self) -> Reporter {
        self.reporter
    }
}

/// Evaluates an expression with the heap, whatever its unit.
macro_rules! on {
    ($small:expr, $heap:ident => $does:expr) => {
        match &$small.placed {
            Placed::Of16($heap) => $does,
            Placed::Of32($heap) => $does,
            Placed::Of64($heap) => $does,
        }
    };
}
use on;

impl Placed {
    /// Makes a heap. `None` if there is no such unit.
    ///
    /// # Safety
    /// Those of [`PlacedSmall::new`].
    unsafe fn new(
        memory: NonNull<u8>,
        bytes: usize,
        unit: usize,
    ) -> Option<Result<Self, AddError>> {
        Some(match unit {
            // SAFETY: by the contract.
            16 => unsafe { PlacedSmall::new(memory, bytes) }.map(Self::Of16),
            // SAFETY: by the contract.
            32 => unsafe { PlacedSmall::new(memory, bytes) }.map(Self::Of32),
            // SAFETY: by the contract.
            64 => unsafe { PlacedSmall::new(memory, bytes) }.map(Self::Of64),
            _ => return None,
        })
    }
}

/// Where the heap's own place ends.
const FRONT: Layout = Layout::new::<Small>();

/// Returns how many bytes of memory, at any address, `nbbs_small_create` needs for a heap with units of `unit` bytes
/// that hands out `bytes` bytes, rounded up to units. The bookkeeping takes 0.8 % with units of 32 bytes, the heap
/// itself some 100 bytes. 0 if there can be no such heap: `bytes` is 0, or more than there are addresses, or `unit` is
/// not 16, 32 or 64.
#[unsafe(no_mangle)]
pub extern "C" fn nbbs_small_bytes(bytes: usize, unit: usize) -> usize {
    let needed = match unit {
        16 => PlacedSmall::<16>::bytes_for(bytes),
        32 => PlacedSmall::<32>::bytes_for(bytes),
        64 => PlacedSmall::<64>::bytes_for(bytes),
        _ => None,
    };
    needed.and_then(|needed| needed.checked_add(FRONT.size() + FRONT.align() - 1)).unwrap_or(0)
}

/// Makes a heap in `memory`, whatever that holds, which hands out units of `unit` bytes: 16, 32 or 64. A block has as many
/// as it needs, in the first place that has room for them.
///
/// `memory` is `bytes` long, and the bookkeeping, two bits for each unit, lies at its front. It is the heap's until nobody
/// uses the heap, or what it handed out, any more; a heap need not be ended. For some KiB to some MiB: there are no
/// caches, and a search takes longer the more blocks it passes. Threads, and handlers that interrupt anything, may use
/// the heap at the same time.
///
/// A store for each word of the bookkeeping. Refuses with `NULL`, `SIZE`, `SETTING` (`unit`), `TOO_SHORT`; the memory has
/// not changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_create(
    memory: *mut c_void,
    bytes: usize,
    unit: usize,
    heap: *mut *mut Small,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_small_create, error);
    let make = || {
        let memory = pointer::checked(memory.cast::<u8>(), 1)?;
        let place = pointer::checked(heap, 4)?;
        pointer::check_bytes(memory.as_ptr().cast(), bytes)?;
        let needed = nbbs_small_bytes(1, unit);
        let too_short = Error::of(Code::TooShort, bytes as u64, needed as u64);
        if needed == 0 {
            return Err(Setting::Unit.refused(unit as u64, 16..=64));
        }
        let skip = memory.addr().get().wrapping_neg() % FRONT.align();
        let front = skip + FRONT.size();
        let left = bytes.checked_sub(front).ok_or(too_short)?;
        // SAFETY: the memory is longer than this.
        let rest = unsafe { memory.add(front) };
        // SAFETY: so much is left of the memory, which is the heap's.
        let placed = unsafe { Placed::new(rest, left, unit) };
        let placed = placed.and_then(Result::ok).ok_or(too_short)?;
        // SAFETY: less than `front`.
        let made: NonNull<Small> = unsafe { memory.add(skip) }.cast();
        // SAFETY: memory for a heap, aligned for one, in front of what is placed.
        unsafe { made.write(Small { placed, reporter: Reporter::NOBODY }) };
        // SAFETY: the caller's promise about pointers.
        unsafe { place.write(made.as_ptr()) };
        Ok(())
    };
    // SAFETY: the caller's promise about pointers.
    unsafe { Reporter::NOBODY.answer(make(), error) }
}

/// Has `hook` told of misuse of the heap; null: nobody is told. Call it only while nobody else is using the heap.
/// Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_set_hook(
    heap: *mut Small,
    hook: Hook,
    context: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_small_set_hook, error);
    // SAFETY: a heap that nobody else is using, by the contract.
    let place = |heap: *mut Small| unsafe { &raw mut (*heap).reporter };
    // SAFETY: as above, and the caller's promise about pointers.
    unsafe { handle::set_hook(heap, (hook, context), error, place) }
}
