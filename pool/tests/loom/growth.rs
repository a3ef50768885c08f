//! Races with chunks that come and go.

use crate::plot::{Object, Watched};
use crate::race;
use crate::slots::{box_it, point_at_it};

fn grow(watched: &Watched) {
    // No room is an ordinary answer here.
    _ = watched.pool.grow();
}

fn shrink(watched: &Watched) {
    watched.pool.shrink();
}

/// From nothing: a thread that follows a pointer to a segment, a chunk or its memory finds it complete.
#[test]
fn two_grow() {
    race(1, || Watched::new(1, 0, 2), &[grow, grow]);
    race(1, || Watched::new(1, 0, 2), &[point_at_it, grow]);
}

/// Memory goes back after everything that was done in it.
#[test]
fn one_shrinks() {
    race(2, || Watched::new(1, 1, 1), &[box_it, shrink]);
    race(2, || Watched::new(1, 1, 1), &[point_at_it, shrink]);
    race(2, || Watched::new(1, 2, 2), &[shrink, shrink]);
}

#[test]
fn one_grows_and_one_shrinks() {
    race(2, || Watched::new(1, 1, 1), &[grow, shrink]);
    race(1, || Watched::new(1, 1, 2), &[|watched| (grow(watched), box_it(watched)).1, shrink]);
}

/// A thread that claims in a chunk that came back, by a cursor and without hints, finds its memory.
#[test]
fn a_chunk_that_comes_back() {
    race(2, || Watched::new(1, 1, 1), &[|watched| (shrink(watched), grow(watched)).1, box_it]);
}

/// The ninth chunk is the first of a segment: a thread that has an object of it finds it there.
#[test]
fn a_chunk_that_is_listed() {
    fn hold_eight() -> std::sync::Arc<Watched> {
        let watched = Watched::new(1, 8, 10);
        for _ in 0..8 {
            _ = watched.pool.alloc(Object(1)).ok().unwrap();
        }
        watched
    }
    crate::model(1, || {
        let watched = hold_eight();
        crate::together(&watched, &[point_at_it, grow]);
        (0..8).for_each(|slot| watched.pool.free(watched.plot.object(slot)).unwrap());
        watched.check();
    });
}
