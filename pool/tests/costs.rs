//! What each way to hold an object costs, in read-modify-writes: the table of the crate's documentation.

use std::cell::Cell;
use std::sync::atomic::AtomicPtr;

use nbbs_pool::sync::{AtomicU64, Ordering, Word};
use nbbs_pool::{Config, Global, Handle, Handles, Pool};

std::thread_local! {
    static READ_MODIFY_WRITES: Cell<u32> = const { Cell::new(0) };
}

/// A word whose read-modify-writes the calling thread counts.
struct Counted(AtomicU64);

// SAFETY: an atomic; what is not defined here is made of its compare-and-swaps.
unsafe impl Word for Counted {
    type Pointer<P> = AtomicPtr<P>;

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
        READ_MODIFY_WRITES.set(READ_MODIFY_WRITES.get() + 1);
        self.0.compare_exchange(current, new, success, failure)
    }
}

/// Returns what `act` returns, and how many read-modify-writes it took.
fn counted<R>(act: impl FnOnce() -> R) -> (R, u32) {
    let before = READ_MODIFY_WRITES.get();
    let result = act();
    (result, READ_MODIFY_WRITES.get() - before)
}

#[test]
fn a_pair_costs_what_the_table_says() {
    let pool = Pool::<u32, Global, Counted>::with_words(Global, Config::new());
    let _another = pool.alloc_box(0).unwrap();
    let (pointer, alloc) = counted(|| pool.alloc(1).unwrap());
    let (freed, free) = counted(|| pool.free(pointer));
    assert_eq!((freed, alloc, free), (Ok(()), 2, 2));
    let (owned, alloc) = counted(|| pool.alloc_box(1).unwrap());
    let ((), free) = counted(|| drop(owned));
    assert_eq!((alloc, free), (1, 1));
}

#[test]
fn a_local_costs_one_for_a_word_of_objects() {
    let pool = Pool::<u32, Global, Counted>::with_words(Global, Config::new());
    pool.reserve(1).unwrap();
    let mut local = pool.local();
    let ((), fresh) = counted(|| {
        let all: Vec<_> = (0..64).map(|number| local.alloc(number).unwrap()).collect();
        all.into_iter().for_each(|each| local.free(each));
    });
    // The word's hint says that it has no room any more.
    assert_eq!(fresh, 2);
    let ((), kept) = counted(|| {
        let all: Vec<_> = (0..64).map(|number| local.alloc(number).unwrap()).collect();
        all.into_iter().for_each(|each| local.free(each));
    });
    assert_eq!(kept, 0);
}

#[test]
fn a_handle_costs_one_to_insert_and_two_to_get_or_remove() {
    let handles = Handles::<u32, Handle, Global, Counted>::with_source(Global, Config::new());
    handles.insert(0).unwrap();
    let (handle, insert) = counted(|| handles.insert(1).unwrap());
    let ((), get) = counted(|| drop(handles.get(handle).unwrap()));
    let (removed, remove) = counted(|| handles.remove(handle));
    assert_eq!((removed, insert, get, remove), (Ok(()), 1, 2, 2));
}
