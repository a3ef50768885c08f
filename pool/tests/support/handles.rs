//! Runs operations on handles, made from bytes, against a model of which are valid, and which objects they keep.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::AtomicU64;

use nbbs_pool::sync::Word;
use nbbs_pool::{Config, Exhausted, Guard, Handle, HandleError, Handles, Key, SmallHandle};

use super::bank::Bank;
use super::tracked::{Register, Tracked};

#[derive(Clone, Copy, Debug)]
enum Op {
    Insert,
    Get { pick: usize },
    DropGuard { pick: usize },
    Remove { pick: usize },
    Shrink,
    Look,
}

fn decode(byte: u8) -> Op {
    let (kind, pick) = (byte % 8, usize::from(byte / 8));
    match kind {
        0 | 1 => Op::Insert,
        2 => Op::Get { pick },
        3 => Op::DropGuard { pick },
        4 | 5 => Op::Remove { pick },
        6 => Op::Shrink,
        _ => Op::Look,
    }
}

/// The fate of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Live,
    Removed,
}

const CHUNK: usize = 3;
const SLOTS: usize = 7;

struct Model<'b, K: Key, W: Word> {
    handles: &'b Handles<Tracked, K, &'b Bank<Tracked>, W>,
    register: Register,
    /// Every handle that was ever issued, with its object and fate.
    issued: Vec<(K, u64, Fate)>,
    guards: Vec<(u64, Guard<'b, Tracked, W>)>,
    /// For each slot, the number of objects that it has had, without the present one.
    past: BTreeMap<usize, u32>,
}

impl<K: Key + PartialEq + Debug, W: Word> Model<'_, K, W> {
    fn guards_of(&self, serial: u64) -> usize {
        self.guards.iter().filter(|&&(guarded, _)| guarded == serial).count()
    }

    /// Returns whether the object exists: live, or kept by a guard.
    fn is_there(&self, serial: u64, fate: Fate) -> bool {
        fate == Fate::Live || self.guards_of(serial) > 0
    }

    fn there(&self) -> impl Iterator<Item = (K, u64)> {
        let there = self.issued.iter().filter(|&&(_, serial, fate)| self.is_there(serial, fate));
        there.map(|&(handle, serial, _)| (handle, serial))
    }

    fn generation(&self, slot: usize) -> u32 {
        K::truncate(self.past.get(&slot).copied().unwrap_or(0))
    }

    fn expected(&self, handle: K, fate: Fate) -> Result<(), HandleError> {
        let current = self.generation(handle.index());
        match fate {
            Fate::Live => Ok(()),
            Fate::Removed => Err(HandleError::Stale { generation: handle.generation(), current }),
        }
    }

    fn insert(&mut self) {
        let there = self.there().count();
        match self.handles.insert(self.register.make()) {
            Ok(handle) => {
                let slot = handle.index();
                assert!(
                    self.there().all(|(other, _)| other.index() != slot),
                    "slot {slot} is in use"
                );
                assert!(slot < SLOTS && handle.generation() == self.generation(slot));
                let serial = self.handles.get(handle).unwrap().serial();
                assert_eq!(Some(&serial), self.register.alive().last());
                self.issued.push((handle, serial, Fate::Live));
            }
            Err(full) => {
                assert_eq!((there, full.reason), (SLOTS, Exhausted::Limit { limit: SLOTS }));
            }
        }
    }

    fn remove(&mut self, pick: usize) {
        let Some(pick) = pick.checked_rem(self.issued.len()) else { return };
        let (handle, serial, fate) = self.issued[pick];
        assert_eq!(self.handles.remove(handle), self.expected(handle, fate));
        if fate == Fate::Live {
            self.issued[pick].2 = Fate::Removed;
            self.note_if_gone(handle, serial);
        }
    }

    fn note_if_gone(&mut self, handle: K, serial: u64) {
        if self.guards_of(serial) == 0 {
            *self.past.entry(handle.index()).or_default() += 1;
        }
    }

    fn drop_guard(&mut self, pick: usize) {
        let Some(pick) = pick.checked_rem(self.guards.len()) else { return };
        let (serial, guard) = self.guards.swap_remove(pick);
        assert_eq!(guard.serial(), serial);
        drop(guard);
        let &(handle, _, fate) = self.issued.iter().find(|issued| issued.1 == serial).unwrap();
        if fate == Fate::Removed {
            self.note_if_gone(handle, serial);
        }
    }

    fn look(&self) {
        for &(handle, serial, fate) in &self.issued {
            assert_eq!(self.handles.contains(handle), fate == Fate::Live);
            assert_eq!(
                self.handles.get(handle).map(|guard| assert_eq!(guard.serial(), serial)),
                self.expected(handle, fate)
            );
        }
        let mut found: Vec<_> =
            self.handles.iter().map(|(handle, guard)| (handle, guard.serial())).collect();
        found.sort_unstable_by_key(|&(_, serial)| serial);
        let live = self.issued.iter().filter(|issued| issued.2 == Fate::Live);
        assert!(found.into_iter().eq(live.map(|&(handle, serial, _)| (handle, serial))));
        let (capacity, last) = (self.handles.pool().capacity(), K::MAX_SLOTS - 1);
        let beyond = Err(HandleError::OutOfRange { index: last, capacity });
        assert_eq!(self.handles.remove(K::new(last, 0)), beyond);
    }

    fn check(&self) {
        assert!(self.register.alive().into_iter().eq(self.there().map(|(_, serial)| serial)));
        assert_eq!(self.handles.pool().len(), self.there().count());
    }
}

fn run<K: Key + PartialEq + Debug, W: Word>(program: &[u8]) {
    let (register, bank) = (Register::default(), Bank::of(CHUNK, SLOTS.div_ceil(CHUNK)));
    let config = Config::new().chunk_size(CHUNK).limit(SLOTS);
    let handles = Handles::<Tracked, K, _, W>::with_source(&bank, config);
    let (issued, guards, past) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut model = Model { handles: &handles, register: register.clone(), issued, guards, past };
    for &byte in program {
        match decode(byte) {
            Op::Insert => model.insert(),
            Op::Get { pick } => {
                let Some(pick) = pick.checked_rem(model.issued.len()) else { continue };
                let (handle, serial, _) = model.issued[pick];
                model.guards.extend(model.handles.get(handle).map(|guard| (serial, guard)));
            }
            Op::DropGuard { pick } => model.drop_guard(pick),
            Op::Remove { pick } => model.remove(pick),
            Op::Shrink => _ = model.handles.pool().shrink(),
            Op::Look => model.look(),
        }
        model.check();
    }
    drop(model);
    drop(handles);
    assert!(register.alive().is_empty());
}

/// Runs the program with handles of both sizes, shared and single-threaded.
pub fn run_all(program: &[u8]) {
    run::<Handle, AtomicU64>(program);
    run::<SmallHandle, Cell<u64>>(program);
}
