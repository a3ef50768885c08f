//! What each way to hold an object costs, in read-modify-writes: the table of the crate's documentation.

mod support;

use nbbs_pool::{Config, Global, Handle, Handles, Pool};
use support::words::Over;
use testkit::counting::{self, count};

/// A word whose read-modify-writes the calling thread counts.
type Counted = Over<counting::Counted>;

/// Returns what `act` returns, and how many read-modify-writes it took.
fn counted<R>(act: impl FnOnce() -> R) -> (R, u64) {
    let (result, counts) = count(act);
    (result, counts.swaps)
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
