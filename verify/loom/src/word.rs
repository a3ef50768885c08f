//! Words of loom's atomics.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU64 as Plain};

use loom::sync::atomic::{AtomicU64, fence};
use nbbs::sync::{Ordering, Word};

use crate::{barrier, death};

/// How `SeqCst` is presented to loom. Loom models `SeqCst` fences, but `SeqCst` accesses too weakly to find what goes
/// wrong without them, so all accesses are at most `AcqRel`.
///
/// Loom's fences also order accesses to plain memory among all threads that pass one, which is too strong: the
/// hand-over of payloads is checked without fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Model {
    /// Only the code's own `store_load_fence` is a fence.
    Fences,
    /// A fence before every `SeqCst` access, as in code for processors with weak memory; the code's own fences do
    /// nothing, as on real atomics. It shows a load that is too weak.
    Leading,
    /// A fence after every `SeqCst` compare-and-swap, likewise. It shows a compare-and-swap that is too weak.
    Trailing,
    /// No fence at all: only acquire and release order a payload. With `--cfg nbbs_fenced` there are the code's own
    /// acquire and release, and nothing more.
    Bare,
}

static MODEL: AtomicU8 = AtomicU8::new(0);

impl Model {
    /// Makes this the model of all words.
    pub fn choose(self) {
        MODEL.store(self as u8, Ordering::Relaxed);
    }

    /// Returns whether the code was built with accesses that this models: `--cfg nbbs_fenced` leaves none for a fence
    /// to stand beside.
    pub fn is_of_this_build(self) -> bool {
        !cfg!(nbbs_fenced) || matches!(self, Self::Fences | Self::Bare)
    }

    /// Returns whether this is the model of all words.
    pub fn is_chosen(self) -> bool {
        MODEL.load(Ordering::Relaxed) == self as u8
    }
}

/// The number of threads of a race, including the main thread.
pub const LANES: usize = 4;

loom::thread_local! {
    static LANE: Cell<usize> = Cell::new(LANES - 1);
}

/// Gives the calling thread the notes of `lane`.
pub fn on_lane(lane: usize) {
    LANE.with(|mine| mine.set(lane));
}

/// A word of metadata.
#[derive(Debug)]
pub enum LoomWord {
    /// A word of the protocol, or a note that all threads share: any thread may see any value that the memory model
    /// allows.
    Shared(AtomicU64),
    /// A note of which each thread has its own, like threads on lanes of their own. Accesses are not steps of the race.
    Own([Plain; LANES]),
    /// A word that no step uses.
    Unused,
}

impl LoomWord {
    /// Creates a zero word for each thread.
    pub fn own() -> Self {
        Self::Own([const { Plain::new(0) }; LANES])
    }
}

impl Default for LoomWord {
    fn default() -> Self {
        Self::Shared(AtomicU64::new(0))
    }
}

impl Word for LoomWord {
    fn load(&self, order: Ordering) -> u64 {
        match self {
            Self::Own(words) => words[LANE.with(Cell::get)].load(order),
            Self::Unused => unreachable!("a word that no race uses"),
            Self::Shared(word) => {
                before_step();
                if order == Ordering::SeqCst && Model::Leading.is_chosen() {
                    fence(Ordering::SeqCst);
                }
                word.load(without_total_order(order, Ordering::Acquire))
            }
        }
    }

    fn store(&self, value: u64, order: Ordering) {
        match self {
            Self::Own(words) => words[LANE.with(Cell::get)].store(value, order),
            Self::Unused => unreachable!("a word that no race uses"),
            Self::Shared(word) => {
                before_step();
                word.store(value, order);
            }
        }
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        let Self::Shared(word) = self else { unreachable!("notes are never compared") };
        before_step();
        if success == Ordering::SeqCst && Model::Leading.is_chosen() {
            fence(Ordering::SeqCst);
        }
        let result = word.compare_exchange(
            current,
            new,
            without_total_order(success, Ordering::AcqRel),
            without_total_order(failure, Ordering::Acquire),
        );
        if success == Ordering::SeqCst && Model::Trailing.is_chosen() {
            fence(Ordering::SeqCst);
        }
        result
    }

    fn store_load_fence() {
        death::before_fence();
        if Model::Fences.is_chosen() {
            fence(Ordering::SeqCst);
        } else if cfg!(nbbs_fenced) && Model::Bare.is_chosen() {
            fence(Ordering::AcqRel);
        }
    }
}

/// Called before every access to a word that threads share.
fn before_step() {
    barrier::before_step();
    death::before_step();
}

fn without_total_order(order: Ordering, strongest: Ordering) -> Ordering {
    if order == Ordering::SeqCst { strongest } else { order }
}
