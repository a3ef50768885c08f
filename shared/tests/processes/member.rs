//! What a member does: allocates, writes, checks, frees and recovers at random, and tells the owner map.

use std::alloc::Layout;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use nbbs_shared::{AllocError, Fate, JoinError, Member, Offset};
use testkit::Block;

use crate::stage::{NUMBERS, SURVIVORS, Stage, said};

/// Blocks that a member holds at most.
const MOST: usize = 12;

/// A member at work.
pub struct Actor<'s> {
    stage: &'s Stage,
    member: Member,
    who: usize,
    held: Vec<(Offset<u8>, Block)>,
    /// Of the heap, and what stands there.
    slots: Vec<(Offset<u8>, u64)>,
}

/// `member WHO SEGMENT BOARD`: attaches by these descriptors, and works until it is told to stop, or killed.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let [_, who, segment, board] = arguments else {
        return Err("who, and two descriptors".to_string());
    };
    let [segment, board] = [segment, board].map(|number| {
        let number = number.parse().map_err(said)?;
        // SAFETY: whoever started this process says that they are open, and this is their only owner here.
        Ok::<_, String>(unsafe { OwnedFd::from_raw_fd(number) })
    });
    let stage = Stage::attach(segment?, board?)?;
    let mut actor = Actor::new(&stage, who.parse().map_err(said)?)?;
    while stage.board().stop.load(Ordering::Relaxed) == 0 {
        actor.act()?;
    }
    actor.end()
}

impl<'s> Actor<'s> {
    pub fn new(stage: &'s Stage, who: usize) -> Result<Self, String> {
        let member = loop {
            match stage.segment.join() {
                // The one before is not buried yet.
                Err(JoinError::Full { .. } | JoinError::Changing { .. }) => {
                    std::thread::yield_now()
                }
                other => break other.map_err(said)?,
            }
        };
        Ok(Self { stage, member, who, held: Vec::new(), slots: Vec::new() })
    }

    /// One operation.
    pub fn act(&mut self) -> Result<(), String> {
        match fastrand::u32(..) % 256 {
            0 if self.who < SURVIVORS => _ = self.recover()?,
            1 if self.who < SURVIVORS => _ = self.call(|member| member.heap().trim()),
            slot if slot % 8 == 2 && self.slots.len() < MOST => self.alloc_slot()?,
            slot if slot % 8 == 3 => self.free_slot()?,
            even if even % 2 == 0 && self.held.len() < MOST => self.alloc()?,
            _ => self.free()?,
        }
        let done = self.stage.says(self.who).done.fetch_add(1, Ordering::Relaxed);
        // Where there are fewer processors than processes, deaths would have to wait for turns.
        if done.is_multiple_of(64) && self.who < SURVIVORS {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn call<T>(&self, call: impl FnOnce(&Member) -> T) -> T {
        let acts = &self.stage.says(self.who).acts;
        acts.store(1, Ordering::Relaxed);
        let result = call(&self.member);
        acts.store(0, Ordering::Relaxed);
        result
    }

    fn alloc(&mut self) -> Result<(), String> {
        let bytes = 64 << (fastrand::u32(0..4) * fastrand::u32(0..3));
        let layout = Layout::from_size_align(bytes, 64).map_err(said)?;
        let offset = match self.call(|member| member.alloc(layout)) {
            Ok(offset) => offset,
            Err(AllocError::Exhausted { .. } | AllocError::TooLarge { .. }) => return Ok(()),
            Err(error) => return Err(said(error)),
        };
        let order = (bytes / 64).ilog2();
        let block = self.stage.oracle().take(self.who, self.stage.unit(offset.bytes()), order);
        let block = block.map_err(said)?;
        // SAFETY: the block is this member's; nobody else writes there but a survivor that recovers it.
        unsafe { self.stamp(offset)?.write_volatile(self.mark(block)) };
        self.held.push((offset, block));
        Ok(())
    }

    fn free(&mut self) -> Result<(), String> {
        if self.held.is_empty() {
            return Ok(());
        }
        let (offset, block) = self.held.swap_remove(fastrand::usize(..self.held.len()));
        // SAFETY: as in `alloc`.
        let found = unsafe { self.stamp(offset)?.read_volatile() };
        if found != self.mark(block) {
            return Err(format!(
                "handed out twice: {block:?} of member {} has mark {found:#x}",
                self.who
            ));
        }
        self.stage.oracle().give(block).map_err(said)?;
        self.call(|member| member.free(offset)).map(drop).map_err(said)
    }

    /// Nothing but its first word tells of whom a slot is: whoever else was given it would write there.
    fn alloc_slot(&mut self) -> Result<(), String> {
        let layout = Layout::from_size_align(fastrand::usize(8..40), 8).map_err(said)?;
        let offset = match self.call(|member| member.heap().alloc(layout)) {
            Ok(offset) => offset,
            Err(AllocError::Exhausted { .. }) => return Ok(()),
            Err(error) => return Err(said(error)),
        };
        let mark = fastrand::u64(..);
        // SAFETY: the slot is this member's; nobody else writes there but a survivor that recovers it.
        unsafe { self.slot(offset)?.write_volatile(mark) };
        self.slots.push((offset, mark));
        Ok(())
    }

    fn free_slot(&mut self) -> Result<(), String> {
        if self.slots.is_empty() {
            return Ok(());
        }
        let (offset, mark) = self.slots.swap_remove(fastrand::usize(..self.slots.len()));
        // SAFETY: as in `alloc_slot`.
        let found = unsafe { self.slot(offset)?.read_volatile() };
        if found != mark {
            return Err(format!("handed out twice: slot {offset:?} has mark {found:#x}"));
        }
        self.call(|member| member.heap().free(offset)).map(drop).map_err(said)
    }

    fn slot(&self, offset: Offset<u8>) -> Result<*mut u64, String> {
        Ok(self.member.heap().block(offset).map_err(said)?.as_ptr().cast())
    }

    fn stamp(&self, offset: Offset<u8>) -> Result<*mut u64, String> {
        Ok(self.member.block(offset).map_err(said)?.as_ptr().cast())
    }

    fn mark(&self, block: Block) -> u64 {
        (self.who as u64) << 48 | block.index << 8 | u64::from(block.order)
    }

    /// Recovers whatever can be, and returns how many blocks could not be told.
    pub fn recover(&self) -> Result<usize, String> {
        let mut wrong = Ok(());
        let found = self.call(|member| {
            member.recover(|recovered| {
                if recovered.bytes < 64 {
                    return Fate::Free;
                }
                let index = self.stage.unit(recovered.offset.bytes());
                let block = Block::of(index, recovered.bytes / 64).ok_or("no block".to_string());
                let buried = block.and_then(|block| {
                    let dead = |lane| lane >= SURVIVORS;
                    self.stage.oracle().bury(block, dead).map_err(said)
                });
                if wrong.is_ok() {
                    wrong = buried.map_err(|found| format!("recovered of a survivor: {found}"));
                }
                Fate::Free
            })
        });
        self.stage.says(self.who).recovered.fetch_add(found.freed as u64, Ordering::Relaxed);
        wrong?;
        if found.damaged > 0 { Err(format!("{found:?}")) } else { Ok(found.pending) }
    }

    /// Frees all.
    pub fn end(&mut self) -> Result<(), String> {
        while !self.held.is_empty() {
            self.free()?;
        }
        while !self.slots.is_empty() {
            self.free_slot()?;
        }
        Ok(())
    }

    /// That every unit is free, and comes at every order. Nobody else is there.
    pub fn assert_whole(&self) -> Result<(), String> {
        while self.recover()? > 0 {}
        self.member.heap().trim();
        self.stage.oracle().check_empty().map_err(said)?;
        let units = self.stage.segment.geometry().units;
        let free = self.stage.segment.count_free_bytes() / 64;
        if free != units {
            return Err(format!("{} units of {units}: lost", units - free));
        }
        for order in (0..=units.ilog2()).rev() {
            let layout = Layout::from_size_align(64 << order, 64).map_err(said)?;
            let blocks: Vec<_> = std::iter::from_fn(|| self.member.alloc(layout).ok()).collect();
            if blocks.len() as u64 != units >> order {
                return Err(format!("not whole: {} blocks of order {order}", blocks.len()));
            }
            for block in blocks {
                self.member.free(block).map_err(said)?;
            }
        }
        Ok(())
    }
}

/// Numbers of those that are killed.
pub fn number_of(death: u64) -> usize {
    SURVIVORS + death as usize % (NUMBERS - SURVIVORS)
}
