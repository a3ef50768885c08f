//! Words that count the read-modify-writes made on them.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;

use nbbs::sync::{Ordering, Word};

thread_local! {
    static READ_MODIFY_WRITES: Cell<u64> = const { Cell::new(0) };
}

/// A metadata word; every compare-and-swap on it, won or lost, counts for the thread that made it.
#[derive(Debug, Default)]
pub struct Counted(AtomicU64);

impl From<u64> for Counted {
    fn from(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
}

impl Word for Counted {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        READ_MODIFY_WRITES.set(READ_MODIFY_WRITES.get() + 1);
        self.0.compare_exchange(current, new, success, failure)
    }
}

/// Read-modify-writes that this thread makes on [`Counted`] words while `work` runs.
pub fn count<R>(work: impl FnOnce() -> R) -> (R, u64) {
    let before = READ_MODIFY_WRITES.get();
    let result = work();
    (result, READ_MODIFY_WRITES.get() - before)
}

#[cfg(test)]
mod tests {
    use super::{Counted, count};
    use nbbs::sync::{Ordering::SeqCst, Word};

    #[test]
    fn counts_won_and_lost_swaps_and_nothing_else() {
        let word = Counted::from(1);
        let ((), steps) = count(|| {
            word.store(2, SeqCst);
            assert_eq!(word.load(SeqCst), 2);
            assert_eq!(word.compare_exchange(2, 3, SeqCst, SeqCst), Ok(2));
            assert_eq!(word.compare_exchange(2, 4, SeqCst, SeqCst), Err(3));
        });
        assert_eq!(steps, 2);
    }
}
