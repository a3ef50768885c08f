//! The kinds of caches, as a program sees them.

use nbbs::sync::{AtomicU64, Word};
use nbbs::{AllocError, Buddy, Cache, Cached, Caches, Caps, FreeError, cache_words};

/// A cache for each CPU.
pub(super) trait Kind {
    type Word: Word;

    fn buddy(&self) -> &Buddy<'_, Self::Word>;
    fn alloc(&mut self, cpu: usize, order: u32) -> Result<u64, AllocError>;
    fn free(&mut self, cpu: usize, index: u64) -> Result<u64, FreeError>;
    fn free_sized(&mut self, cpu: usize, index: u64, order: u32) -> Result<(), FreeError>;
    fn drain(&mut self, cpu: usize);
    /// Asks a CPU to give back. Returns whether there is such a request.
    fn ask(&mut self, cpu: usize) -> bool;
    fn drain_all(&mut self);
    /// What one CPU keeps.
    fn cached(&self, cpu: usize) -> Cached;
    fn refused(&self) -> u64;
    fn audit(&self) -> Result<(), String>;
}

/// All caches in the same words.
pub(super) struct ByCpu<'a, W> {
    pub caches: Caches<'a, W>,
    pub words: &'a [W],
    pub caps: Caps,
}

impl<W: Word> Kind for ByCpu<'_, W> {
    type Word = W;

    fn buddy(&self) -> &Buddy<'_, W> {
        self.caches.buddy()
    }

    fn alloc(&mut self, cpu: usize, order: u32) -> Result<u64, AllocError> {
        self.caches.alloc(cpu, order)
    }

    fn free(&mut self, cpu: usize, index: u64) -> Result<u64, FreeError> {
        self.caches.free(cpu, index)
    }

    fn free_sized(&mut self, cpu: usize, index: u64, order: u32) -> Result<(), FreeError> {
        self.caches.free_sized(cpu, index, order)
    }

    fn drain(&mut self, cpu: usize) {
        self.caches.drain(cpu);
    }

    fn ask(&mut self, cpu: usize) -> bool {
        self.caches.ask(cpu);
        true
    }

    fn drain_all(&mut self) {
        self.caches.drain_all(|| {});
    }

    /// The words of one CPU are a cache for that CPU.
    fn cached(&self, cpu: usize) -> Cached {
        let own = &self.words[cache_words(cpu)..][..cache_words(1)];
        Caches::new(*self.buddy(), own).with_caps(self.caps).cached()
    }

    fn refused(&self) -> u64 {
        self.caches.refused()
    }

    fn audit(&self) -> Result<(), String> {
        self.buddy().audit().map_err(|broken| broken.to_string())?;
        self.caches.audit().map(|_| ()).map_err(|broken| broken.to_string())
    }
}

/// A cache of its own for each CPU. Those without one go to the buddy allocator.
pub(super) struct Owned<'a> {
    pub buddy: Buddy<'a>,
    pub caches: Vec<Cache<'a>>,
}

impl Kind for Owned<'_> {
    type Word = AtomicU64;

    fn buddy(&self) -> &Buddy<'_> {
        &self.buddy
    }

    fn alloc(&mut self, cpu: usize, order: u32) -> Result<u64, AllocError> {
        match self.caches.get_mut(cpu) {
            Some(cache) => cache.alloc(order),
            None => self.buddy.on(cpu).alloc(order),
        }
    }

    fn free(&mut self, cpu: usize, index: u64) -> Result<u64, FreeError> {
        match self.caches.get_mut(cpu) {
            Some(cache) => cache.free(index),
            None => self.buddy.on(cpu).free(index),
        }
    }

    fn free_sized(&mut self, cpu: usize, index: u64, order: u32) -> Result<(), FreeError> {
        match self.caches.get_mut(cpu) {
            Some(cache) => cache.free_sized(index, order),
            None => self.buddy.on(cpu).free_sized(index, order),
        }
    }

    fn drain(&mut self, cpu: usize) {
        if let Some(cache) = self.caches.get_mut(cpu) {
            cache.drain();
        }
    }

    fn ask(&mut self, _cpu: usize) -> bool {
        false
    }

    fn drain_all(&mut self) {
        self.caches.iter_mut().for_each(Cache::drain);
    }

    fn cached(&self, cpu: usize) -> Cached {
        self.caches[cpu].cached()
    }

    fn refused(&self) -> u64 {
        self.caches.iter().map(Cache::refused).sum()
    }

    fn audit(&self) -> Result<(), String> {
        self.buddy.audit().map(|_| ()).map_err(|broken| broken.to_string())
    }
}
