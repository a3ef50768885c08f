//! What the tests have in common: memory whose slots have numbers, words that a test steers, and the arena
//! as a back-end that has units only, so that the oracle and the explorer drive it like any other.
#![allow(dead_code)] // each test is a crate of its own and uses a part

pub mod operations;
pub mod steps;

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use nbbs_arena::sync::Word;
use nbbs_arena::{Arena, ArenaBox, ChunkSource, Config, Global, Local};
use testkit::{BackEnd, steered};

/// An object; its alignment tells blocks for slots from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(32))]
pub struct Item(pub [u64; 4]);

const STRIDE: usize = size_of::<Item>();

/// So many places for chunks, in a row: a slot's address gives its number. Bookkeeping is from elsewhere.
pub struct Bank {
    memory: Box<[UnsafeCell<MaybeUninit<Item>>]>,
    chunk_size: usize,
    taken: Mutex<Vec<bool>>,
}

impl Bank {
    pub fn new(chunk_size: usize, places: usize) -> Self {
        let memory = (0..chunk_size * places).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
        Self { memory: memory.collect(), chunk_size, taken: Mutex::new(vec![false; places]) }
    }

    pub fn slots(&self) -> usize {
        self.memory.len()
    }

    fn base(&self) -> usize {
        self.memory.as_ptr() as usize
    }

    /// The number of an object's slot.
    ///
    /// # Panics
    /// If it is none, or the arena has given its chunk back.
    pub fn number(&self, object: *const Item) -> u64 {
        let offset = object as usize - self.base();
        assert!(offset.is_multiple_of(STRIDE) && offset / STRIDE < self.slots(), "no slot");
        let number = offset / STRIDE;
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(taken[number / self.chunk_size], "slot {number} of a chunk that was given back");
        number as u64
    }

    pub fn object(&self, number: u64) -> NonNull<Item> {
        let first = NonNull::from(&*self.memory).cast::<Item>();
        // SAFETY: the index is kept below the memory's length.
        unsafe { first.add(usize::try_from(number).unwrap().min(self.slots() - 1)) }
    }

    fn place(&self, block: NonNull<u8>) -> usize {
        (block.as_ptr() as usize - self.base()) / (STRIDE * self.chunk_size)
    }
}

fn is_slots(layout: Layout) -> bool {
    layout.align() == align_of::<Item>()
}

// SAFETY: a place is taken by one at a time, and lasts as long as the bank, which nobody else writes to.
unsafe impl ChunkSource for &Bank {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        if !is_slots(layout) {
            return Global.alloc(layout);
        }
        assert!(layout.size() <= self.chunk_size * STRIDE);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let place = taken.iter().position(|taken| !taken)?;
        taken[place] = true;
        Some(NonNull::from(&self.memory[place * self.chunk_size..][..self.chunk_size]).cast())
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        if !is_slots(layout) {
            // SAFETY: passed on.
            return unsafe { Global.free(block, layout) };
        }
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(std::mem::replace(&mut taken[self.place(block)], false), "given back twice");
    }
}

// SAFETY: the memory is reached through blocks only.
unsafe impl Sync for Bank {}

pub type BankArena<'b, W> = Arena<Item, &'b Bank, W>;

pub fn config(bank: &Bank) -> Config {
    Config::new().chunk_size(bank.chunk_size).limit(bank.slots())
}

/// Allocates and frees by pointer.
pub struct Pointers<'b, W: Word> {
    pub bank: &'b Bank,
    pub arena: BankArena<'b, W>,
    /// Allocations leave no cursor behind, which a thread that comes to share the lane might find: which
    /// threads do depends on how many there have been.
    pub traceless: AtomicBool,
}

impl<'b, W: Word> Pointers<'b, W> {
    pub fn new(bank: &'b Bank) -> Self {
        Self::with_config(bank, config(bank))
    }

    pub fn with_config(bank: &'b Bank, config: Config) -> Self {
        Self { bank, arena: Arena::with_words(bank, config), traceless: AtomicBool::new(false) }
    }
}

impl<W: Word + Sync> BackEnd for Pointers<'_, W> {
    fn units(&self) -> u64 {
        self.bank.slots() as u64
    }

    fn max_order(&self) -> u32 {
        0
    }

    fn metadata_bytes(&self) -> usize {
        self.arena.chunk_overhead()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        assert_eq!(order, 0);
        let object = if self.traceless.load(Ordering::Relaxed) {
            self.arena.local_of(2).alloc(item(lane)).map(ArenaBox::leak).ok()?
        } else {
            self.arena.alloc(item(lane)).ok()?
        };
        Some(self.bank.number(object.as_ptr()))
    }

    fn free(&self, _lane: usize, index: u64, _order: u32) -> Result<(), String> {
        let item = self.arena.take(self.bank.object(index)).map_err(|error| error.to_string())?;
        assert_eq!(item.0[0], !item.0[3], "a damaged object");
        Ok(())
    }
}

fn item(lane: usize) -> Item {
    Item([lane as u64, 1, 2, !(lane as u64)])
}

/// Allocates and frees by a local for each lane, and hands boxes over.
pub struct Locals<'b, W: Word> {
    bank: &'b Bank,
    pub arena: &'b BankArena<'b, W>,
    lanes: Vec<Mutex<Local<'b, Item, &'b Bank, W>>>,
}

impl<'b, W: Word> Locals<'b, W> {
    /// Each keeps `most` slots at most.
    pub fn new(bank: &'b Bank, arena: &'b BankArena<'b, W>, lanes: usize, most: usize) -> Self {
        let lanes = (0..lanes).map(|_| Mutex::new(arena.local_of(most))).collect();
        Self { bank, arena, lanes }
    }

    /// The lane's local, unless its thread died in it.
    pub fn with<R>(
        &self,
        lane: usize,
        act: impl FnOnce(&mut Local<'b, Item, &'b Bank, W>) -> R,
    ) -> R {
        loop {
            match self.lanes[lane % self.lanes.len()].try_lock() {
                Ok(mut local) => return act(&mut local),
                Err(TryLockError::Poisoned(local)) => return act(&mut local.into_inner()),
                // Somebody flushes it, and may need a turn to go on.
                Err(TryLockError::WouldBlock) => steered::pause(),
            }
        }
    }

    /// Flushes the locals that nobody is using.
    fn flush(&self) {
        for local in &self.lanes {
            match local.try_lock() {
                Ok(mut local) => local.flush(),
                Err(TryLockError::Poisoned(local)) => local.into_inner().flush(),
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }
}

impl<W: Word + Sync> BackEnd for Locals<'_, W> {
    fn units(&self) -> u64 {
        self.bank.slots() as u64
    }

    fn max_order(&self) -> u32 {
        0
    }

    fn metadata_bytes(&self) -> usize {
        self.arena.chunk_overhead()
    }

    /// What others keep is flushed before an allocation is refused, as far as they are not being used.
    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        assert_eq!(order, 0);
        let alloc = || self.with(lane, |local| local.alloc(item(lane)).ok());
        let object = alloc().or_else(|| {
            self.flush();
            alloc()
        })?;
        Some(self.bank.number(ArenaBox::into_raw(object).as_ptr()))
    }

    fn free(&self, lane: usize, index: u64, _order: u32) -> Result<(), String> {
        // SAFETY: the oracle knows that the caller holds the object, which came from a box.
        let object = unsafe { self.arena.from_raw(self.bank.object(index)) };
        assert_eq!(object.0[0], !object.0[3], "a damaged object");
        self.with(lane, |local| local.free(object));
        Ok(())
    }
}
