//! Physical memory: the arena of all frames, and who holds which.
//!
//! ```text
//! early    memory before there is an allocator     owners    the owner map
//! held     blocks that are allocated, judged       lock      the baseline's lock (feature `locked`)
//! ```

mod early;
mod held;
#[cfg(feature = "locked")]
pub mod lock;
mod owners;

use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64};

use nbbs::{AllocError, Buddy, Caches, Caps, FreeError, Stats, cache_words, metadata_words};
use nbbs_adapters::{FRAME_SIZE, Region};
use spin::Once;

use crate::{Boot, arch};
use early::Early;
pub use held::Held;
pub use owners::{Context, Finding, Holder, Owners};

/// All memory, from address 0 to the end of the last usable stretch: unit `n` of the arena is the frame at `n * 4096`.
pub struct Memory {
    caches: Caches<'static>,
    owners: Owners,
    /// Bytes of the arena's words.
    metadata_size: usize,
    /// The first address of the arena's words.
    metadata_start: u64,
    /// Usable addresses that the arena does not have at boot.
    kept_back: Range<u64>,
}

static MEMORY: Once<Memory> = Once::new();

/// Returns what [`set_up`] has set up.
pub fn memory() -> &'static Memory {
    MEMORY.get().expect("the boot CPU sets memory up before anything else")
}

/// Builds the arena from what the machine says. Everything in it is reserved except the usable frames that nobody uses.
pub fn set_up(boot: &Boot) {
    let usable = boot.map.iter().filter(|stretch| stretch.is_usable);
    let mut early = Early::new(usable.map(|stretch| stretch.addresses.clone()));
    let frames = early.end() / FRAME_SIZE;
    // Maps overlap: memory that one entry calls unusable is unusable.
    for stretch in boot.map.iter().filter(|stretch| !stretch.is_usable) {
        early.without(stretch.addresses.clone());
    }
    // No frame is at a null pointer.
    early.without(0..FRAME_SIZE);
    early.without(boot.image.clone());
    let kept_back = early.keep_back(8, arch::MAP_STEP);

    let words = early.cut::<AtomicU64>(metadata_words(frames));
    let of_caches = early.cut::<AtomicU64>(cache_words(boot.cpus));
    let owners = early.cut::<AtomicU32>(frames as usize);

    let buddy = Buddy::new_reserved(words, frames).expect("so many words were asked for");
    let region = Region::new(buddy, 0).expect("0 is a multiple of everything");
    region.add_map(early.free()).expect("the stretches do not overlap");
    MEMORY.call_once(|| Memory {
        // The default would let the caches of a few CPUs keep half of a small memory.
        caches: Caches::new(buddy, of_caches).with_caps(Caps::for_arena(frames, boot.cpus)),
        owners: Owners::new(owners),
        metadata_size: size_of_val(words),
        metadata_start: (words.as_ptr().addr() - arch::direct(0).addr()) as u64,
        kept_back,
    });
}

impl Memory {
    /// The arena.
    pub fn buddy(&self) -> Buddy<'static> {
        *self.caches.buddy()
    }

    /// The CPUs' caches in front of it.
    pub fn caches(&self) -> &Caches<'static> {
        &self.caches
    }

    /// Who holds which frame.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Where the arena's words begin, and how many bytes they are.
    pub fn metadata(&self) -> (u64, usize) {
        (self.metadata_start, self.metadata_size)
    }

    /// Frames that the arena does not have at boot.
    pub fn kept_back(&self) -> Range<u64> {
        self.kept_back.start / FRAME_SIZE..self.kept_back.end / FRAME_SIZE
    }

    /// What is free, cached, in use and reserved.
    pub fn stats(&self) -> Stats {
        self.caches.stats()
    }

    /// From this CPU's cache and lane. Nothing here moves to another CPU, so its number stays true.
    fn alloc(&self, order: u32) -> Result<u64, AllocError> {
        #[cfg(feature = "locked")]
        let _section = lock::enter();
        let block = self.caches.alloc(arch::cpu_number(), order)?;
        if cfg!(feature = "broken") && block.is_multiple_of(64) {
            let _ = self.caches.free_sized(arch::cpu_number(), block, order);
        }
        Ok(block)
    }

    fn free(&self, frame: u64, order: u32) -> Result<(), FreeError> {
        #[cfg(feature = "locked")]
        let _section = lock::enter();
        self.caches.free_sized(arch::cpu_number(), frame, order)
    }
}
