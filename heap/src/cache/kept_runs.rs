//! The runs that a cache keeps: larger than any slot, each handed out again for as many units as it has, or for somewhat
//! fewer to a caller that frees it by its address alone.

use core::ops::Range;
use core::ptr::{NonNull, null_mut};

use super::waiting;
use crate::class::is_aligned;
use crate::slabs::Lot;
use crate::watch;

/// The most runs that a cache keeps.
const MOST: usize = 8;

/// From this count of runs that were given back unused on, only one of as many runs is kept.
const IN_VAIN: usize = 16;

/// A kept run that is handed out again takes this many from that count.
const WORTH: usize = 4;

/// Runs, the one that was freed last at the end. If it is all zero, there are none.
#[derive(Debug)]
pub struct KeptRuns {
    /// Address and units.
    runs: [(*mut u8, u64); MOST],
    len: usize,
    /// The units of all of them.
    units: u64,
    /// How many kept runs were given back unused, less [`WORTH`] for each that was handed out again; from [`IN_VAIN`]
    /// on also those that were not kept.
    in_vain: usize,
}

impl KeptRuns {
    /// Whether runs are kept. Where free memory is watched, waits, or is handed out in any order, only slots are, which
    /// have all that.
    pub const ON: bool = !watch::ON && !waiting::ON && !Lot::DRAWS;

    pub const fn new() -> Self {
        Self { runs: [(null_mut(), 0); MOST], len: 0, units: 0, in_vain: 0 }
    }

    fn kept(&self) -> &[(*mut u8, u64)] {
        self.runs.get(..self.len).unwrap_or(&[])
    }

    /// Takes the newest run that has so many units and is aligned to a power of two.
    pub fn take(&mut self, units: u64, align: usize) -> Option<NonNull<u8>> {
        let fits = |&(at, its): &(*mut u8, u64)| its == units && is_aligned(at.addr(), align);
        let place = self.kept().iter().rposition(fits)?;
        self.hand_out(place)
    }

    /// Takes the shortest run that has so many units and is aligned to a power of two.
    pub fn take_shortest(&mut self, units: Range<u64>, align: usize) -> Option<NonNull<u8>> {
        let all = self.kept().iter().enumerate();
        let fit = all.filter(|(_, (at, its))| units.contains(its) && is_aligned(at.addr(), align));
        let (place, _) = fit.min_by_key(|(_, (_, its))| its)?;
        self.hand_out(place)
    }

    fn hand_out(&mut self, place: usize) -> Option<NonNull<u8>> {
        self.in_vain = self.in_vain.saturating_sub(WORTH);
        self.remove(place).map(|(at, _)| at)
    }

    /// Returns whether a run should be kept. A program that seldom asks twice for as many units gains nothing by that.
    pub fn is_worth_keeping(&mut self) -> bool {
        if self.in_vain >= 2 * IN_VAIN {
            self.in_vain = IN_VAIN;
            return true;
        }
        let gains = self.in_vain < IN_VAIN;
        self.in_vain += usize::from(!gains);
        gains
    }

    /// Takes the run that was freed first, which was kept in vain.
    pub fn take_oldest(&mut self) -> Option<(NonNull<u8>, u64)> {
        let oldest = self.remove(0)?;
        self.in_vain += 1;
        Some(oldest)
    }

    fn remove(&mut self, place: usize) -> Option<(NonNull<u8>, u64)> {
        let &(at, units) = self.kept().get(place)?;
        self.runs.copy_within(place + 1..self.len, place);
        self.len -= 1;
        self.units -= units;
        Some((NonNull::new(at)?, units))
    }

    /// Keeps a run, if there is room for it, and all have at most `most` units then. Returns whether it does.
    pub fn add(&mut self, at: NonNull<u8>, units: u64, most: u64) -> bool {
        let all = self.units + units;
        match self.runs.get_mut(self.len) {
            Some(place) if all <= most => {
                *place = (at.as_ptr(), units);
                self.len += 1;
                self.units = all;
                true
            }
            _ => false,
        }
    }

    /// Calls `visit` for all runs, with their units.
    pub fn each(&self, mut visit: impl FnMut(NonNull<u8>, u64)) {
        for &(at, units) in self.kept() {
            NonNull::new(at).into_iter().for_each(|at| visit(at, units));
        }
    }

    /// Returns whether a run there is kept.
    pub fn has(&self, at: NonNull<u8>) -> bool {
        self.kept().iter().any(|&(kept, _)| kept == at.as_ptr())
    }
}

#[cfg(test)]
mod tests {
    use super::{IN_VAIN, KeptRuns, MOST, NonNull};

    fn at(address: usize) -> NonNull<u8> {
        NonNull::without_provenance(address.try_into().unwrap())
    }

    fn all(runs: &KeptRuns) -> Vec<(usize, u64)> {
        let mut all = Vec::new();
        runs.each(|at, units| all.push((at.addr().get(), units)));
        all
    }

    #[test]
    fn the_newest_of_that_length_and_alignment() {
        let mut runs = KeptRuns::new();
        for (address, units) in [(1 << 20, 40), (2 << 20, 40), (3 << 10, 40), (4 << 10, 50)] {
            assert!(runs.add(at(address), units, 1000) && runs.has(at(address)));
        }
        assert_eq!((runs.take(41, 1), runs.take_shortest(41..50, 1)), (None, None));
        assert_eq!(runs.take(50, 8192), None);
        assert_eq!(runs.take_shortest(45..51, 8192), None);
        assert_eq!(runs.take(40, 4096), Some(at(2 << 20)));
        assert_eq!(all(&runs), [(1 << 20, 40), (3 << 10, 40), (4 << 10, 50)]);
        assert_eq!(runs.take_shortest(30..51, 2048), Some(at(1 << 20)));
        assert!(!runs.has(at(1 << 20)));
        assert_eq!(runs.take_oldest(), Some((at(3 << 10), 40)));
        assert_eq!(runs.take_oldest(), Some((at(4 << 10), 50)));
        assert_eq!(runs.take_oldest(), None);
    }

    #[test]
    fn few_are_kept_in_vain() {
        let mut runs = KeptRuns::new();
        let keep = |runs: &mut KeptRuns, number: usize| {
            let is_kept = runs.is_worth_keeping();
            if is_kept {
                while !runs.add(at(number << 10), number as u64, u64::MAX) {
                    runs.take_oldest();
                }
            }
            usize::from(is_kept)
        };
        let kept: usize = (1..=100 * IN_VAIN).map(|number| keep(&mut runs, number)).sum();
        assert!((90..150).contains(&kept), "{kept} of {}", 100 * IN_VAIN);
        let (_, units) = *all(&runs).last().unwrap();
        // Once one is of use, so are more.
        let mut pair =
            |_| usize::from(runs.take(units, 1).is_some()) * keep(&mut runs, units as usize);
        let kept: usize = (0..100).map(&mut pair).sum();
        assert!(kept >= 80, "{kept}");
    }

    #[test]
    fn so_many_runs_and_units_at_most() {
        let mut runs = KeptRuns::new();
        assert!(runs.add(at(1 << 10), 60, 100) && !runs.add(at(2 << 10), 41, 100));
        assert!(runs.add(at(2 << 10), 40, 100) && runs.take_oldest().is_some());
        assert!(runs.add(at(3 << 10), 60, 100));
        assert_eq!(all(&runs), [(2 << 10, 40), (3 << 10, 60)]);
        let more = (4..).take_while(|&number| runs.add(at(number << 10), 1, u64::MAX));
        assert_eq!(more.count(), MOST - 2);
    }
}
