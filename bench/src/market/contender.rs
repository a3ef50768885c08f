//! The table of everything that can be measured.

use std::sync::atomic::AtomicU64;

use baselines::buddy_sl::{self, BuddySl};
use baselines::free_list::{self, Locked, Mutexed, Tagged, Untagged};
use baselines::linux::{self, Linux, LinuxPcp};
use baselines::paper::{self, Nb1, Nb4, Sl1, Sl4};
use baselines::workshop::{self, BitmapTree, ListLinked, ListVec, TreeLinked, TreeVec};
use baselines::{Pool, Units};
use nbbs::sync::Word;
use testkit::BackEnd;

use super::HEAPS;
#[cfg(feature = "suite")]
use super::c_interface::CInterface;
use super::cached::with_nbbs_cached;
#[cfg(feature = "suite")]
use super::frame::{self, LockedFrames};
#[cfg(feature = "suite")]
use super::frame_alloc::{self, FrameAlloc};
use super::heap::Heap;
use crate::counted::{ByOperation, Counted};
use crate::lines::ArenaWords;

/// Creates a fresh allocator of a number of units and lends it to the visitor.
pub type WithBackEnd = fn(u64, &mut dyn FnMut(&dyn BackEnd));

/// Creates a fresh pool of a number of slots and lends it to the visitor.
pub type WithPool = fn(u64, &mut dyn FnMut(&dyn Pool));

/// Creates a fresh heap of a number of bytes and lends it to the visitor.
pub type WithHeap = fn(u64, &mut dyn FnMut(&dyn Heap));

/// How to create a fresh allocator, by kind.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Build {
    /// Blocks of units, by unit index.
    BackEnd(WithBackEnd),
    /// Slots of one size, by number.
    Pool(WithPool),
    /// Memory by size and alignment.
    Heap(WithHeap),
}

/// What an allocator allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Blocks of units.
    BackEnd,
    /// Slots of one size.
    Pool,
    /// Memory by size and alignment.
    Heap,
}

impl Kind {
    /// Returns its name in rows and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BackEnd => "backend",
            Self::Pool => "pool",
            Self::Heap => "heap",
        }
    }
}

/// An allocator that can be tested, replayed on and measured.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// Its name in `--allocators`.
    pub name: &'static str,
    /// Its origin: the paper, program or crate that it follows.
    pub source: &'static str,
    /// Whether it is meant never to hand out a unit twice. Faithful copies of broken systems are not.
    pub safe: bool,
    /// Whether each lane keeps free blocks to itself, in front of the shared memory.
    pub private_caches: bool,
    /// The least units that it can manage; for a pool slots, for a heap bytes.
    pub min_units: u64,
    /// The most units that it can manage; for a pool slots, for a heap bytes.
    pub max_units: u64,
    /// How to create a fresh one.
    pub build: Build,
    /// How to create one on words that count, if it works on any words.
    pub counted: Option<WithBackEnd>,
}

/// Describes a back-end that is meant never to hand out a unit twice, and keeps nothing for single lanes.
const fn back_end(
    name: &'static str,
    source: &'static str,
    max_units: u64,
    build: WithBackEnd,
) -> Contender {
    Contender {
        name,
        source,
        safe: true,
        private_caches: false,
        min_units: 1,
        max_units,
        build: Build::BackEnd(build),
        counted: None,
    }
}

/// Describes such a pool.
const fn pool(name: &'static str, source: &'static str, build: WithPool) -> Contender {
    let build = Build::Pool(build);
    Contender { build, ..back_end(name, source, free_list::MAX_SLOTS, |_, _| {}) }
}

/// Everything that can be measured, `nbbs` first.
pub static CONTENDERS: &[Contender] = &[
    Contender {
        counted: Some(with_nbbs::<Counted>),
        ..back_end("nbbs", "this project", nbbs::MAX_UNITS, with_nbbs::<AtomicU64>)
    },
    #[cfg(feature = "suite")]
    back_end("nbbs-c", "this project, through nbbs.h", nbbs::MAX_UNITS, |units, visit| {
        visit(&CInterface::new(units));
    }),
    Contender {
        private_caches: true,
        counted: Some(with_nbbs_cached::<Counted>),
        ..back_end(
            "nbbs-cached",
            "this project, behind caches of orders 0 to 9; PRIVATE CACHES",
            nbbs::MAX_UNITS,
            with_nbbs_cached::<AtomicU64>,
        )
    },
    back_end(
        "linux",
        "mm/page_alloc.c of Linux 6.18: a free list per order, orders 0 to 10, under a spin lock",
        linux::MAX_UNITS,
        |units, visit| visit(&Linux::new(units, linux::MAX_ORDER)),
    ),
    Contender {
        private_caches: true,
        ..back_end(
            "linux-pcp",
            "mm/page_alloc.c of Linux 6.18: the same behind per-CPU page lists, orders 0 to 3 and 9; at 1 GiB they move 63 frames at a time, more while a CPU only allocates or only frees, and each of 2 CPUs keeps 643 at first, and a batch more after each refill, up to 16,384; PRIVATE CACHES",
            linux::MAX_UNITS,
            |units, visit| visit(&LinuxPcp::new(units, linux::MAX_ORDER)),
        )
    },
    Contender {
        safe: false,
        counted: Some(|units, visit| visit(&Nb1::<Counted>::new(units, paper::MAX_ORDER))),
        ..back_end(
            "nb1",
            "R. Marotta et al., 2018, Algorithms 1 to 4: non-blocking, 1 level per word; UNSAFE",
            paper::MAX_UNITS,
            |units, visit| visit(&<Nb1>::new(units, paper::MAX_ORDER)),
        )
    },
    Contender {
        safe: false,
        counted: Some(|units, visit| visit(&Nb4::<Counted>::new(units, paper::MAX_ORDER))),
        ..back_end(
            "nb4",
            "R. Marotta et al., 2018, section III-D: non-blocking, 4 levels per word; UNSAFE",
            paper::MAX_UNITS,
            |units, visit| visit(&<Nb4>::new(units, paper::MAX_ORDER)),
        )
    },
    Contender {
        counted: Some(|units, visit| visit(&Sl1::<Counted>::new(units, paper::MAX_ORDER))),
        ..back_end(
            "sl1",
            "R. Marotta et al., 2018, section IV: the 1-level buddy, a spin lock per attempt",
            paper::MAX_UNITS,
            |units, visit| visit(&<Sl1>::new(units, paper::MAX_ORDER)),
        )
    },
    Contender {
        counted: Some(|units, visit| visit(&Sl4::<Counted>::new(units, paper::MAX_ORDER))),
        ..back_end(
            "sl4",
            "R. Marotta et al., 2018, section IV: the 4-level buddy, a spin lock per attempt",
            paper::MAX_UNITS,
            |units, visit| visit(&<Sl4>::new(units, paper::MAX_ORDER)),
        )
    },
    back_end(
        "buddy-sl",
        "github.com/cloudwu/buddy, with which the paper compares: an array tree, a spin lock",
        buddy_sl::MAX_UNITS,
        |units, visit| visit(&BuddySl::new(units)),
    ),
    back_end(
        "list-vec",
        "Buddy Allocator Workshop: a vector per order of all blocks; the frees, which search the list, are ours; a spin lock",
        workshop::MAX_UNITS,
        |units, visit| visit(&ListVec::new(units, workshop::MAX_ORDER)),
    ),
    back_end(
        "list-linked",
        "Buddy Allocator Workshop: a doubly linked list per order of all blocks; the frees, which search the list, are ours; a spin lock",
        workshop::MAX_UNITS,
        |units, visit| visit(&ListLinked::new(units, workshop::MAX_ORDER)),
    ),
    back_end(
        "rbtree-vec",
        "Buddy Allocator Workshop: a red-black tree of all blocks, free ones in vectors; the frees are ours; a spin lock",
        workshop::MAX_UNITS,
        |units, visit| visit(&TreeVec::new(units, workshop::MAX_ORDER)),
    ),
    back_end(
        "rbtree-linked",
        "Buddy Allocator Workshop: a red-black tree of all blocks, free ones in linked lists; the frees are ours; a spin lock",
        workshop::MAX_UNITS,
        |units, visit| visit(&TreeLinked::new(units, workshop::MAX_ORDER)),
    ),
    back_end(
        "bitmap-tree",
        "Buddy Allocator Workshop: the largest free order below each node of a tree, a spin lock",
        workshop::MAX_UNITS,
        |units, visit| visit(&BitmapTree::new(units, workshop::MAX_ORDER)),
    ),
    #[cfg(feature = "suite")]
    back_end(
        "frame-allocator",
        "crate buddy_system_allocator, FrameAllocator: an ordered set per order, a spin lock",
        frame::MAX_UNITS,
        |units, visit| visit(&LockedFrames::new(units, frame::MAX_ORDER)),
    ),
    #[cfg(feature = "suite")]
    back_end(
        "frame-alloc",
        "crate frame-alloc 0.1: a bitmap per order with a summary, lock-free; its refusals may be spurious",
        frame_alloc::MAX_UNITS,
        |units, visit| visit(&FrameAlloc::core(units)),
    ),
    #[cfg(feature = "suite")]
    Contender {
        private_caches: true,
        ..back_end(
            "frame-alloc-depot",
            "crate frame-alloc 0.1: the same behind 128 frames for each CPU, and 512 for all, each behind a lock; PRIVATE CACHES",
            frame_alloc::MAX_UNITS,
            |units, visit| visit(&FrameAlloc::depot(units)),
        )
    },
];

/// Pools of slots of one size.
pub const POOLS: &[Contender] = &[
    Contender {
        safe: false,
        ..pool(
            "freelist-untagged",
            "F. D'Agostino, 2022, lock_free::arena_allocator: an untagged free list, its links in an array, not beside the objects as there; UNSAFE",
            |slots, visit| visit(&<Untagged>::new(slots)),
        )
    },
    pool(
        "freelist-tagged",
        "F. D'Agostino, 2022, lock_free::arena_allocator, with a tag beside the head; its links in an array, not beside the objects as there",
        |slots, visit| visit(&<Tagged>::new(slots)),
    ),
    pool(
        "freelist-sl",
        "F. D'Agostino, 2022, core::arena_allocator: a free list, a spin lock; its links in an array, not beside the objects as there",
        |slots, visit| visit(&<Locked>::new(slots)),
    ),
    pool(
        "freelist-mutex",
        "F. D'Agostino, 2022, core::arena_allocator, with std::mutex in place of its spin lock; its links in an array, not beside the objects as there",
        |slots, visit| visit(&Mutexed::new(slots)),
    ),
];

/// Finds the contender of that name, of any kind.
#[must_use]
pub fn find(name: &str) -> Option<&'static Contender> {
    CONTENDERS.iter().chain(POOLS).chain(HEAPS).find(|contender| contender.name == name)
}

impl Contender {
    /// Returns what it allocates.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.build {
            Build::BackEnd(_) => Kind::BackEnd,
            Build::Pool(_) => Kind::Pool,
            Build::Heap(_) => Kind::Heap,
        }
    }

    /// Returns the name as a user should see it: with a warning, unless it is safe.
    #[must_use]
    pub fn label(&self) -> String {
        if self.safe { self.name.to_owned() } else { format!("{} (UNSAFE)", self.name) }
    }

    /// Creates a fresh allocator of `units` units, lends it to `visit` and returns the result of `visit`.
    ///
    /// A pool only has blocks of order 0. All bookkeeping has been written to before `visit` is called, so no page
    /// fault falls into a measurement.
    ///
    /// ```
    /// let linux = nbbs_bench::market::find("linux").unwrap();
    /// assert_eq!(linux.with_back_end(64, |allocator| allocator.units()), 64);
    /// ```
    ///
    /// # Panics
    /// If `units` is 0 or above `max_units`, or if it is a heap.
    pub fn with_back_end<R>(&self, units: u64, visit: impl FnOnce(&dyn BackEnd) -> R) -> R {
        let mut visit = Some(visit);
        let mut result = None;
        let mut lend = |allocator: &dyn BackEnd| {
            result = visit.take().map(|visit| visit(allocator));
        };
        match self.build {
            Build::BackEnd(build) => build(units, &mut lend),
            Build::Pool(build) => build(units, &mut |pool| lend(&Units(pool))),
            Build::Heap(_) => panic!("{} is a heap and has no units", self.name),
        }
        result.expect("a contender calls its visitor once")
    }

    /// Does the same on words that count, if the contender can: [`count`](crate::counted::count) returns what an
    /// operation did to them.
    pub(crate) fn with_counted<R>(
        &self,
        units: u64,
        visit: impl FnOnce(&dyn BackEnd) -> R,
    ) -> Option<R> {
        let (mut visit, mut result) = (Some(visit), None);
        self.counted?(units, &mut |back_end| {
            result = visit.take().map(|visit| visit(&ByOperation(back_end)));
        });
        result
    }

    /// Creates a fresh heap of `bytes` bytes, lends it to `visit` and returns the result of `visit`. Heaps that get
    /// their memory themselves ignore the size.
    ///
    /// # Panics
    /// If `bytes` is below `min_units` or above `max_units`, or if it is not a heap.
    pub fn with_heap<R>(&self, bytes: u64, visit: impl FnOnce(&dyn Heap) -> R) -> R {
        let Build::Heap(build) = self.build else { panic!("{} is not a heap", self.name) };
        let mut visit = Some(visit);
        let mut result = None;
        build(bytes, &mut |heap| result = visit.take().map(|visit| visit(heap)));
        result.expect("a contender calls its visitor once")
    }
}

fn with_nbbs<W: Word + From<u64>>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    visit(&ArenaWords::<W>::new(units).buddy());
}
