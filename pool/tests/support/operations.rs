//! Runs operations on a pool, made from bytes, against its model.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use nbbs_pool::sync::Word;
use nbbs_pool::{Exhausted, FreeError, Pool, PoolBox};

use super::bank::Bank;
use super::model::{Banked, Boxed, Model, Shape};
use super::tracked::{Register, Tracked};

/// One operation. A `pick` chooses among what is held, modulo its number.
#[derive(Clone, Copy, Debug)]
enum Op {
    Alloc,
    AllocWith,
    Free { pick: usize },
    Take { pick: usize },
    WrongFree { pick: usize },
    Box,
    LocalAlloc { local: usize },
    LocalFree { local: usize, pick: usize },
    LocalTake { local: usize, pick: usize },
    DropBox { pick: usize },
    Unbox { pick: usize },
    Leak { pick: usize },
    Adopt { pick: usize },
    ThroughRaw { pick: usize },
    AllocBatch { number: usize },
    FreeBatch { number: usize },
    Flush { local: usize },
    Grow,
    Reserve { more: usize },
    Tend,
    Shrink,
    Look,
}

/// Returns an operation for each byte. The bytes come from proptest, or from a corpus.
fn decode(byte: u8) -> Op {
    let (kind, pick) = (byte % 21, usize::from(byte / 21));
    let local = pick % 2;
    match kind {
        0 => Op::Alloc,
        1 => Op::AllocWith,
        2 => Op::Free { pick },
        3 => Op::Take { pick },
        4 => Op::WrongFree { pick },
        5 => Op::Box,
        6 | 7 => Op::LocalAlloc { local },
        8 => Op::LocalFree { local, pick },
        9 => Op::LocalTake { local, pick },
        10 => Op::DropBox { pick },
        11 => Op::Unbox { pick },
        12 => Op::Leak { pick },
        13 => Op::Adopt { pick },
        14 => Op::ThroughRaw { pick },
        15 => Op::AllocBatch { number: pick * 3 },
        16 => Op::FreeBatch { number: pick * 3 },
        17 => Op::Flush { local },
        18 if pick < 4 => Op::Grow,
        18 if pick < 8 => Op::Reserve { more: pick * 7 },
        18 => Op::Tend,
        19 => Op::Shrink,
        _ => Op::Look,
    }
}

impl<'b, W: Word> Model<'b, W> {
    fn step(&mut self, op: Op) {
        match op {
            Op::Alloc => {
                let (before, object) = (self.before(None), self.pool.alloc(self.make()));
                self.judge(&before, Self::refused(&object));
                object.into_iter().for_each(|object| self.hold_pointer(object));
            }
            Op::AllocWith => {
                let before = self.before(None);
                let object = self.pool.alloc_with(|| self.make());
                self.judge(&before, object.err());
                object.into_iter().for_each(|object| self.hold_pointer(object));
            }
            Op::Box => {
                let (before, each) = (self.before(None), self.pool.alloc_box(self.make()));
                self.judge(&before, Self::refused(&each));
                each.into_iter().for_each(|each| self.hold(each));
            }
            Op::LocalAlloc { local } => {
                let before = self.before(Some(local));
                let each = self.locals[local].alloc(self.register.make());
                self.judge(&before, Self::refused(&each));
                each.into_iter().for_each(|each| self.hold(each));
            }
            Op::AllocBatch { number } => self.alloc_batch(number),
            Op::Free { pick } => self.with_pointer(pick, |pool, object, _| {
                pool.free(object).expect("a live object");
            }),
            Op::Take { pick } => self.with_pointer(pick, |pool, object, serial| {
                assert_eq!(pool.take(object).expect("a live object").serial(), serial);
            }),
            Op::Adopt { pick } => {
                let mut boxed = None;
                self.with_pointer(pick, |pool, object, _| boxed = pool.adopt(object).ok());
                boxed.into_iter().for_each(|each| self.hold(each));
            }
            Op::WrongFree { pick } => self.wrong_free(pick),
            Op::LocalFree { local, pick } => {
                self.with_local(local, pick, |local, each, _| local.free(each))
            }
            Op::LocalTake { local, pick } => self.with_local(local, pick, |local, each, serial| {
                assert_eq!(local.take(each).serial(), serial);
            }),
            Op::DropBox { pick } => self.with_box(pick, |_, each, _| drop(each)),
            Op::Unbox { pick } => self.with_box(pick, |_, each, serial| {
                assert_eq!(PoolBox::into_inner(each).serial(), serial);
            }),
            Op::Leak { pick } => {
                self.with_box(pick, |model, each, _| model.hold_pointer(PoolBox::leak(each)));
            }
            Op::ThroughRaw { pick } => self.with_box(pick, |model, each, _| {
                let object = PoolBox::into_raw(each);
                // SAFETY: it comes from a box of this pool, and is turned back once.
                model.hold(unsafe { model.pool.from_raw(object) });
            }),
            Op::FreeBatch { number } => {
                let rest = self.boxes.len().saturating_sub(number);
                let freed = self.boxes.split_off(rest).into_iter();
                self.pool.free_batch(freed.map(|(_, _, each)| each));
            }
            Op::Flush { local } => {
                self.locals[local].flush();
                assert_eq!(self.locals[local].kept(), 0);
            }
            Op::Grow => self.grow(),
            Op::Reserve { more } => {
                let (slots, limit) = (self.pool.capacity() + more, self.shape.max_len());
                if slots > limit {
                    // `check` finds that nothing has changed.
                    assert_eq!(self.pool.reserve(slots), Err(Exhausted::Slots { slots, limit }));
                } else {
                    self.grow_by(more, |pool| pool.reserve(slots));
                }
            }
            Op::Tend => self.grow_by(self.shape.ahead.saturating_sub(self.free()), Pool::tend),
            Op::Shrink => self.shrink(),
            Op::Look => self.look(),
        }
        self.check();
    }

    fn with_pointer(
        &mut self,
        pick: usize,
        act: impl FnOnce(&'b Banked<'b, W>, NonNull<Tracked>, u64),
    ) {
        let Some(pick) = pick.checked_rem(self.pointers.len()) else { return };
        let (&slot, &serial) = self.pointers.iter().nth(pick).unwrap();
        self.pointers.remove(&slot);
        act(self.pool, self.bank.object(slot), serial);
    }

    fn with_box(&mut self, pick: usize, act: impl FnOnce(&mut Self, Boxed<'b, W>, u64)) {
        if let Some(pick) = pick.checked_rem(self.boxes.len()) {
            let (_, serial, each) = self.boxes.swap_remove(pick);
            assert_eq!(each.serial(), serial);
            act(self, each, serial);
        }
    }

    /// A local keeps what is freed to it, and gives back no more than it has to.
    fn with_local(
        &mut self,
        local: usize,
        pick: usize,
        act: impl FnOnce(&mut LocalOf<'b, W>, Boxed<'b, W>, u64),
    ) {
        self.with_box(pick, |model, each, serial| {
            let local = &mut model.locals[local];
            let kept = local.kept();
            act(local, each, serial);
            // Words that a local cannot keep apart push each other out, and surplus slots go word by word.
            let room = model.shape.words_are_apart() && kept + 1 < model.shape.most;
            assert!((if room { kept + 1 } else { 0 }..=kept + 1).contains(&local.kept()));
        });
    }

    fn alloc_batch(&mut self, number: usize) {
        let (before, mut all) = (self.free(), Vec::new());
        let values: Vec<_> = (0..number).map(|_| self.make()).collect();
        let answer = self.pool.alloc_batch(values, |each| all.push(each));
        let grown = self.grown();
        assert!(grown == 0 || all.len() > before || self.shape.ahead > 0, "grows without need");
        all.into_iter().for_each(|each| self.hold(each));
        match Self::refused(&answer) {
            None => assert!(self.held() >= number),
            Some(reason) => {
                assert_eq!((self.free(), self.may_grow()), (0, Err(reason)));
                self.note_refusal(reason);
            }
        }
    }

    /// A pointer that does not point to an object is refused, and the error says why.
    fn wrong_free(&self, pick: usize) {
        let slot = (pick * 7 % self.bank.slots()) as u64;
        let (object, chunks) = (self.bank.object(slot), self.chunks());
        let refused = |object: NonNull<Tracked>| {
            assert!(!self.pool.is_valid(object));
            let error = self.pool.free(object).unwrap_err();
            assert_eq!(
                (self.pool.take(object).err(), self.pool.adopt(object).err()),
                (Some(error), Some(error))
            );
            error
        };
        let (place, within) =
            (slot as usize / self.shape.chunk_size, slot as usize % self.shape.chunk_size);
        let is_there = within < self.bank.taken()[place];
        let inside = NonNull::new(object.as_ptr().wrapping_byte_add(8)).unwrap();
        let (address, begin) = (inside.as_ptr() as usize, object.as_ptr() as usize);
        let elsewhere = FreeError::Foreign { address, chunks };
        let misaligned = FreeError::Misaligned { address, slot: begin };
        assert_eq!(refused(inside), if is_there { misaligned } else { elsewhere });
        if !self.pointers.contains_key(&slot) {
            let elsewhere = FreeError::Foreign { address: begin, chunks };
            let not_allocated = FreeError::NotAllocated { address: begin };
            assert_eq!(refused(object), if is_there { not_allocated } else { elsewhere });
        }
        let before = NonNull::new(self.bank.object(0).as_ptr().wrapping_sub(1)).unwrap();
        assert_eq!(
            refused(before),
            FreeError::Foreign { address: before.as_ptr() as usize, chunks }
        );
    }

    /// Checks that live objects are found, and nothing else.
    fn look(&self) {
        let mut found: Vec<u64> =
            self.pool.iter().map(|each| self.bank.number(each.as_ptr())).collect();
        found.sort_unstable();
        assert!(found.iter().eq(self.pointers.keys()), "{found:?}");
        let valid = |&slot: &u64| self.pool.is_valid(self.bank.object(slot));
        assert!((0..self.bank.slots() as u64).filter(valid).eq(found));
    }

    /// Frees everything, and checks whether anything is lost.
    fn end(mut self) {
        self.look();
        self.boxes.clear();
        self.locals.iter_mut().for_each(|local| local.flush());
        for slot in std::mem::take(&mut self.pointers).into_keys() {
            self.pool.free(self.bank.object(slot)).expect("a live object");
        }
        self.check();
        // Grows to the limit, and takes every slot.
        while self.may_grow().is_ok() || self.free() > 0 {
            self.step(Op::Box);
        }
        self.step(Op::Box);
        self.boxes.clear();
        self.shrink();
        self.check();
    }
}

type LocalOf<'b, W> = nbbs_pool::Local<'b, Tracked, &'b Bank<Tracked>, W>;

fn run<W: Word>(shape: Shape, program: &[u8]) {
    let register = Register::default();
    let bank = Bank::of(shape.chunk_size, shape.places);
    let mut pool = Pool::<Tracked, &Bank<Tracked>, W>::with_words(&bank, shape.config());
    {
        let mut model = Model::new(shape, &bank, &pool, &register);
        program.iter().for_each(|&byte| model.step(decode(byte)));
        match program.len() % 3 {
            // Objects that nobody owns belong to the pool.
            0 => model.boxes.clear(),
            _ => model.end(),
        }
    }
    if program.len().is_multiple_of(2) {
        pool.clear();
        assert_eq!((pool.len(), pool.iter().count()), (0, 0));
    }
    drop(pool);
    assert!(register.alive().is_empty());
}

/// Runs the program on pools of several shapes, shared and single-threaded.
pub fn run_all(program: &[u8]) {
    let plain = |chunk_size, places, most| {
        let (limit, reserve, ahead, by_helper) = (chunk_size * places, 0, 0, false);
        Shape { chunk_size, places, limit, reserve, ahead, by_helper, most }
    };
    let shapes = [
        plain(1, 20, 2),
        Shape { limit: 10, reserve: 4, ..plain(3, 4, 3) },
        Shape { limit: 0, ahead: 40, by_helper: true, ..plain(64, 2, 8) },
        Shape { limit: 0, ..plain(5, 3, 1025) },
        Shape { ahead: 30, ..plain(65, 3, 100) },
        Shape { reserve: 41, ..plain(20, 30, 1025) },
    ];
    for shape in shapes {
        run::<AtomicU64>(shape, program);
        run::<Cell<u64>>(shape, program);
    }
}
