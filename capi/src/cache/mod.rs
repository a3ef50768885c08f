//! A cache of free blocks for each CPU, in front of an arena.
//!
//! ```text
//! mod     giving an arena caches       blocks   allocating and freeing by them
//! ```

mod blocks;

use core::ffi::c_void;

use nbbs::sync::{AtomicU64, Ordering};
use nbbs::{Caps, cache_words};

use crate::arena::{Arena, Handle, derive};
use crate::error::{Code, Error};
use crate::function::{Told, told};
use crate::pointer;
use crate::setting::Setting;
pub use blocks::*;

/// In an `nbbs_cache_config`: no block of that order is kept.
pub const CACHE_NONE: u32 = u32::MAX;

/// What each CPU may keep. All zero: 64 blocks of orders 0 and 1, 32 of orders 2 and 3, 16 of orders 4 and 5, 8 of
/// order 6, 4 of order 7, 2 of order 8, and 2 of order 9; 3904 units in all.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CacheConfig {
    /// The most blocks of each order from 0 to 8: 64 of orders 0 to 3 and 16 of the others at most; 0: the default;
    /// `NBBS_CACHE_NONE`: none.
    pub blocks: [u32; 9],
    /// The large order of which blocks are kept: 9 at least, 40 at most; 0: 9.
    pub large_order: u32,
    /// The most blocks of it: 16 at most; 0: 2; `NBBS_CACHE_NONE`: none.
    pub large_blocks: u32,
    /// Not 0: every free is checked against the arena and the caches of all CPUs, so that all wrong frees are refused,
    /// save for those of a block that has been allocated again, that any call, also an interrupted one, is just then
    /// freeing, giving back, or allocating for a cache, or that stays in a cache which gives back others of its order.
    pub checked: u32,
}

/// The most blocks of an order that a cache with these caps can keep.
fn most(caps: Caps, order: u32) -> u32 {
    caps.units(order, u64::MAX).blocks(order) as u32
}

/// What a setting asks for, unless that is the default. `refused` makes the error of a value above `most`.
fn setting(
    value: u32,
    most: u32,
    refused: impl FnOnce(u64, u64) -> Error,
) -> Result<Option<u64>, Error> {
    match value {
        0 => Ok(None),
        CACHE_NONE => Ok(Some(0)),
        value if value > most => Err(refused(value.into(), most.into())),
        value => Ok(Some(value.into())),
    }
}

impl CacheConfig {
    fn caps(&self) -> Result<Caps, Error> {
        let large = match self.large_order {
            0 => 9,
            order @ 9..=40 => order,
            order => return Err(Setting::LargeOrder.refused(order.into(), 9..=40)),
        };
        let mut caps = Caps::new().checked(self.checked != 0).large(large);
        for (order, blocks) in (0..).zip(self.blocks) {
            let refused = |value, most| {
                let refused = Setting::Blocks.refused(value, 0..=most);
                Error { detail: refused.detail | order << 16, ..refused }
            };
            if let Some(blocks) = setting(blocks, most(caps, order), refused)? {
                caps = caps.units(order, blocks << order);
            }
        }
        let refused = |value, most| Setting::LargeBlocks.refused(value, 0..=most);
        if let Some(blocks) = setting(self.large_blocks, most(caps, large), refused)? {
            caps = caps.units(large, blocks << large);
        }
        Ok(caps)
    }

    /// The configuration at a caller's pointer; the default one for null.
    ///
    /// # Safety
    /// The pointer is null, misaligned, or leads to a configuration.
    unsafe fn at(config: *const Self) -> Result<Caps, Error> {
        if config.is_null() {
            return Ok(Caps::new().checked(false));
        }
        let config = pointer::checked(config, 4)?;
        // SAFETY: by the contract.
        unsafe { config.read() }.caps()
    }
}

/// The default, lowered so that the caches of `cpus` CPUs keep an eighth of an arena of `units` units at most, all
/// together; nothing checked.
#[unsafe(no_mangle)]
pub extern "C" fn nbbs_cache_config_for_arena(units: u64, cpus: usize) -> CacheConfig {
    let caps = Caps::for_arena(units, cpus);
    let blocks = |order| match caps.blocks(order) as u32 {
        0 => CACHE_NONE,
        blocks => blocks,
    };
    CacheConfig {
        blocks: core::array::from_fn(|order| blocks(order as u32)),
        large_order: 9,
        large_blocks: blocks(9),
        checked: 0,
    }
}

/// Bytes that the caches of so many CPUs take: 2,944 each. For static arrays there is `NBBS_CACHE_BYTES`.
#[unsafe(no_mangle)]
pub extern "C" fn nbbs_cache_bytes(cpus: usize) -> usize {
    cache_words(cpus).checked_mul(8).unwrap_or(0)
}

/// Gives the handle at `arena`, and copies made of it from now on, caches in `memory`, whatever that holds: as many as
/// its `bytes` suffice for, one for each CPU number from 0 on. The caches are empty.
///
/// `memory` is on an 8-byte boundary, better on one of 64. It is the arena's until the last handle with caches in it is
/// done with it; before that `nbbs_cache_drain` has to be called for each CPU, or what it keeps stays in use. `config`
/// may be null: the default, and nothing checked.
///
/// From now on, `nbbs_cache_alloc` and its kin take a CPU number, and a handle that `nbbs_on` makes of this one is that
/// of a CPU: `nbbs_alloc`, `nbbs_free` and `nbbs_free_sized` go through its cache. All other functions, and handles not
/// made by `nbbs_on`, go past the caches. A block that is kept is in use to all but the cache.
///
/// For a handle that nobody else is using yet. Refuses with `NULL`, `POINTER_MISALIGNED`, `NO_ARENA`, `TOO_SHORT`,
/// `SIZE`, `SETTING`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_cache_create(
    arena: *mut Arena,
    memory: *mut c_void,
    bytes: usize,
    config: *const CacheConfig,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_cache_create, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        give(arena, (memory, bytes), config, error, |words| {
            for word in words {
                // Relaxed: whoever shares the arena with other threads orders these stores too.
                word.store(0, Ordering::Relaxed);
            }
        })
    }
}

/// Gives the handle caches that are in use already, by other handles to the same arena with the same `config`, from
/// another thread, process or mapping; or empty ones, in memory that is all zero. All begin at the same word of that
/// memory. One may have fewer CPUs; its checks, drains, and counts then leave the caches of the others out. Otherwise as
/// `nbbs_cache_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_cache_attach(
    arena: *mut Arena,
    memory: *mut c_void,
    bytes: usize,
    config: *const CacheConfig,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_cache_attach, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { give(arena, (memory, bytes), config, error, |_| {}) }
}

/// Gives a handle caches, in words that `prepare` sees first.
///
/// # Safety
/// As for [`derive()`]; `memory` is null, misaligned or leads to `bytes` bytes, which are only used as caches as long as
/// a handle is; `config` is null, misaligned, or leads to a configuration.
unsafe fn give(
    arena: *mut Arena,
    (memory, bytes): (*mut c_void, usize),
    config: *const CacheConfig,
    error: Told,
    prepare: impl FnOnce(&'static [AtomicU64]),
) -> Code {
    let change = |handle: Handle| {
        // SAFETY: by the contract.
        let words = unsafe { pointer::words(memory, bytes, cache_words(1), 2) }?;
        // SAFETY: by the contract.
        let caps = unsafe { CacheConfig::at(config) }?;
        prepare(words);
        Ok(handle.with_caches(words, caps))
    };
    // SAFETY: by the contract.
    unsafe { derive(arena, (arena, 1), error, change) }
}
