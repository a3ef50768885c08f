//! Finds refusals that are certainly wrong, on any number of threads.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use testkit::BackEnd;

/// A back-end whose refusals are judged. The refusal of a single unit is *spurious* if, from the call to its return,
/// there always was a unit that nobody held, was being given, or was giving back. (For larger blocks, counts cannot
/// tell.)
pub struct Judged<'a> {
    back_end: &'a dyn BackEnd,
    /// The number of units that are held or in the hands of an operation. At any instant it is not too low.
    busy: AtomicU64,
    /// How often an operation found all units busy as it began.
    full: AtomicU64,
    spurious: AtomicU64,
}

impl<'a> Judged<'a> {
    /// Wraps a back-end of which nothing is held.
    pub fn new(back_end: &'a dyn BackEnd) -> Self {
        let [busy, full, spurious] = [const { AtomicU64::new(0) }; 3];
        Self { back_end, busy, full, spurious }
    }

    /// Returns the number of spurious refusals.
    pub fn spurious(&self) -> u64 {
        self.spurious.load(SeqCst)
    }
}

impl BackEnd for Judged<'_> {
    fn units(&self) -> u64 {
        self.back_end.units()
    }

    fn max_order(&self) -> u32 {
        self.back_end.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.back_end.metadata_bytes()
    }

    /// An operation that finds all units busy says so before it asks. If nobody said so during a call, and the call did
    /// not find so itself, a unit was left for it all the time.
    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        let units = 1 << order;
        let full = self.full.load(SeqCst);
        let has_room = self.busy.fetch_add(units, SeqCst) + units <= self.units();
        if !has_room {
            self.full.fetch_add(1, SeqCst);
        }
        let index = self.back_end.alloc(lane, order);
        if index.is_none() {
            let is_wrong = order == 0 && has_room && self.full.load(SeqCst) == full;
            self.spurious.fetch_add(u64::from(is_wrong), SeqCst);
            self.busy.fetch_sub(units, SeqCst);
        }
        index
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        let freed = self.back_end.free(lane, index, order);
        if freed.is_ok() {
            self.busy.fetch_sub(1 << order, SeqCst);
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use testkit::BackEnd;

    use super::Judged;
    use crate::market::find;

    /// Refuses every third allocation, for no reason.
    struct Moody<'a>(&'a dyn BackEnd, AtomicU64);

    impl BackEnd for Moody<'_> {
        fn units(&self) -> u64 {
            self.0.units()
        }

        fn max_order(&self) -> u32 {
            self.0.max_order()
        }

        fn metadata_bytes(&self) -> usize {
            self.0.metadata_bytes()
        }

        fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
            let call = self.1.fetch_add(1, Relaxed);
            (call % 3 < 2).then(|| self.0.alloc(lane, order)).flatten()
        }

        fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
            self.0.free(lane, index, order)
        }
    }

    #[test]
    fn what_is_refused_for_no_reason_counts() {
        find("nbbs").unwrap().with_back_end(64, |back_end| {
            let moody = Moody(back_end, AtomicU64::new(0));
            let judged = Judged::new(&moody);
            let got = (0..30).filter_map(|_| judged.alloc(0, 0)).count();
            assert_eq!((got, judged.spurious()), (20, 10));
        });
    }

    #[test]
    fn what_is_refused_for_want_of_units_does_not() {
        find("nbbs").unwrap().with_back_end(64, |back_end| {
            let judged = Judged::new(back_end);
            // After a refusal it frees a block.
            let churn = |lane| {
                let (mut held, mut refused) = (Vec::new(), 0);
                while refused < 1000 {
                    let unit = judged.alloc(lane, 0);
                    held.extend(unit);
                    if unit.is_none() {
                        refused += 1;
                        held.pop().map_or(Ok(()), |unit| judged.free(lane, unit, 0)).unwrap();
                    }
                }
            };
            std::thread::scope(|scope| {
                let other = scope.spawn(|| churn(1));
                churn(0);
                other.join().unwrap();
            });
            assert_eq!(judged.spurious(), 0);
        });
    }
}
