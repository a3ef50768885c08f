//! An allocator with the oracle beside it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ask::{Ask, No};
use crate::{BackEnd, Block, Oracle, Spec, Violation, check_whole};

/// An allocator that passes every operation on to another, checks the answer, and remembers the first violation.
///
/// ```
/// use testkit::{BackEnd, Checked};
///
/// let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// let checked = Checked::sequential(nbbs::Buddy::new(metadata.words(), 64)?);
/// let block = checked.alloc(0, 6).expect("the whole arena");
/// assert_eq!(checked.alloc(0, 0), None); // honest: no unit is free
/// checked.free(0, block, 6)?;
/// checked.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Checked<B> {
    back_end: B,
    oracle: Oracle,
    /// Present if operations run one at a time, so that refusals can be judged.
    spec: Option<Mutex<Spec>>,
    first: Mutex<Option<Violation>>,
}

impl<B: BackEnd> Checked<B> {
    /// Wraps an allocator for any number of threads: overlaps are checked, refusals are not.
    pub fn concurrent(back_end: B) -> Self {
        let oracle = Oracle::of(&back_end);
        Self { back_end, oracle, spec: None, first: Mutex::new(None) }
    }

    /// Wraps an allocator, runs operations one at a time, whichever thread calls, and checks that each refusal is
    /// honest: that no block of the order is free.
    pub fn sequential(back_end: B) -> Self {
        let spec = Some(Mutex::new(Spec::new(back_end.units())));
        Self { spec, ..Self::concurrent(back_end) }
    }

    /// Returns the allocator, unchecked.
    pub fn back_end(&self) -> &B {
        &self.back_end
    }

    /// Returns the owner map.
    pub fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// Returns the first violation so far.
    pub fn violation(&self) -> Option<Violation> {
        lock(&self.first).clone()
    }

    /// Ends the check. Must be called when everything has been returned and nothing runs.
    ///
    /// # Errors
    /// The first violation so far, or else a unit that is still held, or else an order that cannot be allocated in
    /// full.
    pub fn finish(&self) -> Result<(), Violation> {
        self.violation().map_or(Ok(()), Err)?;
        self.oracle.check_empty()?;
        check_whole(&self.back_end, &self.oracle)
    }

    fn remember<T>(&self, result: Result<T, Violation>) {
        if let Err(violation) = result {
            lock(&self.first).get_or_insert(violation);
        }
    }

    fn check_alloc(
        &self,
        lane: usize,
        order: u32,
        answer: Option<u64>,
        spec: Option<&mut Spec>,
    ) -> Result<(), Violation> {
        match (answer, spec) {
            (Some(index), None) => self.oracle.take(lane, index, order).map(|_| ()),
            (Some(index), Some(spec)) => {
                self.oracle.take(lane, index, order)?;
                spec.grant(index, order);
                Ok(())
            }
            (None, Some(spec)) if order <= self.back_end.max_order() => spec.check_refusal(order),
            (None, _) => Ok(()),
        }
    }
}

impl<B: BackEnd> BackEnd for Checked<B> {
    fn units(&self) -> u64 {
        self.back_end.units()
    }

    fn max_order(&self) -> u32 {
        self.back_end.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.back_end.metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        let mut spec = self.spec.as_ref().map(lock);
        let answer = self.back_end.alloc(lane, order);
        self.remember(self.check_alloc(lane, order, answer, spec.as_deref_mut()));
        answer
    }

    /// The free of a block that nobody holds must be refused; this is only certain if operations run one at a time.
    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        let mut spec = self.spec.as_ref().map(lock);
        let block = Block { index, order };
        let held = order < 63 && self.oracle.holds(block);
        if held {
            self.remember(self.oracle.give(block));
            if let Some(spec) = spec.as_deref_mut() {
                spec.give_back(index);
            }
        }
        let answer = self.back_end.free(lane, index, order);
        match &answer {
            Ok(()) if !held => self.remember::<()>(Err(Violation::FreeAccepted { block })),
            Err(reason) if held => {
                let reason = reason.clone();
                self.remember::<()>(Err(Violation::FreeRefused { block, reason }));
            }
            _ => {}
        }
        answer
    }
}

/// An allocator by reference.
impl<B: BackEnd + ?Sized> BackEnd for &B {
    fn units(&self) -> u64 {
        (**self).units()
    }

    fn max_order(&self) -> u32 {
        (**self).max_order()
    }

    fn metadata_bytes(&self) -> usize {
        (**self).metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        (**self).alloc(lane, order)
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        (**self).free(lane, index, order)
    }

    fn offers_runs(&self) -> bool {
        (**self).offers_runs()
    }

    fn ask(&self, lane: usize, ask: Ask<'_>) -> Result<u64, No> {
        (**self).ask(lane, ask)
    }
}

/// Locks a mutex, also after a panic elsewhere, which must not hide the first violation.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
