//! The atomic words of which metadata consists.
//!
//! The rest of the library accesses words through [`Word`] only. So the same code runs on the processor's atomics,
//! under a model checker, with its read-modify-writes counted, or with stalls injected between any two steps. Each call
//! site names its ordering; `AFTER_FENCE` and its kind name that of a read for which a fence may stand.
//!
//! # Targets without 64-bit atomics
//!
//! The feature `portable-atomic` takes the atomics from the crate of that name. The program chooses in its own
//! `Cargo.toml` how that crate implements them:
//!
//! ```toml
//! nbbs = { version = "0.1", default-features = false, features = ["portable-atomic"] }
//! portable-atomic = { version = "1", features = ["unsafe-assume-single-core"] }
//! ```
//!
//! With `unsafe-assume-single-core` each access disables interrupts, and the library keeps its promises. Without it
//! each access takes a lock: no memory is handed out twice, but operations wait for each other, and an interrupt
//! handler that calls one may wait for ever (not with `unsafe-assume-privileged`, which disables interrupts while the
//! lock is held).

/// The default word: `core`'s 64-bit atomic, or that of the crate `portable-atomic` on a target without 64-bit atomics
/// if the feature of that name is on.
#[cfg(not(all(feature = "portable-atomic", not(target_has_atomic = "64"))))]
pub use core::sync::atomic::AtomicU64;
pub use core::sync::atomic::Ordering;
#[cfg(all(feature = "portable-atomic", not(target_has_atomic = "64")))]
pub use portable_atomic::AtomicU64;

use core::sync::atomic::fence;

use crate::layout::shape::Shape;

/// Whether a fence separates a write from a following read of another word, so that the read need not be sequentially
/// consistent by itself. This is so on targets where each sequentially consistent read takes a full fence of its own;
/// on x86 and AArch64 it takes none. `--cfg nbbs_fenced` enables it anywhere, for checking.
const FENCED: bool = cfg!(any(target_arch = "riscv64", nbbs_fenced));

/// The ordering of a read that follows a write of another word, and the fence between them.
pub(crate) const AFTER_FENCE: Ordering = if FENCED { Ordering::Acquire } else { Ordering::SeqCst };

/// The ordering of a read that acquires, with such a fence between it and everything that follows from it.
pub(crate) const ACQUIRE_BY_FENCE: Ordering =
    if FENCED { Ordering::Relaxed } else { Ordering::Acquire };

/// The ordering of a read that follows a write of another word, with a fence between them, and that need not acquire: a
/// fence comes before everything that follows from it, or what is read has been acquired before.
pub(crate) const BETWEEN_FENCES: Ordering =
    if FENCED { Ordering::Relaxed } else { Ordering::SeqCst };

/// A 64-bit atomic word of metadata.
///
/// Implemented for [`AtomicU64`] and, with the feature `portable-atomic`, for the 64-bit atomic of that crate.
/// Implement it for a wrapper to observe or steer every step that the allocator takes.
///
/// ```
/// use nbbs::sync::{AtomicU64, Ordering, Word};
///
/// let word = AtomicU64::new(1);
/// assert_eq!(Word::compare_exchange(&word, 1, 2, Ordering::SeqCst, Ordering::SeqCst), Ok(1));
/// assert_eq!(Word::load(&word, Ordering::SeqCst), 2);
/// ```
pub trait Word: Sync {
    /// How many units or slots a word describes. Leave it at its default, except to give small arenas many levels.
    const SHAPE: Shape = Shape::STANDARD;

    /// Reads the word.
    fn load(&self, order: Ordering) -> u64;

    /// Writes the word. Used for the notes of lanes, the words of caches and construction, never by the protocol.
    fn store(&self, value: u64, order: Ordering);

    /// Replaces `current` by `new` if the word holds `current`, and returns the value found.
    ///
    /// # Errors
    /// The value found, if it is not `current`.
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64>;

    /// Keeps a read of one word from being reordered before an earlier write, or read, of another.
    ///
    /// By default this is a `SeqCst` fence on RISC-V, and nothing elsewhere, where the `SeqCst` accesses already forbid
    /// the reordering. A checker that models only `SeqCst` fences puts its fence here; nobody else has a reason to
    /// replace it.
    #[inline(always)]
    fn store_load_fence() {
        if FENCED {
            fence(Ordering::SeqCst);
        }
    }
}

/// [`Word`] for a 64-bit atomic that has the methods of `core`'s.
macro_rules! word {
    ($atomic:ty) => {
        impl Word for $atomic {
            #[inline(always)]
            fn load(&self, order: Ordering) -> u64 {
                self.load(order)
            }

            #[inline(always)]
            fn store(&self, value: u64, order: Ordering) {
                self.store(value, order);
            }

            #[inline(always)]
            fn compare_exchange(
                &self,
                current: u64,
                new: u64,
                success: Ordering,
                failure: Ordering,
            ) -> Result<u64, u64> {
                self.compare_exchange(current, new, success, failure)
            }
        }
    };
}

#[cfg(target_has_atomic = "64")]
word!(core::sync::atomic::AtomicU64);

#[cfg(feature = "portable-atomic")]
portable_atomic::cfg_has_atomic_64! {
    word!(portable_atomic::AtomicU64);
}

#[cfg(all(feature = "portable-atomic", not(target_has_atomic = "64")))]
portable_atomic::cfg_no_atomic_64! {
    compile_error!(
        "this target has no 64-bit atomics: say in the program's own Cargo.toml how `portable-atomic` makes them, by its \
         features `fallback` and, where they hold, `unsafe-assume-single-core` or `unsafe-assume-privileged`"
    );
}

#[cfg(not(any(feature = "portable-atomic", target_has_atomic = "64")))]
compile_error!(
    "this target has no 64-bit atomics: enable the feature `portable-atomic` of nbbs, and see the documentation of \
     `nbbs::sync`"
);
