//! Races with objects by handle: each is complete for every thread that gets it, and dropped once, after all threads
//! that looked at it.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use nbbs_pool::{Config, Global, Handle, Handles, Key};

use crate::model;
use crate::words::Loom;

/// An object that is read by the threads that get it, and written when it is dropped.
struct Canary(UnsafeCell<u64>);

// SAFETY: watched by loom.
unsafe impl Sync for Canary {}

impl Drop for Canary {
    fn drop(&mut self) {
        // SAFETY: loom checks that nobody else reads.
        self.0.with_mut(|cell| unsafe { *cell = 0 });
    }
}

type Canaries = Handles<Canary, Handle, Global, Loom>;

fn fresh(slots: usize) -> Arc<Canaries> {
    Arc::new(Canaries::with_source(Global, Config::new().chunk_size(slots).limit(slots)))
}

fn insert(canaries: &Canaries, value: u64) -> Option<Handle> {
    let canary = Canary(UnsafeCell::new(0));
    // Loom does not count a cell's creation as a write. SAFETY: nobody else has it yet.
    canary.0.with_mut(|cell| unsafe { *cell = value });
    canaries.insert(canary).ok()
}

fn look(canaries: &Canaries, handle: Handle, value: u64) {
    if let Ok(guard) = canaries.get(handle) {
        // SAFETY: loom checks that nobody writes meanwhile.
        assert_eq!(guard.0.with(|cell| unsafe { *cell }), value);
    }
}

#[test]
fn a_guard_is_done_before_the_object_goes() {
    model(2, || {
        let canaries = fresh(1);
        let handle = insert(&canaries, 7).unwrap();
        let theirs = Arc::clone(&canaries);
        let thread = thread::spawn(move || look(&theirs, handle, 7));
        canaries.remove(handle).unwrap();
        if let Some(next) = insert(&canaries, 8) {
            assert_eq!((next.index(), next.generation()), (0, 1));
        }
        thread.join().unwrap();
        assert!(!canaries.contains(handle));
    });
}

/// The last of two guards drops the object, after what the other read.
#[test]
fn two_guards_and_a_removal() {
    model(2, || {
        let canaries = fresh(1);
        let handle = insert(&canaries, 7).unwrap();
        let lanes = [(); 2].map(|()| {
            let theirs = Arc::clone(&canaries);
            thread::spawn(move || look(&theirs, handle, 7))
        });
        canaries.remove(handle).unwrap();
        lanes.into_iter().for_each(|lane| lane.join().unwrap());
        assert!(canaries.pool().is_empty());
    });
}

/// Of two threads that remove an object, one succeeds, and drops it.
#[test]
fn two_removals() {
    model(2, || {
        let canaries = fresh(1);
        let handle = insert(&canaries, 7).unwrap();
        let theirs = Arc::clone(&canaries);
        let thread = thread::spawn(move || theirs.remove(handle).is_ok());
        let ours = canaries.remove(handle).is_ok();
        assert!(thread.join().unwrap() != ours);
        assert!(canaries.pool().is_empty());
    });
}

/// Passes a value to the destructor of an object, on whichever thread it runs.
struct Heir(Arc<Will>);

struct Will(UnsafeCell<u64>);

// SAFETY: watched by loom.
unsafe impl Sync for Will {}
// SAFETY: as above.
unsafe impl Send for Will {}

impl Drop for Heir {
    fn drop(&mut self) {
        // SAFETY: loom checks that nobody writes meanwhile.
        assert_eq!(self.0.0.with(|cell| unsafe { *cell }), 7);
    }
}

/// What was done before a removal happens before the drop, also if a guard drops the object.
#[test]
fn a_removal_is_told_to_the_last_guard() {
    model(2, || {
        let heirs = Handles::<Heir, Handle, Global, Loom>::with_source(
            Global,
            Config::new().chunk_size(1).limit(1),
        );
        let said = Heir(Arc::new(Will(UnsafeCell::new(0))));
        let ours = Arc::clone(&said.0);
        let handle = heirs.insert(said).ok().unwrap();
        let heirs = Arc::new(heirs);
        let theirs = Arc::clone(&heirs);
        let thread = thread::spawn(move || drop(theirs.get(handle)));
        // SAFETY: loom checks that nobody reads meanwhile.
        ours.0.with_mut(|cell| unsafe { *cell = 7 });
        heirs.remove(handle).unwrap();
        thread.join().unwrap();
        assert!(heirs.pool().is_empty());
    });
}

/// A handle is a number, which may be guessed: its object is complete, or not there yet.
#[test]
fn a_handle_is_guessed() {
    for reads in [0, 1] {
        model(2, move || {
            let canaries = fresh(2);
            // After this, no write of this thread is left for which loom's words put a fence before the object's word.
            canaries.remove(insert(&canaries, 6).unwrap()).unwrap();
            let theirs = Arc::clone(&canaries);
            let thread = thread::spawn(move || {
                let handle = Handle::new(0, 1);
                if reads == 0 { look(&theirs, handle, 7) } else { _ = theirs.remove(handle) }
            });
            let handle = insert(&canaries, 7).unwrap();
            thread.join().unwrap();
            _ = canaries.remove(handle);
            assert!(canaries.pool().is_empty());
        });
    }
}
