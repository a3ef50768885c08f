//! Caches in front of nbbs, as allocators of blocks.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use nbbs::sync::Word;
use nbbs::{Buddy, Caches, Caps, MetadataBox, ThreadCaches, cache_words, metadata_words};
use testkit::BackEnd;
use testkit::program::Arena;

use crate::hands::below;

/// The number of CPUs that have a cache.
const CPUS: usize = 4;

/// Caches keep few blocks of each order, so that these come and go; handlers in a drain of many blocks would be
/// interrupted without end. The code is that of a program that is not built for debugging.
const CAPS: Caps = Caps::new()
    .units(0, 4)
    .units(1, 4)
    .units(2, 8)
    .units(3, 16)
    .large(4)
    .units(4, 16)
    .checked(false);

/// A cache for each CPU; a lane is a CPU.
struct OfCpus<'a, W>(Caches<'a, W>);

impl<W: Word> BackEnd for OfCpus<'_, W> {
    fn units(&self) -> u64 {
        self.0.buddy().units()
    }

    fn max_order(&self) -> u32 {
        self.0.buddy().max_order()
    }

    fn metadata_bytes(&self) -> usize {
        8 * (metadata_words(self.units()) + cache_words(CPUS))
    }

    fn alloc(&self, cpu: usize, order: u32) -> Option<u64> {
        now_and_then(|| self.0.drain(cpu), || self.0.ask_all());
        self.0.alloc(cpu, order).ok()
    }

    fn free(&self, cpu: usize, index: u64, order: u32) -> Result<(), String> {
        let freed = match below(2) {
            0 => self.0.free(cpu, index).map(drop),
            _ => self.0.free_sized(cpu, index, order),
        };
        freed.map_err(|error| error.to_string())
    }
}

/// A cache for each thread.
struct OfThreads(&'static ThreadCaches);

impl BackEnd for OfThreads {
    fn units(&self) -> u64 {
        self.0.buddy().units()
    }

    fn max_order(&self) -> u32 {
        self.0.buddy().max_order()
    }

    fn metadata_bytes(&self) -> usize {
        8 * metadata_words(self.units())
    }

    fn alloc(&self, _: usize, order: u32) -> Option<u64> {
        now_and_then(|| self.0.drain(), || self.0.ask_all());
        self.0.alloc(order).ok()
    }

    fn free(&self, _: usize, index: u64, order: u32) -> Result<(), String> {
        let freed = match below(2) {
            0 => self.0.free(index).map(drop),
            _ => self.0.free_sized(index, order),
        };
        freed.map_err(|error| error.to_string())
    }
}

/// Makes each call now and then.
fn now_and_then(one: impl FnOnce(), other: impl FnOnce()) {
    match below(64) {
        0 => one(),
        1 => other(),
        _ => {}
    }
}

/// Lends fresh caches of CPUs, on words of any kind.
///
/// # Panics
/// If something is not in order afterwards.
pub fn of_cpus<W: Word + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    let arena = Arena::<W>::new(units);
    let words: Box<[W]> = (0..cache_words(CPUS)).map(|_| W::default()).collect();
    let caches = Caches::new(arena.buddy(), &words).with_caps(CAPS);
    visit(&OfCpus(caches));
    caches.audit().expect("every cached block is in use, and cached once");
    (0..CPUS).for_each(|cpu| caches.drain(cpu));
    assert_eq!(caches.refused(), 0, "blocks were not taken back");
    check(&arena.buddy());
}

/// Lends caches of threads in which nothing is allocated. As threads remember them, they are created once for each
/// size.
///
/// # Panics
/// If something is not in order afterwards.
pub fn of_threads(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    static MADE: Mutex<BTreeMap<u64, &'static ThreadCaches>> = Mutex::new(BTreeMap::new());
    let made = || {
        let metadata: &MetadataBox = Box::leak(Box::new(MetadataBox::new(units).expect("memory")));
        let buddy = metadata.arena().expect("as many words as it takes");
        &*Box::leak(Box::new(ThreadCaches::with_caps(buddy, CAPS)))
    };
    let caches =
        *MADE.lock().unwrap_or_else(PoisonError::into_inner).entry(units).or_insert_with(made);
    // The first use allocates memory, so it must not happen in a handler.
    caches.drain();
    visit(&OfThreads(caches));
    caches.drain();
    check(caches.buddy());
}

/// Checks that all memory is free.
fn check<W: Word>(buddy: &Buddy<'_, W>) {
    let used = buddy.stats().used_units;
    assert_eq!(used, 0, "not whole: {used} units are in use");
    if let Err(broken) = buddy.audit() {
        panic!("audit: {broken}");
    }
}
