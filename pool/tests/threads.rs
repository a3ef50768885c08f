//! Tests real threads on the processor's atomics: objects go from hand to hand while chunks come and go. The tests are
//! small enough for Miri, which finds races on the memory itself, and lets a relaxed load return old values.

use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use nbbs_pool::sync::AtomicU64;
use nbbs_pool::{Config, Global, Handle, Handles, Key, Pointers, Pool, PoolBox, Region, Slots};

/// The number of rounds: under Miri, seeds take their place.
const ROUNDS: usize = if cfg!(miri) { 2 } else { 300 };

fn small(chunks: usize) -> Pool<Box<usize>> {
    Pool::with_config(Config::new().chunk_size(2).limit(2 * chunks))
}

/// Allocates in every way, and reads what it wrote.
fn work(pool: &Pool<Box<usize>>, number: usize) {
    let mut local = pool.local_of(2);
    if let Ok(one) = pool.alloc_box(Box::new(number)) {
        if let Ok(other) = local.alloc(Box::new(number + 1)) {
            assert_eq!(**other, number + 1);
            local.free(other);
        }
        assert_eq!(**one, number);
    }
    if let Ok(pointer) = pool.alloc(Box::new(number)) {
        assert!(pool.is_valid(pointer));
        assert_eq!(*pool.take(pointer).unwrap(), number);
    }
}

#[test]
fn workers_beside_one_who_grows_and_shrinks() {
    for round in 0..ROUNDS {
        let pool = small(3);
        thread::scope(|scope| {
            for number in 0..2 {
                let pool = &pool;
                scope.spawn(move || work(pool, round + number));
            }
            scope.spawn(|| {
                _ = pool.grow();
                pool.shrink();
            });
        });
        assert!(pool.is_empty());
        let all: Vec<_> = std::iter::from_fn(|| pool.alloc_box(Box::new(0)).ok()).collect();
        assert_eq!(all.len(), 6);
    }
}

/// The ninth chunk is the first of a segment.
#[test]
fn two_grow_behind_eight_chunks() {
    for _ in 0..ROUNDS {
        let pool = Pool::<Box<usize>>::with_config(Config::new().chunk_size(1).limit(11));
        let held: Vec<_> = (0..8).map(|n| pool.alloc_box(Box::new(n)).unwrap()).collect();
        thread::scope(|scope| {
            for number in 0..2 {
                let pool = &pool;
                scope.spawn(move || {
                    let pointer = pool.alloc(Box::new(number)).unwrap();
                    assert_eq!(*pool.take(pointer).unwrap(), number);
                });
            }
        });
        assert!(held.iter().enumerate().all(|(n, each)| ***each == n));
    }
}

/// A lane that a local has left is empty for the next one, on any thread.
#[test]
fn a_lane_goes_from_thread_to_thread() {
    for _ in 0..ROUNDS {
        let pool = small(20);
        // All lanes but one have a local.
        let _others: Vec<_> = (0..31).map(|_| pool.local()).collect();
        let granted = AtomicUsize::new(0);
        thread::scope(|scope| {
            for number in 0..2 {
                let (pool, granted) = (&pool, &granted);
                scope.spawn(move || {
                    for turn in 0..3 {
                        let mut local = pool.local();
                        let one = local.alloc(Box::new(number)).unwrap();
                        assert_eq!((**one, local.kept() <= 1), (number, true), "turn {turn}");
                        local.free(one);
                        granted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!((granted.into_inner(), pool.len()), (6, 0));
    }
}

/// A thread frees boxes and pointers that another allocated, into its local.
#[test]
fn objects_are_handed_over() {
    for _ in 0..ROUNDS {
        let pool = small(2);
        let (sender, receiver) = mpsc::sync_channel::<PoolBox<'_, Box<usize>>>(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut local = pool.local_of(3);
                for number in 0..5 {
                    if let Ok(each) = local.alloc(Box::new(number)) {
                        sender.send(each).unwrap();
                    }
                }
                drop(sender);
            });
            scope.spawn(|| {
                let mut local = pool.local_of(3);
                for (turn, each) in receiver.into_iter().enumerate() {
                    assert!(**each < 5);
                    match turn % 3 {
                        0 => local.free(each),
                        1 => _ = pool.take(PoolBox::leak(each)).unwrap(),
                        _ => drop(each),
                    }
                }
            });
        });
        assert!(pool.is_empty());
    }
}

/// A guard's object outlives its removal by another thread, and the last that has it drops it. Handles are guessed.
#[test]
fn guards_and_removal_race() {
    struct Canary(AtomicU32);
    impl Drop for Canary {
        fn drop(&mut self) {
            *self.0.get_mut() = 0;
        }
    }
    for _ in 0..ROUNDS {
        let config = Config::new().chunk_size(1).limit(1);
        let handles = Handles::<Box<Canary>>::with_source(nbbs_pool::Global, config);
        let handle = Handle::new(0, 0);
        let look = || {
            if let Ok(guard) = handles.get(handle) {
                assert_eq!(guard.0.load(Ordering::Relaxed), 7);
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(handles.insert(Box::new(Canary(7.into()))).ok().unwrap(), handle);
                handles.remove(handle).unwrap();
                if let Ok(next) = handles.insert(Box::new(Canary(8.into()))) {
                    assert_eq!((next.index(), next.generation()), (0, 1));
                }
            });
            scope.spawn(look);
            scope.spawn(look);
        });
        assert!(!handles.contains(handle));
    }
}

/// Memory that one pool gave back to a region goes to another.
#[test]
fn a_region_hands_memory_on() {
    use nbbs_pool::ChunkSource;
    use std::alloc::Layout;

    static MEMORY: Region<256> = Region::new();
    let (layout, turns) = (Layout::new::<[u64; 20]>(), AtomicUsize::new(0));
    let take_turn = || {
        for _ in 0..ROUNDS {
            if let Some(block) = (&MEMORY).alloc(layout) {
                turns.fetch_add(1, Ordering::Relaxed);
                // SAFETY: the block is ours until it is given back, once and with its layout.
                unsafe {
                    block.cast::<u64>().write(7);
                    assert_eq!(block.cast::<u64>().read(), 7);
                    (&MEMORY).free(block, layout);
                }
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(take_turn);
        scope.spawn(take_turn);
    });
    assert!(turns.into_inner() > 0);
}

/// What follows from the type alone: it compiles.
#[test]
fn what_may_go_to_another_thread() {
    fn goes<T: Send + Sync>() {}
    goes::<Slots<'_, Rc<u32>>>();
    goes::<Pointers<'_, Box<u32>, AtomicU64>>();
}

#[test]
fn slots_that_one_thread_claims_are_given_back_by_another() {
    for round in 0..ROUNDS {
        let mark = round as u8;
        let pool = Pool::<Rc<u32>>::with_marks(Global, Config::new());
        let (slots, word, bits) = pool.claim_slots_on(0, 3).unwrap();
        slots.marks()[word * 64].store(mark, Ordering::Relaxed);
        let other = thread::scope(|scope| {
            let other = scope.spawn(move || {
                assert_eq!((slots.claimed(word), slots.len()), (bits, 1024));
                // SAFETY: claimed above, handed over to here, and nobody has an object there.
                unsafe { slots.release(word, bits) };
                slots.marks()[word * 64].load(Ordering::Relaxed)
            });
            other.join().unwrap()
        });
        assert_eq!(other, mark);
        assert!(pool.is_empty());
    }
}

#[test]
fn objects_are_lent_to_another_thread() {
    let mut pool = Pool::<Box<usize>>::new();
    pool.alloc_batch((0..100).map(Box::new), |each| _ = PoolBox::leak(each)).unwrap();
    let (mut here, mut there) = (0, 0);
    let mut all = pool.iter_mut();
    all.by_ref().take(50).for_each(|each| here += **each);
    thread::scope(|scope| _ = scope.spawn(|| all.for_each(|each| there += **each)));
    assert_eq!(here + there, 99 * 50);
}
