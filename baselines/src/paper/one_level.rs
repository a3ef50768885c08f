//! One word per node: Algorithms 2 to 4. Line numbers are the paper's.

use alloc::boxed::Box;
use core::marker::PhantomData;

use nbbs::sync::{Ordering, Word};

use super::discipline::Discipline;
use super::status::{self, BUSY, OCC};
use super::{Tree, level};

/// The array `tree[]`: the root is node 1, the children of node n are 2n and 2n + 1.
#[derive(Debug)]
pub struct OneLevel<W, D> {
    tree: Box<[W]>,
    discipline: PhantomData<D>,
}

impl<W: Word + Default, D: Discipline<W>> Tree for OneLevel<W, D> {
    fn new(depth: u32) -> Self {
        let tree = (0..2_u64 << depth).map(|_| W::default()).collect();
        Self { tree, discipline: PhantomData }
    }

    fn words(&self) -> usize {
        self.tree.len()
    }

    fn is_free(&self, node: u64) -> bool {
        status::is_free(self.status(node))
    }

    fn try_alloc(&self, node: u64, max_level: u32) -> Result<(), u64> {
        // T2
        if !D::swap(self.word(node), 0, BUSY) {
            return Err(node);
        }
        let mut current = node;
        while level(current) > max_level {
            let child = current;
            current >>= 1;
            // T9 to T17
            loop {
                let old = self.status(current);
                if old & OCC != 0 {
                    self.free_node(node, level(child));
                    return Err(current);
                }
                let new = status::mark(status::clean_coal(old, child), child);
                if D::swap(self.word(current), old, new) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn free_node(&self, node: u64, upper_bound: u32) {
        let mut runner = node;
        let mut current = node >> 1;
        while level(runner) > upper_bound {
            // F6 to F11
            let old = loop {
                let old = self.status(current);
                if D::swap(self.word(current), old, old | status::coal(runner)) {
                    break old;
                }
            };
            // F12
            if status::is_occ_buddy(old, runner) && !status::is_coal_buddy(old, runner) {
                break;
            }
            runner = current;
            current >>= 1;
        }
        // F19: a plain store of the paper's processor, which nothing before it can pass.
        self.word(node).store(0, Ordering::Release);
        if level(node) != upper_bound {
            self.unmark(node, upper_bound);
        }
    }
}

impl<W: Word, D: Discipline<W>> OneLevel<W, D> {
    fn unmark(&self, node: u64, upper_bound: u32) {
        let mut current = node;
        loop {
            let child = current;
            current >>= 1;
            // U6 to U12
            let new = loop {
                let old = self.status(current);
                if !status::is_coal(old, child) {
                    return;
                }
                let new = status::unmark(old, child);
                if D::swap(self.word(current), old, new) {
                    break new;
                }
            };
            // U13
            if level(current) <= upper_bound || status::is_occ_buddy(new, child) {
                return;
            }
        }
    }

    fn word(&self, node: u64) -> &W {
        &self.tree[node as usize]
    }

    fn status(&self, node: u64) -> u64 {
        // Acquire: a plain load of the paper's processor.
        self.word(node).load(Ordering::Acquire)
    }
}
