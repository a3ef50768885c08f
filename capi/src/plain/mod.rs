//! One arena for the whole program, by address and size: the interface of github.com/TunaCici/NBBS.
//!
//! ```text
//! mod        nb_init, nb_alloc, nb_free
//! counts     blocks allocated and freed, of each order
//! notice     what is printed of misuse, if no hook is set
//! settings   smallest block, largest order, where the bookkeeping comes from, whom to tell of misuse
//! stats      nb_stat_*
//! ```

mod counts;
mod notice;
mod settings;
mod stats;

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};

use nbbs::sync::AtomicU64;
use nbbs::{Buddy, metadata_words};

use crate::error::{Code, Error, Reporter};
use crate::function::Told;
use crate::lane::thread_lane;
use crate::malloc::Free;
use crate::pointer;
use counts::Counts;
use settings::Settings;
pub use settings::*;
pub use stats::*;

/// The arena that `nb_init` made, and where it is. One block of memory, the counts and the metadata behind it.
#[repr(C, align(64))]
struct Plain {
    buddy: Buddy<'static>,
    base: u64,
    size: u64,
    settings: Settings,
    free: Free,
    /// What the source of memory returned.
    block: *mut c_void,
    counts: &'static Counts,
}

/// The current one. Release, when `nb_init` has made it, pairs with Acquire in `current`.
static PLAIN: AtomicPtr<Plain> = AtomicPtr::new(ptr::null_mut());

#[inline(always)]
fn current<'a>() -> Option<&'a Plain> {
    // SAFETY: null, or a Plain that is complete and stays until the next `nb_init`, which the program does not call
    // while it makes another call.
    unsafe { PLAIN.load(Ordering::Acquire).as_ref() }
}

impl Plain {
    /// Makes one for `size` bytes from `base` on.
    fn make(base: u64, size: u64, settings: Settings) -> Option<NonNull<Self>> {
        let (malloc, free) = settings.source;
        let units = size >> settings.unit_shift;
        let words = match metadata_words(units) {
            0 | usize::MAX => return None,
            words => words,
        };
        let align = align_of::<Self>();
        let front = size_of::<Self>() + size_of::<Counts>() + align;
        let bytes = words.checked_mul(8)?.checked_add(front)?;
        // SAFETY: the function is the C library's `malloc`, or behaves like it, as `nb_set_malloc` demands.
        let block = unsafe { malloc?(bytes) };
        let plain = NonNull::new(block)?.cast::<u8>();
        // SAFETY: the block is longer than a Plain, its counts and its words by the alignment.
        let plain = unsafe { plain.add(plain.align_offset(align)) }.cast::<Self>();
        // SAFETY: as above; the counts follow the Plain, whose size is a multiple of their alignment.
        let counts = unsafe { plain.add(1) }.cast::<Counts>();
        // SAFETY: as above; the words follow the counts in the same way.
        let first = unsafe { counts.add(1) }.cast::<AtomicU64>();
        // SAFETY: memory for the counts, ours.
        unsafe { counts.write_bytes(0, 1) };
        // SAFETY: memory for so many words, ours.
        unsafe { first.write_bytes(0, words) };
        // SAFETY: zero is a value of theirs, and from here on they are reached by shared references only.
        let counts = unsafe { counts.as_ref() };
        // SAFETY: as for the counts.
        let words = unsafe { slice::from_raw_parts(first.as_ptr(), words) };
        let Ok(buddy) = Buddy::new(words, units) else {
            give_back(free, block);
            return None;
        };
        // SAFETY: memory for a Plain, ours.
        unsafe { plain.write(Self { buddy, base, size, settings, free, block, counts }) };
        Some(plain)
    }

    /// The unit that begins at an address.
    #[inline]
    fn index(&self, address: u64) -> Result<u64, Error> {
        pointer::unit_at(address, self.base, self.settings.unit_shift, self.buddy.units())
    }
}

fn give_back(free: Free, block: *mut c_void) {
    if let Some(free) = free {
        // SAFETY: the block came from the `malloc` that was set together with this `free`, and is not used any more.
        unsafe { free(block) };
    }
}

/// Makes the program's arena: `size` bytes from `base` on, all free, under the settings of that moment. The memory is
/// never touched. Returns 0, or 1 if it is refused: `base` or `size` is 0, `size` is less than a smallest block, the
/// range goes beyond the address space, or there is no memory for the bookkeeping. Then the arena before stays.
///
/// May be called again: everything is forgotten, and the bookkeeping before given back. No other `nb_` function may be
/// running meanwhile, and no handler may call it, as it allocates the bookkeeping.
///
/// What is left of `size` beyond whole smallest blocks is not used. Blocks are aligned to their size from `base` on.
#[unsafe(no_mangle)]
pub extern "C" fn nb_init(base: u64, size: u64) -> c_int {
    let settings = Settings::now();
    let is_addressable = |end: u64| usize::try_from(end - 1).is_ok();
    let possible = base != 0
        && size >> settings.unit_shift != 0
        && base.checked_add(size).is_some_and(is_addressable);
    let Some(made) = possible.then(|| Plain::make(base, size, settings)).flatten() else {
        return 1;
    };
    // Acquire: pairs with the Release of the `nb_init` before, whose `Plain` is read here.
    let before = PLAIN.swap(made.as_ptr(), Ordering::AcqRel);
    if let Some(before) = NonNull::new(before) {
        // SAFETY: nobody is using it: see above. Both are plain values, read before their memory goes.
        let &Plain { free, block, .. } = unsafe { before.as_ref() };
        give_back(free, block);
    }
    0
}

/// Allocates `size` bytes, rounded up to a power of two and to the smallest block, and returns the address. Null:
/// `size` is above `nb_stat_max_size()`, no such block is free, or there was no `nb_init`.
///
/// One read-modify-write in the steady state, and one to count it.
#[unsafe(no_mangle)]
pub extern "C" fn nb_alloc(size: u64) -> *mut c_void {
    let Some(plain) = current() else {
        return ptr::null_mut();
    };
    if size > plain.settings.max_size() {
        return ptr::null_mut();
    }
    let units = (size.saturating_sub(1) >> plain.settings.unit_shift) + 1;
    let order = units.next_power_of_two().trailing_zeros();
    match plain.buddy.on(thread_lane()).alloc(order) {
        Ok(index) => {
            plain.counts.allocated(index, order);
            let address = plain.base + (index << plain.settings.unit_shift);
            ptr::with_exposed_provenance_mut(address as usize)
        }
        Err(_) => ptr::null_mut(),
    }
}

/// Frees the block at `addr`; null: does nothing. An address that is not that of an allocated block, a double free
/// included, is refused: nothing changes, and the hook of `nb_set_hook` is told; without one, a line is printed.
///
/// One read-modify-write in the steady state, and one to count it.
#[unsafe(no_mangle)]
pub extern "C" fn nb_free(addr: *mut c_void) {
    if addr.is_null() {
        return;
    }
    let address = addr.addr() as u64;
    let freed = match current() {
        None => Err((Settings::now().reporter, Error::of(Code::NoArena, 0, 0))),
        Some(plain) => {
            let freed = plain.index(address).and_then(|index| {
                let units = plain.buddy.on(thread_lane()).free(index);
                let units = units.map_err(|refused| Error::from(refused).at(addr))?;
                plain.counts.freed(index, units.ilog2());
                Ok(())
            });
            freed.map_err(|refused| (plain.settings.reporter, refused))
        }
    };
    if let Err((reporter, refused)) = freed {
        // SAFETY: no place for the error; the hook is as `nb_set_hook` demands.
        unsafe { Reporter::refuse(reporter, refused, Told::NOTHING) };
    }
}
