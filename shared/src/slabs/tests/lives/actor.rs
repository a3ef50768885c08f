//! What a member does, at random, and what it knows of what it holds.

use std::cell::RefCell;

use testkit::{Block, Violation};

use super::{GRAIN, MAIL, Mail, Stage, slot, wrong};
use crate::ledger::{Fate, Owner, Seat};
use crate::slabs::Cursors;

/// A block that was filled with a value.
#[derive(Clone, Copy, Debug)]
struct Filled {
    unit: u64,
    order: u32,
    value: u64,
}

impl Filled {
    fn block(self) -> Block {
        Block { index: self.unit * 64 / GRAIN, order: self.order + (64 / GRAIN).trailing_zeros() }
    }
}

pub(super) struct Actor<'s> {
    stage: &'s Stage,
    pub seat: Seat,
    cursors: Cursors,
    id: usize,
    /// Where the slots are that it holds, and of which class. A callback of its own recovery allocates and frees, too.
    slots: RefCell<Vec<(u64, usize)>>,
    blocks: Vec<Filled>,
    random: RefCell<fastrand::Rng>,
}

impl<'s> Actor<'s> {
    pub fn new(stage: &'s Stage, seat: usize, seed: u64) -> Self {
        let seat = stage.world.sit(seat).seat;
        let random = fastrand::Rng::with_seed(seed * 31 + seat.number as u64);
        Self {
            stage,
            id: Stage::id(&seat),
            seat,
            cursors: Cursors::default(),
            slots: RefCell::default(),
            blocks: Vec::new(),
            random: RefCell::new(random),
        }
    }

    /// Any of so many, but 0.
    fn any(&self, count: u64) -> u64 {
        self.random.borrow_mut().u64(0..count)
    }

    pub fn act(&mut self) -> Result<(), Violation> {
        match self.any(16) {
            0..=3 => self.alloc(),
            4..=7 => self.free(),
            8 => self.send(),
            9 => self.take(),
            10 => self.alloc_block(),
            11 => self.free_block(),
            12 | 13 => self.trim(),
            14 => self.recover(),
            _ => Ok(()),
        }
    }

    /// Leaves, as `Member::drop`.
    pub fn leave(&self) {
        self.stage.world.slabs().unpin_all(self.seat.number);
        self.stage.world.ledger().leave(&self.seat);
        self.stage.bury(&self.seat);
    }

    /// Takes what is under way, frees what it holds, and trims.
    pub fn give_all_back(&self) -> Result<(), Violation> {
        while !self.stage.mail.lock().unwrap().is_empty() {
            self.take()?;
        }
        while !self.slots.borrow().is_empty() {
            self.free()?;
        }
        self.trim()
    }

    /// That nobody has written into its blocks.
    pub fn check(&self) -> Result<(), Violation> {
        let mut blocks = self.blocks.iter();
        let world = &self.stage.world;
        let is_whole = |&&Filled { unit, order, value }: &&Filled| {
            world.is_full_of_plainly(unit, 1 << order, value)
        };
        blocks.find(|block| !is_whole(block)).map_or(Ok(()), |found| Err(wrong(("written", found))))
    }

    fn alloc(&self) -> Result<(), Violation> {
        let class = self.any(2) as usize;
        if let Some(at) = self.stage.world.slabs().alloc(&self.seat, &self.cursors, class) {
            let slot = slot(at, class);
            self.stage.oracle.take(self.id, slot.index, slot.order)?;
            self.slots.borrow_mut().push((at, class));
        }
        Ok(())
    }

    fn free(&self) -> Result<(), Violation> {
        let held = self.slots.borrow().len() as u64;
        if held == 0 {
            return Ok(());
        }
        let which = self.any(held) as usize;
        let (at, class) = self.slots.borrow_mut().swap_remove(which);
        self.stage.oracle.give(slot(at, class))?;
        match self.stage.world.slabs().free(&self.seat, &self.cursors, at) {
            Some(Ok(bytes)) if bytes == GRAIN << class => Ok(()),
            other => Err(wrong(("free", at, other))),
        }
    }

    fn send(&self) -> Result<(), Violation> {
        let sent = self.slots.borrow_mut().pop();
        let Some((at, class)) = sent else { return Ok(()) };
        self.stage.mail.lock().unwrap().push(Mail { at, class, taker: None });
        self.stage.pass(slot(at, class), MAIL)
    }

    /// Takes what was sent, and nobody is about to take who is there.
    fn take(&self) -> Result<(), Violation> {
        let Some(Mail { at, class, .. }) = self.claim_mail() else { return Ok(()) };
        match self.stage.world.slabs().take(&self.seat, at, None) {
            Some(Ok(_)) => {}
            other => return Err(wrong(("take", at, other))),
        }
        self.stage.mail.lock().unwrap().retain(|mail| mail.at != at);
        self.stage.pass(slot(at, class), self.id)?;
        self.slots.borrow_mut().push((at, class));
        Ok(())
    }

    fn claim_mail(&self) -> Option<Mail> {
        let mut mail = self.stage.mail.lock().unwrap();
        let is_left = |mail: &&mut Mail| mail.taker.is_none_or(|id| self.stage.is_gone(id));
        mail.iter_mut().find(is_left).map(|mail| {
            mail.taker = Some(self.id);
            *mail
        })
    }

    fn alloc_block(&mut self) -> Result<(), Violation> {
        // Some are larger than a word.
        let order = if self.any(3) == 0 { 5 + self.any(2) } else { self.any(5) } as u32;
        if let Some(Ok(unit)) = self.stage.world.ledger().alloc(&self.seat, order) {
            let filled = Filled { unit, order, value: self.tag() };
            let block = filled.block();
            self.stage.oracle.take(self.id, block.index, block.order)?;
            self.stage.world.fill_plainly(unit, 1 << order, filled.value);
            self.blocks.push(filled);
        }
        Ok(())
    }

    /// What a slot's tag could look like.
    fn tag(&self) -> u64 {
        let old = self.any(20) << 30;
        let anybody = Owner::new(self.any(4) as usize, self.any(4));
        match self.any(5) {
            0 => 0,
            1 => self.seat.owner.after(self.any(u64::MAX)),
            2 => anybody.closing(old),
            3 => anybody.after_in_slot(old),
            _ => Owner::NOBODY.after_in_slot(old),
        }
    }

    fn free_block(&mut self) -> Result<(), Violation> {
        self.check()?;
        let Some(filled) = self.blocks.pop() else { return Ok(()) };
        self.stage.oracle.give(filled.block())?;
        let freed = self.stage.world.ledger().free(&self.seat, filled.unit);
        freed.map(drop).map_err(|error| wrong(("free", filled, error)))
    }

    fn trim(&self) -> Result<(), Violation> {
        self.stage.world.slabs().trim(&self.seat, &self.cursors, &self.stage.world);
        Ok(())
    }

    pub fn recover(&self) -> Result<(), Violation> {
        let mut done = Ok(());
        let decide = |at, bytes| {
            let decided = self.decide(at, bytes);
            decided.unwrap_or_else(|found| {
                done = Err(found);
                Fate::Keep
            })
        };
        let found = self.stage.world.slabs().recover(&self.seat, &self.stage.world, decide);
        if found.damaged > 0 { Err(wrong(found)) } else { done }
    }

    fn decide(&self, at: u64, bytes: u64) -> Result<Fate, Violation> {
        let stage = self.stage;
        if stage.mail.lock().unwrap().iter().any(|mail| mail.at == at) {
            return Ok(Fate::Keep);
        }
        let block = Block { index: at / GRAIN, order: (bytes / GRAIN).trailing_zeros() };
        // Whom it was sent to may have taken it since the recoverer looked.
        if bytes < 64 && !self.has(at) {
            return Ok(Fate::Keep);
        }
        stage.oracle.bury(block, |id| stage.is_gone(id))?;
        stage.oracle.take(self.id, block.index, block.order)?;
        if bytes < 64 && self.any(2) == 0 {
            self.slots.borrow_mut().push((at, block.order as usize));
            return Ok(Fate::Keep);
        }
        match self.any(16) {
            0 => self.alloc()?,
            1 => self.trim()?,
            2 => self.free()?,
            3 => self.recover()?,
            _ => {}
        }
        stage.oracle.give(block)?;
        Ok(Fate::Free)
    }

    fn has(&self, at: u64) -> bool {
        let owner = self.stage.world.slabs().owner_at(at);
        matches!(owner, Some(Ok((_, owner))) if owner == self.seat.owner)
    }
}
