//! Tests what happens to objects: they are constructed, dropped and refused as the interface says, whatever their type.

mod support;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::rc::Rc;

use nbbs_pool::{
    Config, Exhausted, FreeError, Global, Handles, Key, Pool, PoolBox, Region, SinglePool,
    SmallHandle,
};
use support::{Bank, Item};

/// Enough objects to fill chunks many times over; Miri takes a millisecond for each.
const MANY: usize = if cfg!(miri) { 150 } else { 5000 };

/// Counts its drops; panics in some of them.
struct Counted<'a> {
    drops: &'a Cell<usize>,
    panics: bool,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.drops.set(self.drops.get() + 1);
        assert!(!self.panics, "a destructor that panics");
    }
}

fn panics(act: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(act)).is_err()
}

#[test]
fn what_is_live_is_dropped_with_the_pool_and_once() {
    let drops = Cell::new(0);
    let counted = |panics| Counted { drops: &drops, panics };
    let pool = Pool::with_config(Config::new().chunk_size(10));
    let pointers: Vec<_> = (0..35).map(|_| pool.alloc(counted(false)).ok().unwrap()).collect();
    pool.free(pointers[3]).unwrap();
    drop(pool.adopt(pointers[34]).unwrap());
    assert_eq!((drops.get(), pool.len(), pool.capacity()), (2, 33, 40));
    std::mem::forget(pool.alloc_box(counted(false)).ok().unwrap());
    drop(pool);
    assert_eq!(drops.get(), 35, "all but the one that was forgotten");
}

#[test]
fn a_slot_survives_a_destructor_that_panics() {
    let drops = Cell::new(0);
    let counted = || Counted { drops: &drops, panics: true };
    let mut pool = Pool::with_config(Config::new().limit(4));
    let mut local = pool.local();
    let one = local.alloc(counted()).ok().unwrap();
    assert!(panics(|| local.free(one)));
    drop(local);
    let one = pool.alloc_box(counted()).ok().unwrap();
    assert!(panics(|| drop(one)));
    let one = pool.alloc(counted()).ok().unwrap();
    assert!(panics(|| pool.free(one).unwrap()));
    assert!(panics(|| _ = pool.alloc_with(|| panic!("a constructor that panics"))));
    assert_eq!((drops.get(), pool.len()), (3, 0));

    pool.alloc(Counted { drops: &drops, panics: false }).ok().unwrap();
    pool.alloc(counted()).ok().unwrap();
    pool.alloc(Counted { drops: &drops, panics: false }).ok().unwrap();
    assert!(panics(|| pool.clear()));
    assert_eq!((drops.get(), pool.len()), (6, 0), "the others are dropped all the same");
    pool.alloc(counted()).ok().unwrap();
    assert!(panics(|| drop(pool)));
    assert_eq!(drops.get(), 7);
}

/// If a slot were freed before its object is dropped, it would be given away while in use.
#[test]
fn a_destructor_still_has_its_slot() {
    static ONE: Pool<Greedy> = Pool::with_source(Global, Config::new().chunk_size(1).limit(1));
    thread_local!(static DROPS: Cell<usize> = const { Cell::new(0) });
    /// Asks for a slot in its destructor, when the only one is its own.
    struct Greedy {
        handles: Option<&'static Handles<Greedy>>,
        greedy: bool,
    }
    impl Drop for Greedy {
        fn drop(&mut self) {
            if self.greedy {
                DROPS.set(DROPS.get() + 1);
                let content = Greedy { handles: None, greedy: false };
                let granted = match self.handles {
                    Some(handles) => handles.insert(content).is_ok(),
                    None => ONE.alloc_box(content).is_ok(),
                };
                assert!(!granted, "a slot in use is given away");
            }
        }
    }
    let greedy = || Greedy { handles: None, greedy: true };
    drop(ONE.alloc_box(greedy()).ok().unwrap());
    ONE.free(ONE.alloc(greedy()).ok().unwrap()).unwrap();
    ONE.local().free(ONE.alloc_box(greedy()).ok().unwrap());
    ONE.free_batch(ONE.alloc_box(greedy()));

    let config = Config::new().chunk_size(1).limit(1);
    let handles: &'static Handles<Greedy> =
        Box::leak(Box::new(Handles::with_source(Global, config)));
    let insert = || handles.insert(Greedy { handles: Some(handles), greedy: true }).ok().unwrap();
    handles.remove(insert()).unwrap();
    let handle = insert();
    let guard = handles.get(handle).unwrap();
    handles.remove(handle).unwrap();
    drop(guard);
    assert_eq!((DROPS.get(), ONE.len(), handles.pool().len()), (6, 0, 0));
}

#[test]
fn wrong_pointers_are_refused_and_change_nothing() {
    let bank = Bank::new(70, 2);
    let pool = Pool::<Item, _>::with_source(&bank, support::config(&bank));
    let item = |n| Item([n; 4]);
    let one = pool.alloc(item(1)).unwrap();
    let owned = pool.alloc_box(item(2)).unwrap();
    let refused = |object: NonNull<Item>| pool.free(object).unwrap_err();

    let inside = one.cast::<u8>().as_ptr().wrapping_add(8);
    let inside = NonNull::new(inside.cast::<Item>()).unwrap();
    let (address, slot) = (inside.as_ptr() as usize, one.as_ptr() as usize);
    assert_eq!(refused(inside), FreeError::Misaligned { address, slot });

    let elsewhere = item(3);
    let foreign = NonNull::from(&elsewhere);
    assert!(matches!(refused(foreign), FreeError::Foreign { chunks: 1, .. }));
    for beyond in [bank.object(70), bank.object(139), NonNull::dangling()] {
        assert!(matches!(refused(beyond), FreeError::Foreign { .. }));
    }
    let other = Pool::<Item>::new();
    assert!(matches!(refused(other.alloc(item(4)).unwrap()), FreeError::Foreign { .. }));

    assert!(matches!(refused(NonNull::from(&*owned)), FreeError::NotAllocated { .. }));
    for never in [bank.object(60), bank.object(69)] {
        assert!(matches!(refused(never), FreeError::NotAllocated { .. }));
    }
    pool.free(one).unwrap();
    assert!(matches!(refused(one), FreeError::NotAllocated { .. }));
    assert_eq!((pool.len(), *owned), (1, item(2)));
}

#[test]
fn the_error_names_the_limit_and_has_the_value() {
    let pool = Pool::with_config(Config::new().chunk_size(3).limit(5));
    let all: Vec<_> = (0..5).map(|n| pool.alloc_box(n).unwrap()).collect();
    let full = pool.alloc_box(77).unwrap_err();
    assert_eq!((full.value, full.reason), (77, Exhausted::Limit { limit: 5 }));
    assert_eq!(full.to_string(), "no slot is free: the pool has 5");
    drop(all);
    let bank = Bank::new(64, 1);
    let pool = Pool::<Item, _>::with_source(&bank, Config::new().chunk_size(64));
    let all: Vec<_> = (0..64).map(|_| pool.alloc(Item([0; 4])).unwrap()).collect();
    let reason = pool.alloc_with(|| unreachable!("there is no slot")).unwrap_err();
    assert_eq!(reason, Exhausted::Memory { bytes: 64 * 32, align: align_of::<Item>() });
    pool.free(all[9]).unwrap();
    assert_eq!(pool.alloc(Item([0; 4])).unwrap(), all[9]);
}

#[test]
fn objects_without_size_have_slots_of_their_own() {
    let drops = Rc::new(Cell::new(0));
    struct Empty;
    thread_local!(static DROPS: Cell<usize> = const { Cell::new(0) });
    impl Drop for Empty {
        fn drop(&mut self) {
            DROPS.set(DROPS.get() + 1);
        }
    }
    drop(drops);
    let pool = Pool::with_config(Config::new().chunk_size(100).limit(100));
    let pointers: Vec<_> = (0..100).map(|_| pool.alloc(Empty).ok().unwrap()).collect();
    assert!(pool.alloc(Empty).is_err());
    pointers.iter().for_each(|&each| pool.free(each).unwrap());
    assert!(pointers.iter().all(|&each| pool.free(each).is_err()));
    assert_eq!(DROPS.get(), 101, "and the one that was refused");
}

#[test]
fn alignment_is_kept() {
    #[repr(align(4096))]
    struct Page(u8);
    let pool = Pool::with_config(Config::new().chunk_size(3));
    let pages: Vec<_> = (0..7).map(|n| pool.alloc_box(Page(n)).ok().unwrap()).collect();
    for (n, page) in pages.iter().enumerate() {
        assert_eq!(std::ptr::from_ref(&**page) as usize % 4096, 0);
        assert_eq!(page.0 as usize, n);
    }
}

/// A local remembers where a word's slots are; they move when the chunk gets other memory.
#[test]
fn a_local_does_not_trust_memory_that_has_gone() {
    let bank = Bank::new(128, 2);
    let pool = Pool::<Item, _>::with_source(&bank, Config::new().chunk_size(128));
    let mut local = pool.local();
    let first: Vec<_> = (0..128).map(|n| local.alloc(Item([n; 4])).unwrap()).collect();
    drop(first);
    assert_eq!((local.kept(), pool.shrink()), (0, 128));
    // The chunk comes back 128 slots further on.
    let again: Vec<_> = (0..128).map(|n| local.alloc(Item([n; 4])).unwrap()).collect();
    assert!(again.iter().all(|each| bank.number(&**each) >= 128));
    // Slots of both words, freed to the local while it keeps nothing of either.
    again.into_iter().rev().for_each(|each| local.free(each));
    let mut seen: Vec<_> = (0..128)
        .map(|n| bank.number(PoolBox::into_raw(local.alloc(Item([n; 4])).unwrap()).as_ptr()))
        .collect();
    seen.sort_unstable();
    assert!(seen.iter().copied().eq(128..256), "{seen:?}");
}

/// The same with a shift that is no multiple of the chunk.
#[test]
fn a_local_does_not_take_a_moved_slot_for_another() {
    let pool = Pool::<u64>::with_config(Config::new().chunk_size(640).limit(640));
    let mut local = pool.local();
    let all: Vec<_> = (0..640).map(|n| local.alloc(n).unwrap()).collect();
    drop(all);
    local.flush();
    let mut blockers: Vec<Vec<u64>> = Vec::new();
    for round in 0..MANY / 100 {
        assert_eq!(pool.shrink(), 640);
        blockers.push(vec![0; 64 * (round % 7 + 1)]);
        let all: Vec<_> = (0..640).map(|n| pool.alloc_box(n).unwrap()).collect();
        assert!(pool.alloc_box(0).is_err());
        for each in all {
            local.free(each);
        }
        let mut taken: Vec<_> = (0..640).map(|n| local.alloc(n).unwrap()).collect();
        assert!(local.alloc(0).is_err());
        taken.sort_by_key(|each| std::ptr::from_ref(&**each) as usize);
        taken.dedup_by_key(|each| std::ptr::from_ref(&**each) as usize);
        assert_eq!(taken.len(), 640);
        drop(taken);
        local.flush();
    }
}

#[test]
fn a_box_of_another_pool_goes_home() {
    let (one, two) = (Pool::<u32>::new(), Pool::<u32>::new());
    let mut local = one.local();
    local.free(two.alloc_box(2).unwrap());
    assert_eq!((local.kept(), two.len()), (0, 0));
    let at = NonNull::from(&*local.alloc(1).unwrap());
    assert!(matches!(two.free(at), Err(FreeError::Foreign { .. })));
}

#[test]
fn more_locals_than_lanes() {
    let pool = Pool::<usize>::new();
    let mut locals: Vec<_> = (0..40).map(|_| pool.local()).collect();
    let all: Vec<_> = (0..MANY).map(|n| locals[n % 40].alloc(n).unwrap()).collect();
    assert!(all.iter().enumerate().all(|(n, each)| **each == n));
    assert_eq!(pool.len(), MANY);
    all.into_iter().enumerate().for_each(|(n, each)| locals[(n + 7) % 40].free(each));
    assert_eq!(pool.len(), 0);
    // Locals without a lane keep nothing.
    assert!(locals[32..].iter().all(|local| local.kept() == 0));
    drop(locals);
    assert!(pool.shrink() > 0 && pool.capacity() == 0);
    // All lanes are free again.
    let mut locals: Vec<_> = (0..33).map(|_| pool.local()).collect();
    let _all: Vec<_> = locals.iter_mut().map(|local| local.alloc(0).unwrap()).collect();
    assert_eq!(locals.iter().filter(|local| local.kept() > 0).count(), 32);
}

#[test]
fn a_local_keeps_no_more_than_it_was_told() {
    let pool = Pool::<usize>::with_config(Config::new().limit(1 << 14));
    for most in [2, 3, 64, 65, 1000] {
        let mut local = pool.local_of(most);
        let all: Vec<_> = (0..MANY).map(|n| local.alloc(n).unwrap()).collect();
        for each in all {
            local.free(each);
            assert!(local.kept() <= most, "{} of {most}", local.kept());
        }
    }
    assert!(pool.is_empty());
}

#[test]
fn static_memory_and_one_thread() {
    static MEMORY: Region<8192> = Region::new();
    static ITEMS: Pool<[u64; 6], &Region<8192>> =
        Pool::with_source(&MEMORY, Config::new().chunk_size(64).reserve(128));
    let all: Vec<_> = std::iter::from_fn(|| ITEMS.alloc_box([1; 6]).ok()).collect();
    assert_eq!((all.len(), ITEMS.capacity()), (128, 128));
    drop(all);

    let single = SinglePool::<Rc<u32>>::with_words(Global, Config::new().chunk_size(64));
    let all: Vec<_> = (0..MANY as u32).map(|n| single.alloc(Rc::new(n)).unwrap()).collect();
    assert!(single.iter().eq(all.iter().copied()) && single.len() == MANY);
    assert!(all.iter().map(|&each| *single.take(each).unwrap()).eq(0..MANY as u32));
    assert_eq!(single.shrink(), MANY.next_multiple_of(64));
}

/// A small handle distinguishes 2^12 objects of a slot, and is a number of its own.
#[test]
fn a_small_handle_is_good_again_after_4096_objects() {
    let config = Config::new().chunk_size(1).limit(1);
    let handles = Handles::<u32, SmallHandle>::with_source(Global, config);
    let first = handles.insert(0).unwrap();
    for n in 1..4096 {
        handles.remove(SmallHandle::new(0, n - 1)).unwrap();
        assert_eq!(handles.insert(n).map(SmallHandle::to_bits), Ok(n << 20));
        assert!(!handles.contains(first));
    }
    handles.remove(SmallHandle::from_bits(4095 << 20)).unwrap();
    assert_eq!((handles.insert(4096), handles.contains(first)), (Ok(first), true));
}
