//! Every kind of word does the same.

use super::{Ordering, Pointer, Word};
use core::cell::Cell;
use core::sync::atomic::AtomicU64;

/// A word that has only the required methods: the rest is made of them.
struct Plain(Cell<u64>);

// SAFETY: cells are not shared.
unsafe impl Word for Plain {
    type Pointer<P> = Cell<*mut P>;

    fn new(value: u64) -> Self {
        Self(Cell::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        Word::load(&self.0, order)
    }

    fn store(&self, value: u64, order: Ordering) {
        Word::store(&self.0, value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        Word::compare_exchange(&self.0, current, new, success, failure)
    }
}

fn use_it<W: Word>() {
    use Ordering::{Relaxed, SeqCst};
    let word = W::new(0b1100);
    assert_eq!(word.fetch_or(0b0110, SeqCst), 0b1100);
    assert_eq!(word.fetch_and(0b0111, SeqCst), 0b1110);
    assert_eq!(word.swap(9, SeqCst), 0b0110);
    assert_eq!(word.compare_exchange(8, 1, SeqCst, Relaxed), Err(9));
    assert_eq!(word.compare_exchange(9, 2, SeqCst, Relaxed), Ok(9));
    assert_eq!(word.load(SeqCst), 2);
    word.store(3, SeqCst);
    assert_eq!(word.load(SeqCst), 3);

    let (mut one, pointer) = (1, W::Pointer::<u8>::null());
    let none = core::ptr::null_mut();
    assert_eq!(pointer.load(SeqCst), none);
    assert_eq!(pointer.compare_exchange(&mut one, none, SeqCst, Relaxed), Err(none));
    assert_eq!(pointer.compare_exchange(none, &mut one, SeqCst, Relaxed), Ok(none));
    assert_eq!(pointer.load(SeqCst), &raw mut one);
}

#[test]
fn words_are_words() {
    use_it::<AtomicU64>();
    use_it::<Cell<u64>>();
    use_it::<Plain>();
}
