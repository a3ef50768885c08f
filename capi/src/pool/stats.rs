//! What a pool has, in one look.

use super::Pool;
use crate::error::{Code, Error};
use crate::function::told;
use crate::handle::run;
use crate::pointer;

/// What a pool has. `objects`, `kept` and `free` add up to `capacity`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolStatistics {
    /// Objects for which there is memory, allocated or not.
    pub capacity: usize,
    /// Objects that are allocated.
    pub objects: usize,
    /// Slots that locals keep, and those in the hands of calls under way.
    pub kept: usize,
    /// Slots that are free for all.
    pub free: usize,
    /// Chunks with memory.
    pub chunks: usize,
    /// The most objects for which there was memory at any time. Calls that add chunks beside others that give some
    /// back, and a source that has room for the bookkeeping of a chunk but not for its objects, may make it larger, by
    /// a chunk for each.
    pub peak_capacity: usize,
    /// Bytes of memory for objects.
    pub bytes: usize,
    /// Bytes of bookkeeping, without those of the pool itself. It stays until the pool ends.
    pub bookkeeping: usize,
}

impl Pool {
    fn stats(&self) -> PoolStatistics {
        let stats = self.inner.stats();
        // The inner pool knows no locals: what they keep is claimed, without a mark.
        let claimed = stats.slots - stats.free;
        let objects = self.len().min(claimed);
        PoolStatistics {
            capacity: stats.slots,
            objects,
            kept: claimed - objects,
            free: stats.free,
            chunks: stats.chunks,
            peak_capacity: stats.peak_slots,
            bytes: stats.slots * self.shape.stride,
            bookkeeping: stats.bookkeeping,
        }
    }
}

/// Writes what the pool has to `statistics`. While others use the pool, each chunk is counted as it is at some moment of
/// the call. `nbbs_pool_len` and `nbbs_pool_capacity` tell the most important for less.
///
/// Two loads for every 64 slots, one for each of them that is not free, and some hundred more. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_stats(
    pool: *const Pool,
    statistics: *mut PoolStatistics,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_pool_stats, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(pool, error, |pool| {
            let place = pointer::checked(statistics, 2)?;
            place.write(pool.stats());
            Ok(())
        })
    }
}
