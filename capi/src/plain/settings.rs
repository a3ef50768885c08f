//! What the next `nb_init` goes by.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::notice;
use crate::error::{Hook, Reporter};
use crate::malloc::{self, Free, Malloc};

/// The settings of one moment.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    /// log2 of the smallest block's bytes.
    pub unit_shift: u32,
    pub max_order: u32,
    pub source: (Malloc, Free),
    pub reporter: Reporter,
}

/// 4096 bytes.
const UNIT_SHIFT: u32 = 12;
const MAX_ORDER: u32 = 9;
/// Orders end where an arena's do.
const MOST_ORDER: u32 = nbbs::MAX_ORDERS as u32 - 1;

// Relaxed throughout: settings are made before `nb_init`, by the same thread or by one that is waited for.
static UNIT: AtomicU32 = AtomicU32::new(UNIT_SHIFT);
static ORDER: AtomicU32 = AtomicU32::new(MAX_ORDER);
/// Null: the default.
static SOURCE: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static SINK: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static HOOK: AtomicPtr<()> = AtomicPtr::new(notice::HOOK);
static CONTEXT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

impl Settings {
    pub(super) fn now() -> Self {
        let source = SOURCE.load(Ordering::Relaxed);
        let source = if source.is_null() {
            malloc::DEFAULT
        } else {
            let sink = SINK.load(Ordering::Relaxed);
            // SAFETY: `nb_set_malloc` stored a Malloc, which, like a pointer, is null for None.
            let malloc = unsafe { transmute::<*mut (), Malloc>(source) };
            // SAFETY: and beside it a Free, of which the same holds.
            let free = unsafe { transmute::<*mut (), Free>(sink) };
            (malloc, free)
        };
        // SAFETY: `nb_set_hook` stored a Hook, which is null for None.
        let hook = unsafe { transmute::<*mut (), Hook>(HOOK.load(Ordering::Relaxed)) };
        let reporter = Reporter { hook, context: CONTEXT.load(Ordering::Relaxed) };
        let (unit_shift, max_order) = (UNIT.load(Ordering::Relaxed), ORDER.load(Ordering::Relaxed));
        Self { unit_shift, max_order, source, reporter }
    }

    /// Bytes of the largest block.
    pub(super) fn max_size(&self) -> u64 {
        self.block_size(self.max_order)
    }

    /// Bytes of a block; the most there is, where they cannot be counted.
    pub(super) fn block_size(&self, order: u32) -> u64 {
        1_u64.checked_shl(order + self.unit_shift).unwrap_or(u64::MAX)
    }
}

/// Sets the smallest block, in bytes: a power of two; 0: 4096. For the next `nb_init`. Returns 0, or 1 if it is no
/// power of two.
///
/// Call it only while no other function of `nb.h` is running.
#[unsafe(no_mangle)]
pub extern "C" fn nb_set_min_size(bytes: u64) -> c_int {
    if bytes != 0 && !bytes.is_power_of_two() {
        return 1;
    }
    let shift = if bytes == 0 { UNIT_SHIFT } else { bytes.trailing_zeros() };
    UNIT.store(shift, Ordering::Relaxed);
    0
}

/// Sets the largest order: no block is larger than `2^order` smallest ones. At most 40; 9 unless set. For the next
/// `nb_init`. Returns 0, or 1 if it is above 40.
///
/// Call it only while no other function of `nb.h` is running.
#[unsafe(no_mangle)]
pub extern "C" fn nb_set_max_order(order: u32) -> c_int {
    if order > MOST_ORDER {
        return 1;
    }
    ORDER.store(order, Ordering::Relaxed);
    0
}

/// Sets where the bookkeeping comes from: each `nb_init` calls `malloc_function` once, and the next one that succeeds
/// passes what it returned to `free_function`. A null `free_function`: nothing is given back. A null `malloc_function`:
/// the C library's pair is used; the freestanding library has none, and refuses `nb_init`.
///
/// Call it only while no other function of `nb.h` is running.
#[unsafe(no_mangle)]
pub extern "C" fn nb_set_malloc(malloc_function: Malloc, free_function: Free) {
    SOURCE.store(
        malloc_function.map_or(ptr::null_mut(), |source| source as *mut ()),
        Ordering::Relaxed,
    );
    SINK.store(free_function.map_or(ptr::null_mut(), |sink| sink as *mut ()), Ordering::Relaxed);
}

/// Has `hook` told of misuse, such as a double `nb_free`; null: nobody is told. Takes effect with the next `nb_init`;
/// before the first one, at once. If this function is never called, a sentence for each of the first ten mistakes is
/// written to standard error, where there is one.
///
/// Call it only while no other function of `nb.h` is running.
#[unsafe(no_mangle)]
pub extern "C" fn nb_set_hook(hook: Hook, context: *mut c_void) {
    CONTEXT.store(context, Ordering::Relaxed);
    HOOK.store(hook.map_or(ptr::null_mut(), |hook| hook as *mut ()), Ordering::Relaxed);
}
