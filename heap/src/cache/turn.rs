//! Turns: which operation may use a cache, where callers only interrupt each other, and where they may be anywhere.

use core::sync::atomic::{Ordering, compiler_fence};

use crate::words::HeapFlag;

/// Whose turn it is to use a cache. All zero if it is nobody's.
#[derive(Debug)]
pub struct Turn(HeapFlag);

impl Turn {
    pub const fn new() -> Self {
        Self(HeapFlag::new(false))
    }

    /// Begins an operation of any caller. Returns `false` if another has not ended.
    #[inline]
    pub fn enter(&self) -> bool {
        // Acquire: pairs with the Release in `leave`, of the caller that had the cache before.
        !self.0.swap(true, Ordering::Acquire)
    }

    /// Ends what `enter` began.
    #[inline]
    pub fn leave(&self) {
        // Release: pairs with the Acquire in `enter`.
        self.0.store(false, Ordering::Release);
    }

    /// Begins an operation without a read-modify-write. Returns `false` if this one interrupts another, which has not
    /// ended.
    ///
    /// The result means nothing unless of two operations one ends before the other begins, in the order of
    /// happens-before, or one interrupts the other and ends before that continues.
    #[inline]
    pub fn enter_nested(&self) -> bool {
        // Both Relaxed: only handlers matter, to which what they interrupt is in order; the fence keeps the compiler
        // from changing that. A handler between the load and the store is over before the store, and has left the cache
        // free.
        if self.0.load(Ordering::Relaxed) {
            return false;
        }
        self.0.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        true
    }

    /// Ends what `enter_nested` began.
    #[inline]
    pub fn leave_nested(&self) {
        compiler_fence(Ordering::SeqCst);
        // Relaxed: as above. Callers that do not interrupt each other are in order by themselves.
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::Turn;
    use crate::words::{interrupt, interrupted};

    /// How an operation begins, and how it ends.
    type Way = (fn(&Turn) -> bool, fn(&Turn));

    const ANY: Way = (Turn::enter, Turn::leave);
    const NESTED: Way = (Turn::enter_nested, Turn::leave_nested);

    /// A cache, and how many operations used it, or went past it.
    struct Scene {
        turn: Turn,
        is_used: Cell<bool>,
        used: Cell<usize>,
        past: Cell<usize>,
        /// The ways of operations: the next, what interrupts that, and so on.
        ways: Cell<&'static [Way]>,
    }

    impl Scene {
        const fn new() -> Self {
            let (used, past) = (Cell::new(0), Cell::new(0));
            Self { turn: Turn::new(), is_used: Cell::new(false), used, past, ways: Cell::new(&[]) }
        }

        /// Runs an operation. Before each of its accesses, and while it uses the cache, another interrupts it.
        fn run(&self) {
            let ways = self.ways.get();
            let Some((&(enter, leave), inner)) = ways.split_first() else { return };
            self.ways.set(inner);
            if enter(&self.turn) {
                assert!(!self.is_used.replace(true), "two use the cache");
                interrupt();
                self.is_used.set(false);
                self.used.set(self.used.get() + 1);
                leave(&self.turn);
            } else {
                self.past.set(self.past.get() + 1);
            }
            self.ways.set(ways);
        }
    }

    std::thread_local! {
        static SCENE: Scene = const { Scene::new() };
    }

    #[test]
    fn handlers_go_past_a_cache_in_use() {
        // The handler comes before the load, before the store, in the middle, and before the last store; or there is a
        // swap in place of the first two.
        for (ways, used, past) in [
            (&[NESTED, NESTED] as &[_], 3, 2),
            (&[ANY, ANY], 2, 2),
            (&[NESTED, ANY], 3, 2),
            (&[ANY, NESTED], 2, 2),
            (&[NESTED, NESTED, NESTED], 7, 8),
            (&[NESTED, ANY, NESTED], 5, 8),
        ] {
            let run = |scene: &Scene| {
                scene.ways.set(ways);
                [&scene.used, &scene.past].into_iter().for_each(|count| count.set(0));
                interrupted(|| SCENE.with(Scene::run), || scene.run());
                assert_eq!((scene.used.get(), scene.past.get()), (used, past));
                assert!(scene.turn.enter(), "it never ends");
                scene.turn.leave();
            };
            SCENE.with(run);
        }
    }
}
