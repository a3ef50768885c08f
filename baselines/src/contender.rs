//! The table of everything that can be measured.

use std::sync::atomic::AtomicU64;

use nbbs::Buddy;
use testkit::BackEnd;

use crate::buddy_sl::{self, BuddySl};
use crate::c_interface::CInterface;
use crate::cached::with_nbbs_cached;
use crate::frame::{self, LockedFrames};
use crate::free_list::{self, Locked, Mutexed, Tagged, Untagged};
use crate::heap::Heap;
use crate::heap::table::HEAPS;
use crate::lines::Lines;
use crate::linux::{self, Linux, LinuxPcp};
use crate::paper::{self, Nb1, Nb4, Sl1, Sl4};
use crate::pool::{Pool, Units};
use crate::workshop::{self, BitmapTree, ListLinked, ListVec, TreeLinked, TreeVec};

/// Makes a fresh allocator for so many units and lends it to the visitor.
pub type WithBackEnd = fn(u64, &mut dyn FnMut(&dyn BackEnd));

/// Makes a fresh pool of so many slots and lends it to the visitor.
pub type WithPool = fn(u64, &mut dyn FnMut(&dyn Pool));

/// Makes a fresh heap of so many bytes and lends it to the visitor.
pub type WithHeap = fn(u64, &mut dyn FnMut(&dyn Heap));

/// How to make a fresh one, by kind of allocator.
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
    /// What rows and options call it.
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
    /// What `--allocators` calls it.
    pub name: &'static str,
    /// What it was built after.
    pub source: &'static str,
    /// Whether it is meant never to hand out a unit twice. Faithful copies of broken systems are not.
    pub safe: bool,
    /// Whether each lane keeps free blocks to itself, in front of what all share.
    pub private_caches: bool,
    /// The most units that it takes; slots of a pool, bytes of a heap.
    pub max_units: u64,
    /// How to make a fresh one.
    pub build: Build,
}

/// What sound back-ends behind a lock have in common.
const fn locked(max_units: u64, build: WithBackEnd) -> Contender {
    let build = Build::BackEnd(build);
    Contender { name: "", source: "", safe: true, private_caches: false, max_units, build }
}

/// Everything that can be measured, `nbbs` first.
pub static CONTENDERS: &[Contender] = &[
    Contender {
        name: "nbbs",
        source: "this project",
        safe: true,
        private_caches: false,
        max_units: nbbs::MAX_UNITS,
        build: Build::BackEnd(with_nbbs),
    },
    Contender {
        name: "nbbs-c",
        source: "this project, through nbbs.h",
        safe: true,
        private_caches: false,
        max_units: nbbs::MAX_UNITS,
        build: Build::BackEnd(|units, visit| visit(&CInterface::new(units))),
    },
    Contender {
        name: "nbbs-cached",
        source: "this project, behind caches of orders 0 to 3 and 9; PRIVATE CACHES",
        safe: true,
        private_caches: true,
        max_units: nbbs::MAX_UNITS,
        build: Build::BackEnd(with_nbbs_cached),
    },
    Contender {
        name: "linux",
        source: "mm/page_alloc.c of Linux 6.18: a free list per order, orders 0 to 10, under a spin lock",
        safe: true,
        private_caches: false,
        max_units: linux::MAX_UNITS,
        build: Build::BackEnd(|units, visit| visit(&Linux::new(units, linux::MAX_ORDER))),
    },
    Contender {
        name: "linux-pcp",
        source: "mm/page_alloc.c of Linux 6.18: the same behind per-CPU page lists, orders 0 to 3 and 9; PRIVATE CACHES",
        private_caches: true,
        ..locked(linux::MAX_UNITS, |units, visit| visit(&LinuxPcp::new(units, linux::MAX_ORDER)))
    },
    Contender {
        name: "nb1",
        source: "R. Marotta et al., 2018, Algorithms 1 to 4: non-blocking, 1 level per word; UNSAFE",
        safe: false,
        private_caches: false,
        max_units: paper::MAX_UNITS,
        build: Build::BackEnd(|units, visit| visit(&<Nb1>::new(units, paper::MAX_ORDER))),
    },
    Contender {
        name: "nb4",
        source: "R. Marotta et al., 2018, section III-D: non-blocking, 4 levels per word; UNSAFE",
        safe: false,
        private_caches: false,
        max_units: paper::MAX_UNITS,
        build: Build::BackEnd(|units, visit| visit(&<Nb4>::new(units, paper::MAX_ORDER))),
    },
    Contender {
        name: "sl1",
        source: "R. Marotta et al., 2018, section IV: the 1-level buddy, a spin lock per attempt",
        safe: true,
        private_caches: false,
        max_units: paper::MAX_UNITS,
        build: Build::BackEnd(|units, visit| visit(&<Sl1>::new(units, paper::MAX_ORDER))),
    },
    Contender {
        name: "sl4",
        source: "R. Marotta et al., 2018, section IV: the 4-level buddy, a spin lock per attempt",
        safe: true,
        private_caches: false,
        max_units: paper::MAX_UNITS,
        build: Build::BackEnd(|units, visit| visit(&<Sl4>::new(units, paper::MAX_ORDER))),
    },
    Contender {
        name: "buddy-sl",
        source: "github.com/cloudwu/buddy, which the paper compares with: an array tree, a spin lock",
        safe: true,
        private_caches: false,
        max_units: buddy_sl::MAX_UNITS,
        build: Build::BackEnd(|units, visit| visit(&BuddySl::new(units))),
    },
    Contender {
        name: "list-vec",
        source: "Buddy Allocator Workshop: a vector per order of all blocks; its frees, which search the list, are ours; a spin lock",
        ..locked(workshop::MAX_UNITS, |units, visit| {
            visit(&ListVec::new(units, workshop::MAX_ORDER))
        })
    },
    Contender {
        name: "list-linked",
        source: "Buddy Allocator Workshop: a doubly linked list per order of all blocks; its frees, which search the list, are ours; a spin lock",
        ..locked(workshop::MAX_UNITS, |units, visit| {
            visit(&ListLinked::new(units, workshop::MAX_ORDER))
        })
    },
    Contender {
        name: "rbtree-vec",
        source: "Buddy Allocator Workshop: a red-black tree of all blocks, free ones in vectors; its frees are ours; a spin lock",
        ..locked(workshop::MAX_UNITS, |units, visit| {
            visit(&TreeVec::new(units, workshop::MAX_ORDER))
        })
    },
    Contender {
        name: "rbtree-linked",
        source: "Buddy Allocator Workshop: a red-black tree of all blocks, free ones in linked lists; its frees are ours; a spin lock",
        ..locked(workshop::MAX_UNITS, |units, visit| {
            visit(&TreeLinked::new(units, workshop::MAX_ORDER))
        })
    },
    Contender {
        name: "bitmap-tree",
        source: "Buddy Allocator Workshop: the largest free order below each node of a tree, a spin lock",
        ..locked(workshop::MAX_UNITS, |units, visit| {
            visit(&BitmapTree::new(units, workshop::MAX_ORDER))
        })
    },
    Contender {
        name: "frame-allocator",
        source: "crate buddy_system_allocator, FrameAllocator: an ordered set per order, a spin lock",
        ..locked(frame::MAX_UNITS, |units, visit| {
            visit(&LockedFrames::new(units, frame::MAX_ORDER))
        })
    },
];

/// Pools of slots of one size.
pub const POOLS: &[Contender] = &[
    Contender {
        name: "arena-untagged",
        source: "F. D'Agostino, 2022, lock_free::arena_allocator: an untagged free list; UNSAFE",
        safe: false,
        private_caches: false,
        max_units: free_list::MAX_SLOTS,
        build: Build::Pool(|slots, visit| visit(&<Untagged>::new(slots))),
    },
    Contender {
        name: "arena-tagged",
        source: "F. D'Agostino, 2022, lock_free::arena_allocator, with a tag beside the head",
        safe: true,
        private_caches: false,
        max_units: free_list::MAX_SLOTS,
        build: Build::Pool(|slots, visit| visit(&<Tagged>::new(slots))),
    },
    Contender {
        name: "arena-sl",
        source: "F. D'Agostino, 2022, core::arena_allocator: a free list, a spin lock",
        safe: true,
        private_caches: false,
        max_units: free_list::MAX_SLOTS,
        build: Build::Pool(|slots, visit| visit(&<Locked>::new(slots))),
    },
    Contender {
        name: "arena-mutex",
        source: "F. D'Agostino, 2022, core::arena_allocator, with std::mutex for its spin lock",
        safe: true,
        private_caches: false,
        max_units: free_list::MAX_SLOTS,
        build: Build::Pool(|slots, visit| visit(&Mutexed::new(slots))),
    },
];

/// The contender of that name, of any kind.
#[must_use]
pub fn find(name: &str) -> Option<&'static Contender> {
    CONTENDERS.iter().chain(POOLS).chain(HEAPS).find(|contender| contender.name == name)
}

impl Contender {
    /// What it allocates.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.build {
            Build::BackEnd(_) => Kind::BackEnd,
            Build::Pool(_) => Kind::Pool,
            Build::Heap(_) => Kind::Heap,
        }
    }

    /// The name as a user should see it: with a warning, unless it is safe.
    #[must_use]
    pub fn label(&self) -> String {
        if self.safe { self.name.to_owned() } else { format!("{} (UNSAFE)", self.name) }
    }

    /// Makes a fresh allocator of `units` units, lends it to `visit` and returns what `visit` did.
    ///
    /// A pool has blocks of order 0 only. All bookkeeping has been written to before `visit` is called,
    /// so no page fault falls into a measurement.
    ///
    /// ```
    /// let linux = baselines::find("linux").unwrap();
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
            Build::Heap(_) => panic!("{} is a heap, which has no units", self.name),
        }
        result.expect("a contender calls its visitor once")
    }

    /// Makes a fresh heap of `bytes` bytes, lends it to `visit` and returns what `visit` did. Heaps that get
    /// their memory themselves take no notice of the size.
    ///
    /// # Panics
    /// If `bytes` is too little for its bookkeeping or above `max_units`, or if it is no heap.
    pub fn with_heap<R>(&self, bytes: u64, visit: impl FnOnce(&dyn Heap) -> R) -> R {
        let Build::Heap(build) = self.build else { panic!("{} is no heap", self.name) };
        let mut visit = Some(visit);
        let mut result = None;
        build(bytes, &mut |heap| result = visit.take().map(|visit| visit(heap)));
        result.expect("a contender calls its visitor once")
    }
}

fn with_nbbs(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    let lines = Lines::<AtomicU64>::zeroed(nbbs::metadata_words(units));
    visit(&Buddy::new(lines.words(), units).expect("metadata of the size that was asked for"));
}
