//! What is done to runs, of which caches keep some.

use core::alloc::Layout;
use core::ops::Range;
use core::ptr::NonNull;

use super::Operations;
use crate::cache::{Cache, KeptRuns};
use crate::class::{LARGEST, UNIT};
use crate::region::{Region, Runs};
use crate::watch;

/// Of the units asked for a run that is freed by its address alone has at most this part more: as slots may.
const SLACK_PART: u64 = 8;

/// A heap, as one caller sees it who allocates and frees runs.
pub trait OfRuns<'h>: Operations<'h> {
    /// Allocates a run of units, all zero if `zeroed`.
    #[cold]
    fn alloc_run(self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        let exact = |cache: &mut Cache, units| cache.take_run(units, layout.align());
        if let Some(kept) = self.take_run(layout, exact) {
            if zeroed {
                // SAFETY: the run is the caller's, and holds the layout.
                unsafe { kept.write_bytes(0, layout.size()) };
            }
            return Some(kept);
        }
        self.claim_run(layout, zeroed)
    }

    /// Allocates a run for a caller who frees it by its address alone, so that a longer one does, too.
    #[cold]
    fn alloc_run_at_least(self, layout: Layout) -> Option<NonNull<u8>> {
        let longer = |cache: &mut Cache, units: u64| {
            let most = units + units / SLACK_PART;
            cache.take_shortest_run(units..most + 1, layout.align())
        };
        self.take_run(layout, longer).or_else(|| self.claim_run(layout, false))
    }

    /// Allocates a run by `take`, which is told how many units it must have, if a cache ever keeps one for this layout.
    fn take_run(
        self,
        layout: Layout,
        take: impl FnOnce(&mut Cache, u64) -> Option<NonNull<u8>>,
    ) -> Option<NonNull<u8>> {
        let is_ever_kept = KeptRuns::ON && layout.size() > LARGEST;
        let units = Runs::<UNIT>::units_of(layout.size());
        is_ever_kept.then(|| self.with_cache(|cache| take(cache, units)).flatten())?
    }

    /// Allocates a run that no cache keeps, all zero if `zeroed`.
    fn claim_run(self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        self.claim_cache();
        let (memory, lane) = (self.memory(), self.lane());
        let alloc = |region: &Region<'static>| region.alloc_run(layout, zeroed, lane);
        let found = memory.swept(lane).find(alloc).or_else(|| {
            // What no region could ever hold need not empty everybody's caches.
            memory.find(|region| region.is_as_large_as(layout.size()).then_some(()))?;
            self.trim();
            memory.find(alloc)
        });
        found.inspect(|&at| watch::allocated(at, layout.size().next_multiple_of(UNIT), zeroed))
    }

    /// Returns whether the caller's cache keeps a run there.
    fn keeps_run(self, at: NonNull<u8>) -> bool {
        KeptRuns::ON && self.with_cache(|cache| cache.keeps_run(at)) == Some(true)
    }

    #[cold]
    fn free_run(self, at: NonNull<u8>, layout: Layout) {
        if !self.try_free_run(at, layout.size(), &(0..0)) {
            self.memory().refuse();
        }
    }

    /// Frees a run, of which some bytes are `zero`: to the caller's cache, unless that has no room. Returns whether there
    /// was one, which the cache does not keep already.
    fn try_free_run(self, at: NonNull<u8>, bytes: usize, zero: &Range<usize>) -> bool {
        let free = |region: &Region<'_>| {
            self.free_run_to_cache(region, at, bytes).unwrap_or_else(|| {
                // Not of what the cache keeps: it does not record that whoever gets that writes to it.
                region.renew(at, zero);
                region.free_held_run(at, bytes, self.lane())
            })
        };
        let is_freed = self.memory().at(at, free) == Some(true);
        self.give_back_idle();
        is_freed
    }

    /// Frees a run to the caller's cache. Returns `None` if the cache does not keep it, and otherwise whether it did not
    /// keep it already.
    fn free_run_to_cache(self, region: &Region<'_>, at: NonNull<u8>, bytes: usize) -> Option<bool> {
        if !KeptRuns::ON || bytes <= LARGEST {
            return None;
        }
        self.claim_cache();
        let (memory, lane) = (self.memory(), self.lane());
        self.with_cache(|cache| cache.free_run(at, bytes, region, &memory, lane)).flatten()
    }

    fn resize_run(self, at: NonNull<u8>, from: usize, to: usize) -> bool {
        // The cache hands it out as long as it was.
        if self.keeps_run(at) {
            return false;
        }
        let lane = self.lane();
        let resize = |region: &Region<'_>| region.resize_run(at, from, to, lane);
        self.memory().at(at, resize) == Some(true)
    }
}

impl<'h, O: Operations<'h>> OfRuns<'h> for O {}
