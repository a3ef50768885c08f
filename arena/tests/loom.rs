//! Under loom: what was done with a slot happens before what its next holder does, on every path by which
//! slots change hands, in every execution of the memory model that loom knows.
#![cfg(not(miri))]

use std::ptr::null_mut;
use std::sync::Arc as StdArc;
use std::sync::atomic::AtomicPtr;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;
use nbbs_arena::sync::{Ordering, Pointer, Word};
use nbbs_arena::{Arena, ArenaBox, Config, Global, Handles, Key};

/// Loom's word.
struct Loom(AtomicU64);

// SAFETY: loom's atomics behave as atomics.
unsafe impl Word for Loom {
    type Pointer<P> = Std<P>;

    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, success, failure)
    }

    fn store_load_fence() {
        fence(Ordering::SeqCst);
    }
}

/// Pointers are outside the model: chunks are there before the threads are.
struct Std<P>(AtomicPtr<P>);

impl<P> Pointer<P> for Std<P> {
    fn null() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    fn load(&self, order: Ordering) -> *mut P {
        self.0.load(order)
    }

    fn compare_exchange(
        &self,
        current: *mut P,
        new: *mut P,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut P, *mut P> {
        self.0.compare_exchange(current, new, success, failure)
    }
}

/// An arena, and beside each slot a cell that loom watches: only who has the slot may touch it.
struct Watched {
    arena: Arena<u64, Global, Loom>,
    first: usize,
    cells: Vec<UnsafeCell<u64>>,
}

// SAFETY: the cells are watched by loom, which fails the test if two threads touch one at once.
unsafe impl Sync for Watched {}
// SAFETY: as above.
unsafe impl Send for Watched {}

impl Watched {
    /// A chunk of so many slots, all free.
    fn new(slots: usize) -> StdArc<Self> {
        let config = Config::new().chunk_size(slots).limit(slots);
        let arena = Arena::with_words(Global, config);
        arena.reserve(slots).unwrap();
        let all: Vec<_> = (0..slots).map(|_| arena.alloc(0).unwrap()).collect();
        let first = all.iter().map(|each| each.as_ptr() as usize).min().unwrap();
        all.into_iter().for_each(|each| arena.free(each).unwrap());
        let cells = (0..slots).map(|_| UnsafeCell::new(0)).collect();
        StdArc::new(Self { arena, first, cells })
    }

    /// What a holder does with its slot.
    fn touch(&self, object: &u64) {
        let slot = (std::ptr::from_ref(object) as usize - self.first) / 8;
        // SAFETY: loom checks that nobody else does the same.
        self.cells[slot].with_mut(|cell| unsafe { *cell += 1 });
    }

    fn box_it(&self) {
        if let Ok(object) = self.arena.alloc_box(1) {
            self.touch(&object);
        }
    }

    fn point_at_it(&self) {
        if let Ok(object) = self.arena.alloc(1) {
            // SAFETY: the object is live, and nobody else has the pointer.
            self.touch(unsafe { object.as_ref() });
            self.arena.free(object).unwrap();
        }
    }

    fn keep_it(&self) {
        let mut local = self.arena.local_of(2);
        if let Ok(object) = local.alloc(1) {
            self.touch(&object);
            local.free(object);
        }
    }
}

fn model(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(test);
}

fn two(slots: usize, one: fn(&Watched), other: fn(&Watched)) {
    model(move || {
        let watched = Watched::new(slots);
        let theirs = StdArc::clone(&watched);
        let thread = thread::spawn(move || other(&theirs));
        one(&watched);
        thread.join().unwrap();
        assert!(watched.arena.is_empty());
        // Whatever the interleaving, no slot was lost to the hints.
        let all: Vec<_> = std::iter::from_fn(|| watched.arena.alloc_box(0).ok()).collect();
        assert_eq!(all.len(), slots);
        all.iter().for_each(|each| watched.touch(each));
    });
}

#[test]
fn boxes_hand_over() {
    two(1, Watched::box_it, Watched::box_it);
}

#[test]
fn pointers_hand_over() {
    two(1, Watched::point_at_it, Watched::box_it);
}

#[test]
fn locals_hand_over() {
    two(2, Watched::keep_it, Watched::keep_it);
}

/// A box that another thread frees.
#[test]
fn a_box_is_freed_elsewhere() {
    model(|| {
        let watched = Watched::new(1);
        let theirs = StdArc::clone(&watched);
        let object = ArenaBox::into_raw(watched.arena.alloc_box(1).unwrap()).as_ptr() as usize;
        let thread = thread::spawn(move || {
            let object = std::ptr::NonNull::new(object as *mut u64).unwrap();
            // SAFETY: it comes from a box of this arena, and is turned back once.
            let object = unsafe { theirs.arena.from_raw(object) };
            theirs.touch(&object);
        });
        watched.box_it();
        thread.join().unwrap();
        watched.box_it();
    });
}

/// Removal, a guard and the slot's next object.
#[test]
fn a_guard_is_done_before_the_object_goes() {
    struct Canary(UnsafeCell<u64>);
    // SAFETY: watched by loom.
    unsafe impl Sync for Canary {}
    impl Drop for Canary {
        fn drop(&mut self) {
            // SAFETY: loom checks that nobody else reads.
            self.0.with_mut(|cell| unsafe { *cell = 0 });
        }
    }
    model(|| {
        let config = Config::new().chunk_size(1).limit(1);
        let handles =
            Handles::<Canary, nbbs_arena::Handle, Global, Loom>::with_source(Global, config);
        let handles = StdArc::new(handles);
        let handle = handles.insert(Canary(UnsafeCell::new(7))).ok().unwrap();
        let theirs = StdArc::clone(&handles);
        let thread = thread::spawn(move || {
            if let Ok(guard) = theirs.get(handle) {
                // SAFETY: loom checks that nobody writes meanwhile.
                assert_eq!(guard.0.with(|cell| unsafe { *cell }), 7);
            }
        });
        handles.remove(handle).unwrap();
        if let Ok(next) = handles.insert(Canary(UnsafeCell::new(8))) {
            assert_eq!((next.index(), next.generation()), (0, 1));
        }
        thread.join().unwrap();
        assert!(!handles.contains(handle));
    });
}
