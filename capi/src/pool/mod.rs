//! Objects of one size.
//!
//! ```text
//! mod      making pools            objects   alloc, free, ask      local    a thread's own slots
//! source   where memory comes from slots     what is in each slot   stats    looking on
//! ```

mod local;
mod objects;
mod slots;
mod source;
mod stats;

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::AtomicUsize;

use nbbs_pool::{ChunkSource, Config, Exhausted};

use crate::error::{Code, Error, Hook, Reporter};
use crate::function::told;
use crate::handle::{self, Reporting};
use crate::pointer;
use crate::setting::Setting;
pub use local::*;
pub use objects::*;
use slots::WORD;
pub use source::Source;
use source::{Memory, Shape};
pub use stats::*;

/// A pool of objects of one size, for any number of threads: made by `nbbs_pool_create` or `nbbs_pool_create_in`, ended
/// by `nbbs_pool_destroy`.
#[derive(Debug)]
pub struct Pool {
    inner: nbbs_pool::Pool<(), Memory>,
    shape: Shape,
    /// Where the only chunk begins; 0 for chunks of a source, which `mask` finds.
    base: usize,
    /// What of an address, less `base`, leads to its chunk.
    mask: usize,
    /// Where the pool itself came from.
    source: Option<Source>,
    reporter: Reporter,
}

impl Reporting for Pool {
    #[inline(always)]
    fn reporter(&self) -> Reporter {
        self.reporter
    }
}

/// What a pool is to be like. If only `size` is not 0, objects are aligned to 1, and there may be as many as there is
/// memory for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolConfig {
    /// Bytes of an object.
    pub size: usize,
    /// The alignment of objects: a power of two; 0: they may lie at any address.
    pub align: usize,
    /// The most objects that the pool may ever have; 0: no limit.
    pub limit: usize,
    /// Objects for which the pool gets memory when it is made; `nbbs_pool_shrink` leaves that many.
    pub reserve: usize,
    /// Objects in a chunk, at most 2^24. A chunk is what the pool grows by; its memory is aligned to its size, rounded
    /// up to a power of two. 0: 4,096, or as many as fit into 1 MiB, but no fewer than 64. With a `source` of the
    /// caller's, 0 means as many as fit into 4 KiB, since the source may have little memory, or none at higher
    /// alignments; larger chunks are faster. There are never more than `limit`.
    pub chunk: usize,
    /// The pool adds a chunk as soon as fewer objects than this are free; 0: when none is.
    pub ahead: usize,
}

impl PoolConfig {
    /// Returns so many slots, or as many as the pool may ever have.
    fn within_limit(&self, slots: usize) -> usize {
        if self.limit == 0 { slots } else { slots.min(self.limit) }
    }
}

/// Slots of a chunk, unless the configuration says otherwise: so many that 8 threads begin in cache lines of their own.
const CHUNK: usize = 4096;
/// Bytes of such a chunk of the system's memory, unless they are too few for a word of slots; and of a source's, unless
/// they are too few for one.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNK_BYTES_OF_SOURCE: usize = 1 << 12;
/// The most slots of a chunk.
const MOST_CHUNK: usize = 1 << 24;

impl Pool {
    /// Chunks that have been given back.
    fn withdrawn(&self) -> &AtomicUsize {
        self.inner.source().withdrawn()
    }

    /// log2 of the distance between chunks; there is one place for those of a single block.
    fn shift(&self) -> u32 {
        if self.mask == 0 { usize::BITS - 1 } else { self.mask.trailing_zeros() }
    }
}

/// Reads a configuration.
///
/// # Safety
/// The pointer is null, misaligned, or leads to a configuration.
unsafe fn read(config: *const PoolConfig) -> Result<PoolConfig, Error> {
    let config = pointer::checked(config, 1)?;
    // SAFETY: by the contract.
    Ok(unsafe { config.read() })
}

/// How the inner pool is to grow.
fn grows(config: &PoolConfig, chunk: usize) -> Config {
    Config::new().chunk_size(chunk).limit(config.limit).reserve(config.reserve).ahead(config.ahead)
}

/// Refuses to reserve more than such a pool can ever have.
fn check_reserve(config: &Config, reserve: usize, stride: usize) -> Result<(), Error> {
    config.check_slots(reserve, stride).map_err(|refused| match refused {
        Exhausted::Slots { slots, limit } => {
            Setting::Reserve.refused(slots as u64, 0..=limit as u64)
        }
        other => other.into(),
    })
}

/// What a pool in one block needs: its own place, the bookkeeping and the objects.
struct Plan {
    shape: Shape,
    /// Of the pool itself and its bookkeeping.
    front: usize,
    bytes: usize,
    align: usize,
}

impl Plan {
    fn of(config: &PoolConfig) -> Result<Self, Error> {
        let chunk = config.limit.clamp(1, MOST_CHUNK);
        let shape = Shape::new(config.size, config.align, chunk)?;
        let most = shape.most_in_block();
        let refused = Setting::Limit.refused(config.limit as u64, 1..=most as u64);
        if config.limit == 0 || config.limit > most {
            return Err(refused);
        }
        let objects = shape.stride * config.limit;
        // Two bits and a byte for each slot, one for each word, and the heads of chunks and of their table.
        let chunks = config.limit.div_ceil(chunk);
        let words = chunk.div_ceil(64);
        let bookkeeping = 2048 + chunks * (384 + 81 * words + words / 8);
        let align = align_of::<Pool>().max(shape.align);
        let front = (size_of::<Pool>() + bookkeeping).next_multiple_of(align);
        let bytes = objects.checked_add(front).ok_or(refused)?;
        Ok(Self { shape, front, bytes, align })
    }
}

/// Returns the bytes that `nbbs_pool_create_in` needs for a pool of `config->limit` objects; 0 if there can be no such
/// pool. The bookkeeping takes 10 bits for each object, and some KiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_bytes(config: *const PoolConfig) -> usize {
    // SAFETY: the caller's promise about pointers.
    let config = unsafe { read(config) };
    // The block itself may begin at any address.
    config.and_then(|config| Plan::of(&config)).map_or(0, |plan| plan.bytes + plan.align - 1)
}

/// Makes a pool of exactly `config->limit` objects in `memory`, which is `bytes` long, at least
/// `nbbs_pool_bytes(config)`. `reserve`, `chunk` and `ahead` do not matter. The memory is the pool's until
/// `nbbs_pool_destroy`.
///
/// Refuses with `NULL`, `SIZE`, `ALIGNMENT`, `SETTING` (`limit`: 0, or more than there are addresses), `TOO_SHORT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_create_in(
    config: *const PoolConfig,
    memory: *mut c_void,
    bytes: usize,
    pool: *mut *mut Pool,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_pool_create_in, error);
    let make = || {
        // SAFETY: the caller's promise about pointers.
        let config = unsafe { read(config) }?;
        let memory = pointer::checked(memory.cast::<u8>(), 2)?.as_ptr();
        let place = pointer::checked(pool, 4)?;
        let plan = Plan::of(&config)?;
        let begin = memory.wrapping_add(memory.addr().wrapping_neg() & (plan.align - 1));
        let needed = plan.bytes + (begin.addr().wrapping_sub(memory.addr()));
        pointer::check_bytes(memory.cast(), bytes)?;
        if bytes < needed {
            return Err(Error::of(Code::TooShort, bytes as u64, needed as u64));
        }
        let slots = begin.wrapping_add(plan.front);
        let memory = Memory::block(begin.wrapping_add(size_of::<Pool>()), slots);
        let config = PoolConfig { reserve: config.limit, ahead: 0, ..config };
        let inner = nbbs_pool::Pool::with_marks(memory, grows(&config, plan.shape.chunk_slots));
        inner.reserve(config.limit)?;
        let (shape, base, reporter) = (plan.shape, slots.addr(), Reporter::NOBODY);
        let made = begin.cast::<Pool>();
        // SAFETY: memory for a Pool and aligned for it, by the plan, and ours.
        unsafe { made.write(Pool { inner, shape, base, mask: 0, source: None, reporter }) };
        // SAFETY: memory for a pointer, by the caller's promise.
        unsafe { place.write(made) };
        Ok(())
    };
    // SAFETY: the caller's promise about pointers.
    unsafe { Reporter::NOBODY.answer(make(), error) }
}

/// The shape of a pool whose configuration does not say how large chunks are.
fn usual_shape(config: &PoolConfig, source_is_given: bool) -> Result<Shape, Error> {
    let of = |slots| Shape::new(config.size, config.align, slots);
    let stride = of(1)?.stride;
    let usual = if source_is_given {
        (CHUNK_BYTES_OF_SOURCE / stride).clamp(1, CHUNK)
    } else {
        (CHUNK_BYTES / stride).clamp(WORD, CHUNK)
    };
    of(config.within_limit(usual))
}

/// Makes a pool that gets its memory from `source`: some 6.5 KiB for itself at once, then chunk by chunk, as it needs
/// it. If `source` is null, the memory comes from the C library's `malloc`, where there is one.
///
/// Refuses with `NULL` (also: no `source` in the freestanding library), `SIZE`, `ALIGNMENT`, `SETTING` (`chunk`;
/// `reserve`: more than the limit, or than there are addresses), `SOURCE_EMPTY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_create(
    config: *const PoolConfig,
    source: *const Source,
    pool: *mut *mut Pool,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_pool_create, error);
    let make = || {
        // SAFETY: the caller's promise about pointers.
        let config = unsafe { read(config) }?;
        let given = !source.is_null();
        let source = match pointer::checked(source, 2) {
            // SAFETY: the caller's promise about pointers.
            Ok(source) => unsafe { source.read() },
            Err(refused) if source.is_null() => source::of_the_system().ok_or(refused)?,
            Err(refused) => return Err(refused),
        };
        let place = pointer::checked(pool, 3)?;
        if source.alloc.is_none() {
            return Err(Error { detail: 1, ..Error::of(Code::Null, 2, 0) });
        }
        if config.chunk > MOST_CHUNK {
            return Err(Setting::Chunk.refused(config.chunk as u64, 0..=MOST_CHUNK as u64));
        }
        let shape = match config.chunk {
            0 => usual_shape(&config, given)?,
            chunk => Shape::new(config.size, config.align, config.within_limit(chunk))?,
        };
        let grows = grows(&config, shape.chunk_slots);
        check_reserve(&grows, config.reserve, shape.stride)?;
        let memory = Memory::source(source, shape);
        let layout = Layout::new::<Pool>();
        let empty = Error::of(Code::SourceEmpty, layout.size() as u64, layout.align() as u64);
        let made = memory.alloc(layout).ok_or(empty)?.cast::<Pool>();
        let inner = nbbs_pool::Pool::with_marks(memory, grows);
        let (mask, reporter) = (!(shape.chunk_align - 1), Reporter::NOBODY);
        // SAFETY: memory for a Pool, ours.
        unsafe { made.write(Pool { inner, shape, base: 0, mask, source: Some(source), reporter }) };
        // SAFETY: just made, and nobody else's.
        if let Err(refused) = unsafe { made.as_ref() }.inner.reserve(config.reserve) {
            // SAFETY: as above.
            unsafe { end(made) };
            return Err(shape.refusal(refused));
        }
        // SAFETY: memory for a pointer, by the caller's promise.
        unsafe { place.write(made.as_ptr()) };
        Ok(())
    };
    // SAFETY: the caller's promise about pointers.
    unsafe { Reporter::NOBODY.answer(make(), error) }
}

/// Ends a pool and gives its memory back to its source; the memory of a pool that `nbbs_pool_create_in` made is the
/// caller's again. Objects that are still allocated are gone. Null: does nothing. Nobody else may be using the pool, or
/// objects of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_destroy(pool: *mut Pool) {
    if let Ok(pool) = pointer::checked(pool, 1) {
        // SAFETY: a pool that nobody else uses, by the contract.
        unsafe { end(pool) };
    }
}

/// # Safety
/// A pool that nobody else uses, now or later.
unsafe fn end(pool: NonNull<Pool>) {
    // SAFETY: by the contract; its place is not looked at again, other than to give it back.
    let Pool { inner, shape, source, .. } = unsafe { pool.read() };
    drop(inner);
    if let Some(source) = source {
        // SAFETY: `nbbs_pool_create` got the block from this source with this layout.
        unsafe { Memory::source(source, shape).free(pool.cast(), Layout::new::<Pool>()) };
    }
}

/// Has `hook` told of misuse of the pool; null: nobody is told. Call it only while nobody else is using the pool.
/// Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_set_hook(
    pool: *mut Pool,
    hook: Hook,
    context: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_pool_set_hook, error);
    // SAFETY: a pool that nobody else is using, by the contract.
    let place = |pool: *mut Pool| unsafe { &raw mut (*pool).reporter };
    // SAFETY: as above, and the caller's promise about pointers.
    unsafe { handle::set_hook(pool, (hook, context), error, place) }
}
