//! Operations out of bytes, against a model: what is live, where, and what must be refused.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use nbbs_arena::sync::Word;
use nbbs_arena::{Arena, ArenaBox, Config, Local};

use super::{Bank, Item};

/// One operation. A `pick` chooses among what is held, modulo its number.
#[derive(Clone, Debug)]
enum Op {
    Alloc,
    Free { pick: usize },
    FreeAgain { slot: usize },
    Box,
    LocalAlloc { local: usize },
    LocalFree { local: usize, pick: usize },
    DropBox { pick: usize },
    Leak { pick: usize },
    Adopt { pick: usize },
    Flush { local: usize },
    Grow,
    Shrink,
    Count,
}

/// An operation for each byte: proptest makes them, and so does whoever writes a corpus.
fn decode(byte: u8) -> Op {
    let (kind, pick) = (byte % 13, usize::from(byte / 13));
    let local = pick % 2;
    match kind {
        0 => Op::Alloc,
        1 => Op::Free { pick },
        2 => Op::FreeAgain { slot: pick },
        3 => Op::Box,
        4 | 5 => Op::LocalAlloc { local },
        6 => Op::LocalFree { local, pick },
        7 => Op::DropBox { pick },
        8 => Op::Leak { pick },
        9 => Op::Adopt { pick },
        10 => Op::Flush { local },
        11 if pick % 2 == 0 => Op::Grow,
        11 => Op::Shrink,
        _ => Op::Count,
    }
}

struct Model<'b, W: Word> {
    bank: &'b Bank,
    arena: &'b Arena<Item, &'b Bank, W>,
    locals: Vec<Local<'b, Item, &'b Bank, W>>,
    /// By slot: what an object allocated by pointer must hold.
    pointers: BTreeMap<u64, u64>,
    /// Slot, what it must hold, box.
    boxes: Vec<(u64, u64, ArenaBox<'b, Item, W>)>,
    serial: u64,
}

impl<W: Word> Model<'_, W> {
    fn next(&mut self) -> Item {
        self.serial += 1;
        Item([self.serial; 4])
    }

    /// Notes where an object is: nowhere where another one is.
    fn place(&self, object: *const Item) -> u64 {
        let slot = self.bank.number(object);
        assert!(!self.pointers.contains_key(&slot), "slot {slot} is in use");
        let boxed = self.boxes.iter().any(|&(other, ..)| other == slot);
        assert!(!boxed, "slot {slot} is a box's");
        slot
    }

    fn pointer(&self, pick: usize) -> Option<(u64, u64)> {
        let pick = pick.checked_rem(self.pointers.len())?;
        self.pointers.iter().nth(pick).map(|(&slot, &serial)| (slot, serial))
    }

    fn held(&self) -> usize {
        self.pointers.len() + self.boxes.len()
    }

    fn kept(&self) -> usize {
        self.locals.iter().map(Local::kept).sum()
    }

    /// A refusal is honest: every slot is held or kept.
    fn check_refusal(&self) {
        assert_eq!(self.held() + self.kept(), self.bank.slots(), "refused");
    }
}

fn step<'b, W: Word>(model: &mut Model<'b, W>, op: &Op) {
    match *op {
        Op::Alloc => match model.arena.alloc(model.next()) {
            Ok(object) => {
                let slot = model.place(object.as_ptr());
                model.pointers.insert(slot, model.serial);
            }
            Err(_) => model.check_refusal(),
        },
        Op::Free { pick } => {
            let Some((slot, serial)) = model.pointer(pick) else { return };
            let item = model.arena.take(model.bank.object(slot)).expect("a live object");
            assert_eq!(item, Item([serial; 4]), "a damaged object");
            model.pointers.remove(&slot);
        }
        Op::FreeAgain { slot } => {
            let slot = (slot * 7 % model.bank.slots()) as u64;
            if !model.pointers.contains_key(&slot) {
                assert!(model.arena.free(model.bank.object(slot)).is_err(), "slot {slot}");
            }
        }
        Op::Box | Op::LocalAlloc { .. } => {
            let value = model.next();
            let answer = match *op {
                Op::LocalAlloc { local } => model.locals[local].alloc(value),
                _ => model.arena.alloc_box(value),
            };
            match answer {
                Ok(each) => {
                    let slot = model.place(&*each);
                    model.boxes.push((slot, model.serial, each));
                }
                Err(_) => model.check_refusal(),
            }
        }
        Op::LocalFree { local, pick } => {
            if let Some(pick) = pick.checked_rem(model.boxes.len()) {
                let (_, serial, each) = model.boxes.swap_remove(pick);
                assert_eq!(model.locals[local].take(each), Item([serial; 4]), "a damaged object");
            }
        }
        Op::DropBox { pick } => {
            if let Some(pick) = pick.checked_rem(model.boxes.len()) {
                let (_, serial, each) = model.boxes.swap_remove(pick);
                assert_eq!(*each, Item([serial; 4]), "a damaged object");
            }
        }
        Op::Leak { pick } => {
            if let Some(pick) = pick.checked_rem(model.boxes.len()) {
                let (slot, serial, each) = model.boxes.swap_remove(pick);
                _ = ArenaBox::leak(each);
                model.pointers.insert(slot, serial);
            }
        }
        Op::Adopt { pick } => {
            let Some((slot, serial)) = model.pointer(pick) else { return };
            let each = model.arena.adopt(model.bank.object(slot)).expect("a live object");
            model.pointers.remove(&slot);
            model.boxes.push((slot, serial, each));
        }
        Op::Flush { local } => model.locals[local].flush(),
        Op::Grow => _ = model.arena.grow(),
        Op::Shrink => _ = model.arena.shrink(),
        Op::Count => {
            assert_eq!(model.arena.len(), model.held());
            let slots: Vec<u64> =
                model.arena.iter().map(|each| model.bank.number(each.as_ptr())).collect();
            assert_eq!(slots.len(), model.pointers.len());
            assert!(slots.iter().all(|slot| model.pointers.contains_key(slot)));
        }
    }
}

fn run<W: Word>(chunk_size: usize, chunks: usize, most: usize, ahead: usize, program: &[u8]) {
    let bank = Bank::new(chunk_size, chunks);
    let config = Config::new().chunk_size(chunk_size).limit(bank.slots()).ahead(ahead);
    let arena = Arena::<Item, &Bank, W>::with_words(&bank, config);
    let mut model = Model {
        bank: &bank,
        arena: &arena,
        locals: (0..2).map(|_| arena.local_of(most)).collect(),
        pointers: BTreeMap::new(),
        boxes: Vec::new(),
        serial: 0,
    };
    for &byte in program {
        step(&mut model, &decode(byte));
    }
    step(&mut model, &Op::Count);
    model.boxes.clear();
    let pointers = std::mem::take(&mut model.pointers);
    pointers.keys().for_each(|&slot| arena.free(bank.object(slot)).expect("a live object"));
    model.locals.clear();
    assert_eq!(arena.len(), 0);
    let all: Vec<_> = std::iter::from_fn(|| arena.alloc_box(Item([0; 4])).ok()).collect();
    assert_eq!(all.len(), bank.slots(), "nothing is lost");
    drop(all);
    assert_eq!(arena.shrink(), bank.slots());
}

/// Runs the program on arenas of several shapes, shared and single-threaded.
pub fn run_all(program: &[u8]) {
    for (chunk_size, chunks, most) in
        [(1, 5, 2), (3, 4, 2), (64, 1, 8), (65, 2, 100), (20, 30, 1025)]
    {
        run::<AtomicU64>(chunk_size, chunks, most, 0, program);
        run::<Cell<u64>>(chunk_size, chunks, most, 2, program);
    }
}
