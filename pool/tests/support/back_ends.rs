//! The pool as an allocator that only has units, so that the oracle and the explorer drive it like any other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, TryLockError};

use nbbs_pool::sync::Word;
use nbbs_pool::{Config, Local, Pool, PoolBox};
use testkit::{BackEnd, steered};

use super::bank::{Bank, Item};

pub type BankPool<'b, W> = Pool<Item, &'b Bank, W>;

pub fn config<T>(bank: &Bank<T>) -> Config {
    Config::new().chunk_size(bank.chunk_size()).limit(bank.slots())
}

/// Allocates and frees by pointer.
pub struct Pointers<'b, W: Word> {
    pub bank: &'b Bank,
    pub pool: BankPool<'b, W>,
    /// Whether allocations leave no cursor behind. A thread that comes to share the lane might find one, and which
    /// threads do depends on how many there have been.
    pub traceless: AtomicBool,
}

impl<'b, W: Word> Pointers<'b, W> {
    pub fn new(bank: &'b Bank) -> Self {
        Self::with_config(bank, config(bank))
    }

    pub fn with_config(bank: &'b Bank, config: Config) -> Self {
        Self { bank, pool: Pool::with_words(bank, config), traceless: AtomicBool::new(false) }
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
        self.pool.chunk_overhead()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        assert_eq!(order, 0);
        let object = if self.traceless.load(Ordering::Relaxed) {
            self.pool.local_of(2).alloc(item(lane)).map(PoolBox::leak).ok()?
        } else {
            self.pool.alloc(item(lane)).ok()?
        };
        Some(self.bank.number(object.as_ptr()))
    }

    fn free(&self, _lane: usize, index: u64, _order: u32) -> Result<(), String> {
        let item = self.pool.take(self.bank.object(index)).map_err(|error| error.to_string())?;
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
    pub pool: &'b BankPool<'b, W>,
    lanes: Vec<Mutex<Local<'b, Item, &'b Bank, W>>>,
}

impl<'b, W: Word> Locals<'b, W> {
    /// Creates locals that keep at most `most` slots each.
    pub fn new(bank: &'b Bank, pool: &'b BankPool<'b, W>, lanes: usize, most: usize) -> Self {
        let lanes = (0..lanes).map(|_| Mutex::new(pool.local_of(most))).collect();
        Self { bank, pool, lanes }
    }

    /// Calls `act` with the lane's local, unless its thread died in it.
    pub fn with<R>(
        &self,
        lane: usize,
        act: impl FnOnce(&mut Local<'b, Item, &'b Bank, W>) -> R,
    ) -> R {
        loop {
            match self.lanes[lane % self.lanes.len()].try_lock() {
                Ok(mut local) => return act(&mut local),
                Err(TryLockError::Poisoned(local)) => return act(&mut local.into_inner()),
                // Another lane flushes it, and may need a turn to go on.
                Err(TryLockError::WouldBlock) => steered::pause(),
            }
        }
    }

    /// Flushes the locals that are not in use.
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
        self.pool.chunk_overhead()
    }

    /// Before an allocation is refused, the locals of others are flushed, unless they are in use.
    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        assert_eq!(order, 0);
        let alloc = || self.with(lane, |local| local.alloc(item(lane)).ok());
        let object = alloc().or_else(|| {
            self.flush();
            alloc()
        })?;
        Some(self.bank.number(PoolBox::into_raw(object).as_ptr()))
    }

    fn free(&self, lane: usize, index: u64, _order: u32) -> Result<(), String> {
        // SAFETY: the oracle knows that the caller holds the object, which came from a box.
        let object = unsafe { self.pool.from_raw(self.bank.object(index)) };
        assert_eq!(object.0[0], !object.0[3], "a damaged object");
        self.with(lane, |local| local.free(object));
        Ok(())
    }
}
