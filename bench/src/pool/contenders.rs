//! The table of the allocators that are measured.

use std::sync::atomic::{AtomicU64, Ordering};

use baselines::free_list::{Locked, Mutexed, Tagged, Untagged};
use nbbs_pool::sync::Word;
use nbbs_pool::{Config, Global, Local, Pool, PoolBox, SinglePool};

use super::course::{Figure, ObjectPlan};
use super::subject::{Item, Subject};

/// An allocator that can be measured.
pub struct Contender {
    /// Its name in `--allocators`.
    pub name: &'static str,
    /// Whether it is meant never to hand out a slot twice.
    pub safe: bool,
    /// Whether each thread keeps free objects to itself, in front of the shared memory.
    pub private_caches: bool,
    /// Whether several threads can use it.
    pub shared: bool,
    /// Measures it.
    pub run: fn(&ObjectPlan) -> Figure,
}

const fn contender(name: &'static str, run: fn(&ObjectPlan) -> Figure) -> Contender {
    Contender { name, safe: true, private_caches: false, shared: true, run }
}

const fn cached(name: &'static str, run: fn(&ObjectPlan) -> Figure) -> Contender {
    Contender { private_caches: true, ..contender(name, run) }
}

const fn alone(name: &'static str, run: fn(&ObjectPlan) -> Figure) -> Contender {
    Contender { shared: false, ..contender(name, run) }
}

/// Everything that can be measured, ours first.
pub static CONTENDERS: &[Contender] = &[
    cached("nbbs-pool", |plan| plan.run(&Locals(Pool::<Item>::with_config(config())))),
    contender("nbbs-pool-box", |plan| plan.run(&Boxes(Pool::with_config(config())))),
    contender("nbbs-pool-pointer", |plan| plan.run(&Pointers(Pool::with_config(config())))),
    alone("nbbs-pool-single", |plan| {
        plan.run_alone(&Locals(SinglePool::with_words(Global, config())))
    }),
    cached("system", |plan| plan.run(&System)),
    #[cfg(feature = "native")]
    cached("mimalloc", |plan| plan.run(&native::Mimalloc)),
    Contender {
        safe: false,
        ..contender("freelist-untagged", |plan| {
            plan.run(&Slots::new(plan, Untagged::<AtomicU64>::new))
        })
    },
    contender("freelist-tagged", |plan| plan.run(&Slots::new(plan, Tagged::<AtomicU64>::new))),
    contender("freelist-sl", |plan| plan.run(&Slots::new(plan, Locked::<AtomicU64>::new))),
    contender("freelist-mutex", |plan| plan.run(&Slots::new(plan, Mutexed::new))),
    #[cfg(feature = "suite")]
    contender("sharded-slab", |plan| plan.run(&crates::Sharded(sharded_slab::Slab::new()))),
    #[cfg(feature = "suite")]
    alone("slab", |plan| plan.run_alone(&crates::Slab)),
    #[cfg(feature = "suite")]
    alone("typed-arena", |plan| plan.run_alone(&crates::Typed)),
    alone("nothing", |plan| plan.run_alone(&Nothing)),
];

fn config() -> Config {
    Config::new().chunk_size(4096)
}

/// Our pool, through a local for each thread.
struct Locals<W: Word>(Pool<Item, Global, W>);

impl<W: Word + 'static> Subject for Locals<W> {
    type Object<'s> = PoolBox<'s, Item, W>;
    type Lane<'s> = Local<'s, Item, Global, W>;

    fn lane(&self) -> Self::Lane<'_> {
        self.0.local()
    }

    #[inline(always)]
    fn alloc<'s>(&'s self, lane: &mut Self::Lane<'s>, value: u64) -> Option<Self::Object<'s>> {
        lane.alloc(Item([value; 6])).ok()
    }

    #[inline(always)]
    fn free<'s>(&'s self, lane: &mut Self::Lane<'s>, object: Self::Object<'s>) -> u64 {
        let value = object.0[0];
        lane.free(object);
        value
    }
}

/// Our pool, with boxes that free themselves.
struct Boxes(Pool<Item>);

impl Subject for Boxes {
    type Object<'s> = PoolBox<'s, Item>;
    type Lane<'s> = ();

    fn lane(&self) {}

    fn alloc<'s>(&'s self, (): &mut (), value: u64) -> Option<Self::Object<'s>> {
        self.0.alloc_box(Item([value; 6])).ok()
    }

    fn free<'s>(&'s self, (): &mut (), object: Self::Object<'s>) -> u64 {
        object.0[0]
    }
}

/// Our pool, with pointers that are checked.
struct Pointers(Pool<Item>);

/// A pointer to an item, by its address.
struct Pointer(std::ptr::NonNull<Item>);

// SAFETY: the item is Send, and the pointer is its only one.
#[allow(unsafe_code)]
unsafe impl Send for Pointer {}

impl Subject for Pointers {
    type Object<'s> = Pointer;
    type Lane<'s> = ();

    fn lane(&self) {}

    fn alloc(&self, (): &mut (), value: u64) -> Option<Pointer> {
        self.0.alloc(Item([value; 6])).ok().map(Pointer)
    }

    fn free(&self, (): &mut (), object: Pointer) -> u64 {
        self.0.take(object.0).map_or(u64::MAX, |item| item.0[0])
    }
}

/// The system's heap, which `new` and `delete` use.
struct System;

impl Subject for System {
    type Object<'s> = Box<Item>;
    type Lane<'s> = ();

    fn lane(&self) {}

    #[inline(always)]
    fn alloc(&self, (): &mut (), value: u64) -> Option<Box<Item>> {
        Some(Box::new(Item([value; 6])))
    }

    #[inline(always)]
    fn free(&self, (): &mut (), object: Box<Item>) -> u64 {
        std::hint::black_box(object).0[0]
    }
}

/// A pool of numbered slots, and items beside it.
struct Slots<P> {
    pool: P,
    items: Box<[[AtomicU64; 6]]>,
}

impl<P> Slots<P> {
    /// Creates a pool with enough slots for the plan.
    fn new(plan: &ObjectPlan, pool: fn(u64) -> P) -> Self {
        let items = (0..plan.slots()).map(|_| [const { AtomicU64::new(0) }; 6]).collect();
        Self { pool: pool(plan.slots()), items }
    }
}

impl<P: baselines::Pool + 'static> Subject for Slots<P> {
    type Object<'s> = u64;
    type Lane<'s> = ();

    fn lane(&self) {}

    #[inline(always)]
    fn alloc(&self, (): &mut (), value: u64) -> Option<u64> {
        let slot = self.pool.alloc()?;
        // Relaxed: in place of plain stores, which an unsafe pool may make race.
        self.items[slot as usize].iter().for_each(|word| word.store(value, Ordering::Relaxed));
        Some(slot)
    }

    #[inline(always)]
    fn free(&self, (): &mut (), slot: u64) -> u64 {
        let value = self.items[slot as usize][0].load(Ordering::Relaxed);
        self.pool.free(slot);
        value
    }
}

/// The loop without an allocator.
struct Nothing;

impl Subject for Nothing {
    type Object<'s> = Item;
    type Lane<'s> = ();

    fn lane(&self) {}

    #[inline(always)]
    fn alloc(&self, (): &mut (), value: u64) -> Option<Item> {
        Some(Item([value; 6]))
    }

    #[inline(always)]
    fn free(&self, (): &mut (), object: Item) -> u64 {
        object.0[0]
    }
}

/// Slabs and an arena of crates.io.
#[cfg(feature = "suite")]
mod crates {
    use super::super::subject::{Item, Subject};

    /// The sharded slab, by key.
    pub struct Sharded(pub sharded_slab::Slab<Item>);

    impl Subject for Sharded {
        type Object<'s> = usize;
        type Lane<'s> = ();

        fn lane(&self) {}

        fn alloc(&self, (): &mut (), value: u64) -> Option<usize> {
            self.0.insert(Item([value; 6]))
        }

        fn free(&self, (): &mut (), key: usize) -> u64 {
            self.0.take(key).map_or(u64::MAX, |item| item.0[0])
        }
    }

    /// The slab, by key, for one thread.
    pub struct Slab;

    impl Subject for Slab {
        type Object<'s> = usize;
        type Lane<'s> = slab::Slab<Item>;

        fn lane(&self) -> slab::Slab<Item> {
            slab::Slab::new()
        }

        #[inline(always)]
        fn alloc(&self, slab: &mut slab::Slab<Item>, value: u64) -> Option<usize> {
            Some(slab.insert(Item([value; 6])))
        }

        #[inline(always)]
        fn free(&self, slab: &mut slab::Slab<Item>, key: usize) -> u64 {
            slab.remove(key).0[0]
        }
    }

    /// The arena that never frees single items: an arena for 2^20 items, then another.
    pub struct Typed;

    /// The number of items in a typed arena before it is dropped as a whole.
    const TYPED_ITEMS: usize = 1 << 20;

    impl Subject for Typed {
        type Object<'s> = u64;
        type Lane<'s> = (typed_arena::Arena<Item>, usize);

        fn lane(&self) -> Self::Lane<'_> {
            (typed_arena::Arena::new(), 0)
        }

        fn alloc(&self, (arena, items): &mut Self::Lane<'_>, value: u64) -> Option<u64> {
            *items += 1;
            if *items > TYPED_ITEMS {
                (*arena, *items) = (typed_arena::Arena::new(), 1);
            }
            Some(arena.alloc(Item([value; 6])).0[0])
        }

        fn free(&self, _lane: &mut Self::Lane<'_>, value: u64) -> u64 {
            value
        }
    }
}

#[cfg(feature = "native")]
mod native {
    use std::alloc::{GlobalAlloc, Layout};
    use std::ptr::NonNull;

    use mimalloc::MiMalloc;

    use super::super::subject::{Item, Subject};

    /// mimalloc's heap, called by name.
    pub struct Mimalloc;

    /// An item on it.
    pub struct Owned(NonNull<Item>);

    // SAFETY: the item is Send, and the pointer is its only one.
    #[allow(unsafe_code)]
    unsafe impl Send for Owned {}

    impl Subject for Mimalloc {
        type Object<'s> = Owned;
        type Lane<'s> = ();

        fn lane(&self) {}

        #[inline(always)]
        #[allow(unsafe_code)]
        fn alloc(&self, (): &mut (), value: u64) -> Option<Owned> {
            // SAFETY: the layout's size is not zero.
            let item = NonNull::new(unsafe { MiMalloc.alloc(Layout::new::<Item>()) })?.cast();
            // SAFETY: the block has the layout of an item, and is ours.
            unsafe { item.write(Item([value; 6])) };
            Some(Owned(item))
        }

        #[inline(always)]
        #[allow(unsafe_code)]
        fn free(&self, (): &mut (), object: Owned) -> u64 {
            // SAFETY: the item is complete, and ours.
            let value = unsafe { object.0.as_ref() }.0[0];
            // SAFETY: the block came from `alloc` with this layout, and this is its end.
            unsafe { MiMalloc.dealloc(object.0.cast().as_ptr(), Layout::new::<Item>()) };
            value
        }
    }
}
