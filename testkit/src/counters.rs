//! Sets the wrapping counters in an arena's metadata to their last values, so that tests see them wrap.

use nbbs::sync::{Ordering, Word};

use crate::program::Arena;

/// The version of an inner word: see the picture in DESIGN.md.
const VERSION: u64 = ((1 << 25) - 1) << 32;
/// The words of a lane. Reservations are on lane 0, which comes first.
const LANE_WORDS: usize = nbbs::lane_words(1);

/// The places of the version of each inner word, and of the epoch.
///
/// ```
/// use testkit::{Counters, program::Arena};
///
/// let arena: Arena = Arena::new(600);
/// let counters = Counters::of(&arena);
/// counters.preset(arena.words(), 0);
/// arena.buddy().reserve(0..1)?;
/// arena.buddy().release(0..1)?; // merges up to the top
/// assert_eq!(counters.wrapped(arena.words()), 3); // a version on each level above the leaves, and the epoch
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Counters {
    inner: Vec<usize>,
    epoch: Option<usize>,
}

impl Counters {
    /// Finds the counters of arenas like this one.
    ///
    /// It makes and undoes a reservation in every leaf word of a second arena, and looks at what is left there: each
    /// inner word has been marked and has a version, and inspections above level 1 have ended epochs. Everything else,
    /// except lane 0, is zero.
    ///
    /// # Panics
    /// If something else is not zero: then the layout of the metadata has changed since this was written.
    #[must_use]
    pub fn of<W: Word + Default>(arena: &Arena<W>) -> Self {
        let units = arena.buddy().units();
        let other = Arena::<W>::new(units);
        // A leaf word describes at least two units.
        for unit in (0..units).step_by(2) {
            let both_ways =
                [other.buddy().reserve(unit..unit + 1), other.buddy().release(unit..unit + 1)];
            assert_eq!(both_ways, [Ok(()); 2], "unit {unit} of {units}");
        }
        let left = |&place: &usize| other.words()[place].load(Ordering::Relaxed);
        let changed = (LANE_WORDS..other.words().len()).filter(|place| left(place) != 0);
        let (inner, epoch): (Vec<_>, Vec<_>) =
            changed.partition(|place| left(place) & VERSION != 0);
        assert!(epoch.len() <= 1, "{units} units: no versions in {epoch:?}");
        Self { inner, epoch: epoch.first().copied() }
    }

    /// Returns the number of counters.
    #[must_use]
    pub fn count(&self) -> usize {
        self.inner.len() + usize::from(self.epoch.is_some())
    }

    /// Sets all counters to `before` less than the last value. Must be called before anything happens in the arena.
    pub fn preset<W: Word>(&self, words: &[W], before: u64) {
        for &place in &self.inner {
            let old = words[place].load(Ordering::Relaxed);
            words[place].store(old | (VERSION - (before << 32)), Ordering::Relaxed);
        }
        if let Some(epoch) = self.epoch {
            words[epoch].store(u64::MAX - before, Ordering::Relaxed);
        }
    }

    /// Returns how many of them have wrapped since.
    #[must_use]
    pub fn wrapped<W: Word>(&self, words: &[W]) -> usize {
        let value = |&place: &usize| words[place].load(Ordering::Relaxed);
        let versions = self.inner.iter().filter(|place| value(place) & VERSION < VERSION / 2);
        versions.count() + self.epoch.iter().filter(|place| value(place) < u64::MAX / 2).count()
    }
}
