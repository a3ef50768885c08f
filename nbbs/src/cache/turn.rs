//! Turns: which operation may use a CPU's cache, and how the cache is drained.

use core::sync::atomic::{Ordering, compiler_fence};

use super::cpus::Caches;
use super::front::Front;
use super::stacks::{ASKED, BUSY, PART_WORDS, Stacks};
use crate::api::Lane;
use crate::sync::Word;

/// Somebody has asked for the blocks.
const ASK: u64 = 1;
/// Somebody else is emptying the cache.
const TAKEN: u64 = 2;

/// The words of one CPU.
pub(super) struct Part<'a, W>(&'a [W; PART_WORDS]);

impl<W: Word> Stacks for Part<'_, W> {
    #[inline(always)]
    fn get(&self, at: usize, order: Ordering) -> u64 {
        self.0[at].load(order)
    }

    #[inline(always)]
    fn set(&mut self, at: usize, value: u64, order: Ordering) {
        self.0[at].store(value, order);
    }
}

impl<W: Word> Part<'_, W> {
    /// Ends an operation.
    #[inline(always)]
    fn end(&self) {
        compiler_fence(Ordering::SeqCst);
        // Release: pairs with the Acquire in `drain_taken`.
        self.0[BUSY].store(0, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    }

    /// Takes the cache from its CPU, from the next barrier on. `false`: somebody else has taken it. The taker does what
    /// was requested so far, or requests it again.
    fn take(&self) -> bool {
        // SeqCst: before the caller's barrier, after which `enter` sees it. Acquire: from the last taker.
        self.change(TAKEN, |_| TAKEN, Ordering::SeqCst)
    }

    /// Puts a taken cache to use again, with or without the request `asked`. Requests made in the meantime are kept.
    fn untake(&self, asked: u64) {
        // Release: pairs with the Acquire in `enter`, and with that in `take`.
        self.change(0, |old| old & !TAKEN | asked, Ordering::Release);
    }

    fn ask(&self) {
        // Relaxed: it only announces a request. The loads in `leave` and `past` see it sooner or later.
        self.change(ASK, |old| old | ASK, Ordering::Relaxed);
    }

    /// Changes the request word, unless it has the bits `unless`. Returns whether it did.
    fn change(&self, unless: u64, to: impl Fn(u64) -> u64, order: Ordering) -> bool {
        // Relaxed, also on failure: the value is only compared.
        let mut old = self.get(ASKED, Ordering::Relaxed);
        while old & unless == 0 {
            match self.0[ASKED].compare_exchange(old, to(old), order, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(found) => old = found,
            }
        }
        false
    }
}

/// Caches that were taken from their CPUs in vain, since the barrier panicked.
struct InVain<'c, 'a, W: Word>(&'c Caches<'a, W>);

impl<W: Word> Drop for InVain<'_, '_, W> {
    fn drop(&mut self) {
        self.0.each().rev().for_each(|part| part.untake(ASK));
    }
}

impl<'a, W: Word> Caches<'a, W> {
    /// Gives back everything that the CPU keeps.
    ///
    /// Like every operation, it may only be called by the CPU itself: before it sleeps, or in the handler of an
    /// interrupt from another CPU. If the handler interrupts an operation, the cache is drained at the end of that
    /// operation. If another CPU is in [`drain_all`](Self::drain_all) at that moment, draining may be left to it, or to
    /// this CPU's next operation.
    ///
    /// Cost: a read-modify-write for each word in which the blocks lie. Callable from interrupt and signal handlers.
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words());
    /// let block = caches.alloc(0, 2)?;
    /// caches.drain(0);
    /// assert_eq!(buddy.stats().used_units, 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain(&self, cpu: usize) {
        match self.enter(cpu) {
            Some(mut part) => {
                self.front(cpu).drain(&mut part);
                self.leave(cpu, &part);
            }
            None => self.ask(cpu),
        }
    }

    /// Asks a CPU to give back everything that it keeps, with its next operation.
    ///
    /// Cost: a load, and a read-modify-write if nobody has asked yet. Callable by any CPU, and from interrupt and
    /// signal handlers.
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words());
    /// let block = caches.alloc(0, 0)?;
    /// caches.ask(0);
    /// caches.free_sized(0, block, 0)?;
    /// assert_eq!(caches.cached().units, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ask(&self, cpu: usize) {
        if let Some(part) = self.part(cpu) {
            part.ask();
        }
    }

    /// Asks all CPUs, as [`ask`](Self::ask) asks one, with its cost for each. Callable by any CPU, and from interrupt
    /// and signal handlers.
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words());
    /// caches.alloc(0, 0)?;
    /// caches.ask_all();
    /// caches.alloc(0, 0)?;
    /// assert_eq!(caches.cached().units, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ask_all(&self) {
        self.each().for_each(|part| part.ask());
    }

    /// Gives back everything that all CPUs keep, without their help, so that idle ones are drained too.
    ///
    /// `barrier` must return only after every CPU that may be in an operation has passed a full memory barrier: by an
    /// interrupt sent to all, or by `membarrier` if CPUs are threads. If it does not, units may be handed out twice.
    /// While the caches are drained, their CPUs bypass them. A CPU that is in the middle of an operation is asked
    /// instead. So are all CPUs, without a barrier, if another call of this method is running, and after `barrier` has
    /// panicked.
    ///
    /// Cost: two read-modify-writes for each CPU, the barrier, and a read-modify-write for each word in which the
    /// blocks lie. Callable by any CPU, and from interrupt and signal handlers if `barrier` is. A caller that dies in
    /// it leaves the caches to [`recover`](Self::recover), and the blocks that it was giving back are lost.
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words());
    /// caches.alloc(1, 0)?;
    /// caches.drain_all(|| {}); // there is no other thread
    /// assert_eq!(caches.cached().units, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain_all(&self, barrier: impl FnOnce()) {
        // The call that takes the first takes them all.
        if !self.part(0).is_some_and(|first| first.take()) {
            return self.ask_all();
        }
        self.each().skip(1).for_each(|part| _ = part.take());
        let in_vain = InVain(self);
        barrier();
        core::mem::forget(in_vain);
        (0..self.cpus()).rev().for_each(|cpu| self.drain_taken(cpu));
    }

    /// Drains the cache of another CPU, which bypasses it in the meantime, unless that CPU is in the middle of an
    /// operation.
    fn drain_taken(&self, cpu: usize) {
        let Some(mut part) = self.part(cpu) else { return };
        // Acquire: pairs with the Release in `end`. This load comes after the barrier: it sees an operation that began
        // before the barrier, and an operation that begins after it sees that the cache is taken.
        let is_busy = part.get(BUSY, Ordering::Acquire) != 0;
        if !is_busy {
            self.front(cpu).drain(&mut part);
        }
        part.untake(if is_busy { ASK } else { 0 });
    }

    /// Puts the cache of a CPU to use again after its user died in the middle of an operation, or a caller died in
    /// [`drain_all`](Self::drain_all). Until then all operations bypass the cache.
    ///
    /// What the dead caller had in hand is lost: at most the block that it was allocating or freeing, and the blocks that
    /// it was taking from the buddy allocator or giving back; when giving back, all cached blocks of that order. The next
    /// operation under that number gives back all others, as the dead may have been asked to. Cost: two loads, one
    /// read-modify-write and one store. May only be called while nobody is in an operation under that number, or in
    /// `drain_all`; so not from a handler, which may have interrupted one.
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words());
    /// caches.recover(1);
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    pub fn recover(&self, cpu: usize) {
        if let Some(part) = self.part(cpu) {
            // Relaxed: a caller that knows of the death has learnt it in a way that orders the death before this.
            let died_busy = part.get(BUSY, Ordering::Relaxed) != 0;
            // Both Release: as in `untake` and `end`, on behalf of the dead. A dead owner may have been answering a
            // request, and a dead taker was emptying the cache, so either leaves a request. That is written first, as
            // this caller may die here, too.
            let to_do = |old| if died_busy || old & TAKEN != 0 { ASK } else { old };
            part.change(0, to_do, Ordering::Release);
            part.0[BUSY].store(0, Ordering::Release);
        }
    }

    pub(super) fn each(&self) -> impl DoubleEndedIterator<Item = Part<'a, W>> {
        self.parts.iter().map(Part)
    }

    fn part(&self, cpu: usize) -> Option<Part<'a, W>> {
        self.parts.get(cpu).map(Part)
    }

    #[inline(always)]
    pub(super) fn front(&self, cpu: usize) -> Front<'_, W> {
        Front { lane: self.buddy.on(cpu), caps: &self.caps }
    }

    /// Begins an operation. `None` means that this one interrupted another, that the cache is taken, or that there is
    /// no such CPU.
    #[inline(always)]
    pub(super) fn enter(&self, cpu: usize) -> Option<Part<'a, W>> {
        let part = self.parts.get(cpu).map(Part)?;
        // Both Relaxed: only handlers on the same CPU matter, to which its own accesses are in order; the fence keeps
        // the compiler from changing that. A handler between the load and the store is over before the store, and has
        // left the cache free. For `drain_taken` the barrier orders them.
        if part.0[BUSY].load(Ordering::Relaxed) != 0 {
            return None;
        }
        part.0[BUSY].store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // Acquire: pairs with the Release in `untake`, and so with what was done to the stacks before.
        if part.0[ASKED].load(Ordering::Acquire) & TAKEN != 0 {
            // The taker may learn from this end what the operation before this one did.
            part.end();
            return None;
        }
        Some(part)
    }

    /// Ends an operation, and gives everything back if that was requested.
    #[inline(always)]
    pub(super) fn leave(&self, cpu: usize, part: &Part<'_, W>) {
        part.end();
        // Relaxed: as in `ask`. It comes after the store: a handler that found the cache busy, and so asked, came
        // before that.
        if part.0[ASKED].load(Ordering::Relaxed) != 0 {
            self.give_back(cpu);
        }
    }

    /// Makes an operation that bypasses the cache, and gives everything back if that was requested. If the cache is
    /// busy, the interrupted operation does so.
    pub(super) fn past<R>(&self, cpu: usize, operation: impl FnOnce(Lane<'_, W>) -> R) -> R {
        let answer = operation(self.buddy.on(cpu));
        // Relaxed: as in `ask`.
        if self.part(cpu).is_some_and(|part| part.get(ASKED, Ordering::Relaxed) != 0) {
            self.give_back(cpu);
        }
        answer
    }

    /// Gives everything back, as requested.
    #[cold]
    fn give_back(&self, cpu: usize) {
        let Some(mut part) = self.enter(cpu) else { return };
        // Before the blocks go: the next operation sees requests made from now on. Relaxed: as in `ask`. If it fails,
        // the cache has been taken since, or a handler has answered the request.
        _ = part.0[ASKED].compare_exchange(ASK, 0, Ordering::Relaxed, Ordering::Relaxed);
        self.front(cpu).drain(&mut part);
        part.end();
    }
}
