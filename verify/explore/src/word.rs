//! A word of metadata whose every access is a step of the search.

use std::marker::PhantomData;

use nbbs::Shape;
use nbbs::sync::{Ordering, Word};

use crate::search::{Step, access};

/// A shape of words, as a type.
pub trait Form: 'static {
    /// log2 of the units of a leaf word, and of the slots of an inner word.
    const LEAF: u32;
    const FAN: u32;
    /// log2 of the units for which there is a lane, if there are fewer than four lanes.
    const LANE: u32 = 2;
}

/// Leaf words of four units, inner words of two slots.
pub struct Two;

impl Form for Two {
    const LEAF: u32 = 2;
    const FAN: u32 = 1;
}

/// As [`Two`], with one lane that everybody shares.
pub struct Shared;

impl Form for Shared {
    const LEAF: u32 = 2;
    const FAN: u32 = 1;
    const LANE: u32 = 10;
}

/// Leaf words of four units, inner words of four slots.
pub struct Four;

impl Form for Four {
    const LEAF: u32 = 2;
    const FAN: u32 = 2;
}

/// A word that only knows its place: the search has its value, and can undo changes of it.
pub struct Explored<F> {
    place: u32,
    form: PhantomData<fn() -> F>,
}

impl<F> Explored<F> {
    /// Returns the words at places from 0 to `count`.
    pub fn many(count: usize) -> Box<[Self]> {
        (0..count as u32).map(|place| Self { place, form: PhantomData }).collect()
    }
}

impl<F: Form> Word for Explored<F> {
    const SHAPE: Shape = Shape::new(F::LEAF, F::FAN, F::LANE);

    fn load(&self, _: Ordering) -> u64 {
        access(self.place, Step::Load)
    }

    fn store(&self, value: u64, _: Ordering) {
        access(self.place, Step::Store(value));
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        _: Ordering,
        _: Ordering,
    ) -> Result<u64, u64> {
        let found = access(self.place, Step::Swap { current, new });
        if found == current { Ok(found) } else { Err(found) }
    }
}
