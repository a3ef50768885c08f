//! Four levels in a word: Algorithms 2 to 4 as section III-D changes them. Line numbers are the paper's.

use alloc::boxed::Box;
use core::marker::PhantomData;

use nbbs::sync::{Ordering, Word};

use super::Tree;
use super::bunch::{self, Place};
use super::discipline::Discipline;
use super::status::{self, BUSY, OCC};

/// The bunches, tier by tier from the root on.
///
/// A change within a bunch takes one update of its word. A climb goes from the topmost node of a bunch to its parent, a
/// lowest node of the bunch above.
#[derive(Debug)]
pub struct FourLevels<W, D> {
    bunches: Box<[W]>,
    discipline: PhantomData<D>,
}

impl<W: Word + Default, D: Discipline<W>> Tree for FourLevels<W, D> {
    fn new(depth: u32) -> Self {
        let bunches = (0..bunch::count(depth)).map(|_| W::default()).collect();
        Self { bunches, discipline: PhantomData }
    }

    fn words(&self) -> usize {
        self.bunches.len()
    }

    fn is_free(&self, node: u64) -> bool {
        let place = Place::of(node);
        place.is_free(self.load(place))
    }

    fn try_alloc(&self, node: u64, max_level: u32) -> Result<(), u64> {
        let mut current = Place::of(node);
        // T2: "check and then set the state of all the nodes in the sub-tree in the lower level".
        loop {
            let old = self.load(current);
            if !current.is_clear(old) {
                return Err(node);
            }
            if self.swap(current, old, old | current.bits(BUSY)) {
                break;
            }
        }
        while current.root_level > max_level {
            let child = current;
            current = child.above();
            // T9 to T17
            loop {
                let old = self.load(current);
                let status = current.status(old);
                if status & OCC != 0 {
                    self.free_node(node, child.root_level);
                    return Err(current.topmost_occupied(old));
                }
                let status = status::mark(status::clean_coal(status, child.root), child.root);
                if self.swap(current, old, current.with_status(old, status)) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn free_node(&self, node: u64, upper_bound: u32) {
        let place = Place::of(node);
        self.mark_coalescing(place, upper_bound);
        // F19
        let new = loop {
            let old = self.load(place);
            let new = place.cleared(old);
            if self.swap(place, old, new) {
                break new;
            }
        };
        self.unmark(place, new, upper_bound);
    }
}

impl<W: Word, D: Discipline<W>> FourLevels<W, D> {
    /// F2 to F18. Within a bunch nothing has to be marked: the release clears it in one step.
    fn mark_coalescing(&self, mut runner: Place, upper_bound: u32) {
        let mut word = self.load(runner);
        while runner.root_level > upper_bound && !runner.has_settled_buddy(word) {
            let child = runner.root;
            runner = runner.above();
            // F6 to F11
            word = loop {
                let old = self.load(runner);
                let status = runner.status(old) | status::coal(child);
                if self.swap(runner, old, runner.with_status(old, status)) {
                    break old;
                }
            };
            // F12
            let status = runner.status(word);
            if status::is_occ_buddy(status, child) && !status::is_coal_buddy(status, child) {
                return;
            }
        }
    }

    /// Algorithm 4, after the levels within the bunch are done: its word became `word`.
    fn unmark(&self, mut current: Place, mut word: u64, upper_bound: u32) {
        while current.root_level > upper_bound && !current.has_occ_buddy(word) {
            let child = current.root;
            current = current.above();
            // U6 to U12
            word = loop {
                let old = self.load(current);
                let status = current.status(old);
                if !status::is_coal(status, child) {
                    return;
                }
                let new = current.with_status(old, status::unmark(status, child));
                if self.swap(current, old, new) {
                    break new;
                }
            };
            // U13
            if status::is_occ_buddy(current.status(word), child) {
                return;
            }
        }
    }

    fn load(&self, place: Place) -> u64 {
        // Acquire: a plain load of the paper's processor.
        self.bunches[place.bunch()].load(Ordering::Acquire)
    }

    fn swap(&self, place: Place, old: u64, new: u64) -> bool {
        D::swap(&self.bunches[place.bunch()], old, new)
    }
}
