//! Allocation from the first zone of a preference list that has room.

use core::ops::Range;

use super::{Zone, Zones};
use crate::error::{AllocError, RequestError};
use crate::request::Request;
use crate::sync::Word;

impl<'a, W: Word> Zones<'a, W> {
    /// Allocates a block of `2^order` units from the first zone of `preference` that has one free.
    ///
    /// The block is aligned within its zone. Numbers in `preference` that no zone has are skipped.
    ///
    /// # Errors
    /// [`AllocError::Exhausted`] if none of these zones had one free when it was asked, each at an instant of its own,
    /// [`AllocError::OrderTooLarge`] with the largest order among them if all are too small, [`AllocError::NoZone`] if
    /// `preference` has no number of a zone.
    ///
    /// ```
    /// # use nbbs::{AllocError, Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 1 << 30, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// assert_eq!(zones.alloc(&[0], 6)?, 1 << 30);
    /// assert_eq!(zones.alloc(&[0], 0), Err(AllocError::Exhausted { units: 1 }));
    /// assert_eq!(zones.alloc(&[0], 9), Err(AllocError::OrderTooLarge { order: 9, max: 6 }));
    /// assert_eq!(zones.alloc(&[1], 0), Err(AllocError::NoZone { zones: 1 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc(&self, preference: &[usize], order: u32) -> Result<u64, AllocError> {
        let mut refusals = Refusals::after(AllocError::NoZone { zones: self.zones.len() });
        for zone in self.preferred(preference) {
            match self.lane_of(zone).alloc(order) {
                Ok(index) => return Ok(zone.base + index),
                Err(error) => refusals.add(error),
            }
        }
        Err(refusals.all)
    }

    /// Allocates up to `blocks.len()` blocks of `order` into `blocks`, from the zones of `preference` in turn, and
    /// returns how many, as [`Lane::alloc_batch`](crate::Lane::alloc_batch) does.
    ///
    /// # Errors
    /// Those of [`alloc`](Self::alloc), if not a single block is free.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = [const { Metadata::<{ nbbs::metadata_words(64) }>::new() }; 2];
    /// let zones = [
    ///     Zone { base: 0, buddy: Buddy::new(metadata[0].words(), 64)? },
    ///     Zone { base: 100, buddy: Buddy::new(metadata[1].words(), 64)? },
    /// ];
    /// let zones = Zones::new(&zones)?;
    /// let mut blocks = [0; 100];
    /// assert_eq!(zones.alloc_batch(&[1, 0], 0, &mut blocks)?, 100);
    /// assert_eq!(zones.zones()[0].buddy.stats().used_units, 36);
    /// zones.free_batch(0, &blocks)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_batch(
        &self,
        preference: &[usize],
        order: u32,
        blocks: &mut [u64],
    ) -> Result<usize, AllocError> {
        let mut refusals = Refusals::after(AllocError::NoZone { zones: self.zones.len() });
        let mut done = 0;
        for zone in self.preferred(preference) {
            match self.lane_of(zone).alloc_batch(order, &mut blocks[done..]) {
                Ok(count) => {
                    blocks[done..done + count].iter_mut().for_each(|index| *index += zone.base);
                    done += count;
                    if done == blocks.len() {
                        return Ok(done);
                    }
                }
                Err(error) => refusals.add(error),
            }
        }
        if done > 0 { Ok(done) } else { Err(refusals.all) }
    }

    /// Allocates a run that meets `request` from the first zone of `preference` that has one free.
    ///
    /// The request's range is in units numbered among all zones; its alignment is within the zone.
    ///
    /// # Errors
    /// [`RequestError::Exhausted`] if one of these zones has a place for such a run in its part of the range, but none
    /// is free now. Otherwise [`RequestError::NoPlace`] if one of them has the order and as many units, but no place in
    /// its part of the range, or if none of them has a part. Otherwise [`RequestError::OrderTooLarge`] with the largest
    /// order among the zones that have as many units, or [`RequestError::Units`] with the size of the largest zone if
    /// none has; zones without a part of the range do not count. [`RequestError::OutOfRange`] if the range is empty or
    /// backwards, [`RequestError::NoZone`] if `preference` has no number of a zone.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Request, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// assert_eq!(zones.request(&[0], Request::units(9).within(0..150).top_down())?, 141);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn request(&self, preference: &[usize], request: Request) -> Result<u64, RequestError> {
        let Range { start, end } = request.range.clone().unwrap_or(0..self.end());
        if request.range.is_some() && start >= end {
            return Err(RequestError::OutOfRange { start, end, units: self.end() });
        }
        let Request { units, order, .. } = request;
        let no_place = RequestError::NoPlace { units, order, start, end };
        let mut refusals = Refusals::after(RequestError::NoZone { zones: self.zones.len() });
        for zone in self.preferred(preference) {
            let mut here = request.clone();
            if let Some(range) = &request.range {
                let end = range.end.saturating_sub(zone.base).min(zone.buddy.units());
                let start = range.start.saturating_sub(zone.base);
                if start >= end {
                    refusals.add_as(no_place, Says::Outside);
                    continue;
                }
                here.range = Some(start..end);
            }
            match self.lane_of(zone).request(here) {
                Ok(index) => return Ok(zone.base + index),
                Err(RequestError::NoPlace { .. }) => refusals.add_as(no_place, Says::NoPlace),
                Err(error) => refusals.add(error),
            }
        }
        Err(refusals.all)
    }

    /// Allocates a run of exactly `units` consecutive units from the first zone of `preference` that has one free.
    ///
    /// # Errors
    /// Those of [`request`](Self::request).
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// let run = zones.alloc_units(&[0], 37)?;
    /// assert_eq!(zones.len_of(run), Ok(37));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_units(&self, preference: &[usize], units: u64) -> Result<u64, RequestError> {
        self.request(preference, Request::units(units))
    }

    /// Allocates units `index..index + units`, if they lie in one zone and are all free, and returns `index`.
    ///
    /// # Errors
    /// Those of [`Lane::alloc_at`](crate::Lane::alloc_at), if the units are of one zone; [`RequestError::InNoZone`] if
    /// the first is in none.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, RequestError, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// assert_eq!(zones.alloc_at(117, 30), Ok(117));
    /// assert_eq!(zones.alloc_at(146, 2), Err(RequestError::InUse { unit: 146 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_at(&self, index: u64, units: u64) -> Result<u64, RequestError> {
        self.on_lane(index, |lane, here| lane.alloc_at(here, units)).map(|_| index)
    }

    fn preferred(&self, preference: &[usize]) -> impl Iterator<Item = &'a Zone<'a, W>> {
        let zones = self.zones;
        preference.iter().filter_map(move |&number| zones.get(number))
    }
}

/// What a zone's refusal says of the others, from the least to the most: of two refusals the one that says more counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Says {
    /// No zone was asked.
    Nothing,
    /// The zone has no part of the range.
    Outside,
    /// The zone has too few units: this many.
    Units(u64),
    /// The zone has enough units, which is checked first, but no block of so large an order: this is its largest.
    Order(u32),
    /// The zone has both, but no place in its part of the range.
    NoPlace,
    /// The zone could have what was asked for, but it is not free now.
    Exhausted,
}

/// A refusal of a zone.
trait Refusal {
    fn says(&self) -> Says;
}

impl Refusal for AllocError {
    fn says(&self) -> Says {
        match *self {
            Self::NoZone { .. } => Says::Nothing,
            Self::OrderTooLarge { max, .. } => Says::Order(max),
            Self::Exhausted { .. } => Says::Exhausted,
        }
    }
}

impl Refusal for RequestError {
    fn says(&self) -> Says {
        match *self {
            Self::NoZone { .. } => Says::Nothing,
            Self::Units { max, .. } => Says::Units(max),
            Self::OrderTooLarge { max, .. } => Says::Order(max),
            _ => Says::Exhausted,
        }
    }
}

/// The combined refusal of several zones.
struct Refusals<E> {
    all: E,
    says: Says,
}

impl<E: Refusal> Refusals<E> {
    /// Creates the refusal of no zone.
    fn after(none: E) -> Self {
        Self { all: none, says: Says::Nothing }
    }

    fn add(&mut self, error: E) {
        let says = error.says();
        self.add_as(error, says);
    }

    fn add_as(&mut self, error: E, says: Says) {
        if says > self.says {
            *self = Self { all: error, says };
        }
    }
}
