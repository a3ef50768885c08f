//! Whose turn it is in a CPU's cache, and how it is given back.

use core::sync::atomic::{Ordering, compiler_fence};

use super::cpus::Caches;
use super::front::Front;
use super::stacks::{ASKED, BUSY, PART_WORDS, Stacks};
use crate::sync::Word;

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

impl<'a, W: Word> Caches<'a, W> {
    /// Gives back everything that the CPU keeps. For the CPU itself, as every operation: before it sleeps, or in the
    /// handler of an interrupt that another CPU sent. If that came in the middle of an operation, the operation does it at
    /// its end.
    ///
    /// Cost: a read-modify-write for each word that the blocks lie in. Callable from interrupt and signal handlers.
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

    /// Asks a CPU to give back everything that it keeps, with its next operation. For any caller.
    ///
    /// Cost: a load and a store. Callable from interrupt and signal handlers.
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
        if let Some(part) = self.part(cpu)
            && part.get(ASKED, Ordering::Relaxed) == 0
        {
            // Relaxed, both: it says nothing but that somebody asks. The loads in `leave` see it sooner or later.
            part.0[ASKED].store(1, Ordering::Relaxed);
        }
    }

    /// [`Caches::ask`] for every CPU.
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
        (0..self.cpus()).for_each(|cpu| self.ask(cpu));
    }

    /// Puts the cache of a CPU to use again whose user died in the middle of an operation, after which all others have
    /// gone past it. Nobody may be in an operation under that number.
    ///
    /// What he had in his hands is lost: at most a block, or what went to or from the back-end, and when that gave back
    /// blocks of an order all of that order. All else that the cache keeps is kept.
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
            // Relaxed: whoever knows of the death has it from somewhere that orders this after it.
            part.0[BUSY].store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn each(&self) -> impl Iterator<Item = Part<'a, W>> + Clone {
        self.parts.iter().map(Part)
    }

    fn part(&self, cpu: usize) -> Option<Part<'a, W>> {
        self.parts.get(cpu).map(Part)
    }

    #[inline(always)]
    pub(super) fn front(&self, cpu: usize) -> Front<'_, 'a, W> {
        Front { buddy: &self.buddy, lane: cpu, caps: &self.caps }
    }

    /// Begins an operation. `None`: this one came in the middle of another, or there is no such CPU.
    #[inline(always)]
    pub(super) fn enter(&self, cpu: usize) -> Option<Part<'a, W>> {
        let part = self.parts.get(cpu).map(Part)?;
        // Relaxed, here and in `leave`: both are for handlers on the same CPU, to which its own accesses are in order; the
        // fences keep the compiler from changing that. A handler between the load and the store is over before
        // the store, and has left the cache free.
        if part.0[BUSY].load(Ordering::Relaxed) != 0 {
            return None;
        }
        part.0[BUSY].store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Some(part)
    }

    /// Ends an operation, and gives everything back if somebody has asked for it.
    #[inline(always)]
    pub(super) fn leave(&self, cpu: usize, part: &Part<'_, W>) {
        compiler_fence(Ordering::SeqCst);
        part.0[BUSY].store(0, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // Relaxed: as in `ask`. After the store: a handler that found the cache busy, and so asked, came before it.
        if part.0[ASKED].load(Ordering::Relaxed) != 0 {
            self.give_back(cpu);
        }
    }

    /// Does as was asked.
    #[cold]
    fn give_back(&self, cpu: usize) {
        let Some(mut part) = self.enter(cpu) else { return };
        // Before the blocks go: who asks from now on is seen by the next operation.
        part.set(ASKED, 0, Ordering::Relaxed);
        self.front(cpu).drain(&mut part);
        compiler_fence(Ordering::SeqCst);
        part.set(BUSY, 0, Ordering::Relaxed);
    }
}
