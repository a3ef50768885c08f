//! Races with slots that change hands.

use std::ptr::NonNull;

use nbbs_pool::PoolBox;

use crate::plot::{Object, Watched};
use crate::{model, race, together};

pub fn box_it(watched: &Watched) {
    if let Ok(object) = watched.pool.alloc_box(Object(1)) {
        watched.plot.touch(&raw const *object);
        assert_eq!(object.0, 1);
    }
}

pub fn point_at_it(watched: &Watched) {
    if let Ok(object) = watched.pool.alloc(Object(1)) {
        watched.plot.touch(object.as_ptr());
        watched.pool.free(object).unwrap();
    }
}

/// The local keeps one slot at a time.
fn keep_it(watched: &Watched) {
    let mut local = watched.pool.local_of(2);
    if let Ok(object) = local.alloc(Object(1)) {
        watched.plot.touch(&raw const *object);
        local.free(object);
    }
}

/// The local keeps all slots of a word.
fn keep_all(watched: &Watched) {
    let mut local = watched.pool.local();
    if let Ok(object) = local.alloc(Object(1)) {
        watched.plot.touch(&raw const *object);
        local.free(object);
    }
}

#[test]
fn boxes_hand_over() {
    race(2, || Watched::new(1, 1, 2), &[box_it, box_it]);
    race(2, || Watched::new(2, 1, 2), &[box_it, box_it, box_it]);
}

#[test]
fn pointers_hand_over() {
    race(2, || Watched::new(1, 1, 2), &[point_at_it, box_it]);
    race(2, || Watched::new(2, 1, 2), &[point_at_it, point_at_it]);
}

#[test]
fn locals_hand_over() {
    race(2, || Watched::new(2, 1, 2), &[keep_it, keep_it]);
    race(2, || Watched::new(2, 1, 2), &[keep_all, keep_it]);
    race(2, || Watched::new(2, 1, 2), &[keep_all, box_it]);
}

/// Another thread frees the box of the only slot, into its local or not.
#[test]
fn a_box_is_freed_elsewhere() {
    fn from_first(watched: &Watched) -> PoolBox<'_, Object, crate::words::Loom> {
        // SAFETY: it comes from a box of this pool, and is turned back once.
        unsafe { watched.pool.from_raw(watched.plot.object(0)) }
    }
    fn drop_it(watched: &Watched) {
        let object = from_first(watched);
        watched.plot.touch(&raw const *object);
    }
    fn put_it_away(watched: &Watched) {
        let object = from_first(watched);
        watched.plot.touch(&raw const *object);
        watched.pool.local().free(object);
    }
    for lanes in [&[box_it, drop_it], &[box_it, put_it_away]] as [&[crate::Lane; 2]; 2] {
        model(2, move || {
            let watched = Watched::new(1, 1, 2);
            let object = watched.pool.alloc_box(Object(1)).ok().unwrap();
            watched.plot.touch(&raw const *object);
            _ = PoolBox::into_raw(object);
            together(&watched, lanes);
            watched.check();
        });
    }
}

/// One thread takes the last slot of a word and keeps it, while the other gives back the slot before: the word has
/// room, and the hints, by which a local searches, say so.
#[test]
fn a_slot_is_freed_in_a_word_that_fills_up() {
    fn hold_it(watched: &Watched) {
        let object = watched.pool.alloc(Object(1)).ok().unwrap();
        watched.plot.touch(object.as_ptr());
    }
    fn free_first(watched: &Watched) {
        take_it(watched, watched.plot.object(0));
    }
    model(2, || {
        let watched = Watched::new(2, 1, 2);
        assert_eq!(watched.pool.alloc(Object(1)).ok().unwrap(), watched.plot.object(0));
        together(&watched, &[hold_it, free_first]);
        let mut local = watched.pool.local_of(2);
        let other = local.alloc(Object(1)).ok().unwrap();
        assert_eq!(watched.pool.capacity(), 2, "grows while there is room");
        drop((other, local));
        let left = [0, 1].map(|slot| watched.pool.free(watched.plot.object(slot)).is_ok());
        assert!(left[0] != left[1], "one was kept");
        watched.check();
    });
}

fn take_it(watched: &Watched, object: NonNull<Object>) -> bool {
    let taken = watched.pool.adopt(object);
    taken.map(|object| watched.plot.touch(&raw const *object)).is_ok()
}

/// Of two threads that free a pointer, one succeeds, after what the other did.
#[test]
fn a_pointer_is_freed_twice() {
    fn take(watched: &Watched) {
        take_it(watched, watched.plot.object(0));
    }
    model(2, || {
        let watched = Watched::new(2, 1, 2);
        let object = watched.pool.alloc(Object(1)).ok().unwrap();
        assert_eq!(object, watched.plot.object(0));
        together(&watched, &[take, take]);
        assert!(!take_it(&watched, object), "nobody took it");
        watched.check();
    });
}

/// A pointer is guessed, or passed on without synchronisation: its user sees a complete object or none, in a pool that
/// grows for it meanwhile.
#[test]
fn a_pointer_is_guessed() {
    fn let_go(watched: &Watched) {
        let object = watched.pool.alloc_with(|| {
            watched.plot.touch(watched.plot.object(0).as_ptr());
            Object(1)
        });
        assert_eq!(object.unwrap(), watched.plot.object(0));
    }
    fn guess(watched: &Watched) {
        take_it(watched, watched.plot.object(0));
    }
    fn look_for_it(watched: &Watched) {
        watched.pool.iter().for_each(|object| watched.plot.look(object.as_ptr()));
    }
    fn ask_for_it(watched: &Watched) {
        if watched.pool.is_valid(watched.plot.object(0)) {
            watched.plot.look(watched.plot.object(0).as_ptr());
        }
    }
    for at_first in [0, 1] {
        for other in [guess, look_for_it, ask_for_it] as [crate::Lane; 3] {
            let lanes: &'static [crate::Lane; 2] = Box::leak(Box::new([let_go, other]));
            model(2, move || {
                let watched = Watched::new(1, at_first, 2);
                together(&watched, lanes);
                take_it(&watched, watched.plot.object(0));
                watched.check();
            });
        }
    }
}
