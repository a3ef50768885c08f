//! Memory for the units, to which their holders write: ThreadSanitizer sees whether the last holder's writes happened
//! before the next one's.

use std::cell::UnsafeCell;

use testkit::BackEnd;
use testkit::program::{Ask, Held, No};

/// An allocator with one word of memory for each unit.
#[derive(Debug)]
pub struct Payload<B> {
    back_end: B,
    memory: Box<[Cell]>,
}

#[derive(Debug, Default)]
struct Cell(UnsafeCell<u64>);

// SAFETY: only the holder of its unit touches a cell, which is one thread at a time, and each holder's accesses happen
// before the next one's. This is exactly what the allocator promises, and what this checks.
unsafe impl Sync for Cell {}

impl<B: BackEnd> Payload<B> {
    /// Creates memory for all units of an allocator of which nothing is held yet.
    pub fn new(back_end: B) -> Self {
        let memory = (0..back_end.units()).map(|_| Cell::default()).collect();
        Self { back_end, memory }
    }

    /// Writes to the first and the last unit of a block or run, which the caller holds.
    fn write(&self, Held { index, len }: Held, lane: usize) {
        for unit in [index, index + len - 1] {
            // SAFETY: the block was handed out to the caller and has not been returned.
            unsafe { *self.memory[unit as usize].0.get() = tag(index, lane) }
        }
    }

    /// Returns whether the block still holds what one holder wrote to all of it.
    fn is_intact(&self, index: u64, order: u32) -> bool {
        // SAFETY: the caller holds the block and is about to free it.
        let read = |unit: u64| unsafe { *self.memory[unit as usize].0.get() };
        let first = read(index);
        first == read(index + (1 << order) - 1) && first >> 16 == index + 1
    }
}

fn tag(index: u64, lane: usize) -> u64 {
    (index + 1) << 16 | lane as u64 & 0xffff
}

impl<B: BackEnd> BackEnd for Payload<B> {
    fn units(&self) -> u64 {
        self.back_end.units()
    }

    fn max_order(&self) -> u32 {
        self.back_end.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.back_end.metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        let index = self.back_end.alloc(lane, order)?;
        self.write(Held { index, len: 1 << order }, lane);
        Some(index)
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        if !self.is_intact(index, order) {
            return Err("somebody else wrote to it".to_string());
        }
        self.write(Held { index, len: 1 << order }, usize::MAX);
        self.back_end.free(lane, index, order)
    }

    fn offers_runs(&self) -> bool {
        self.back_end.offers_runs()
    }

    /// Writes to memory before it is given back, and to every part of what the caller holds afterwards.
    fn ask(&self, lane: usize, ask: Ask<'_>) -> Result<u64, No> {
        match ask {
            Ask::Batch(order, blocks) => {
                let answer = self.back_end.ask(lane, Ask::Batch(order, blocks));
                blocks.iter().for_each(|&index| self.write(Held { index, len: 1 << order }, lane));
                answer
            }
            Ask::FreeBatch(order, blocks) => {
                let given = |&index: &u64| self.write(Held { index, len: 1 << order }, usize::MAX);
                blocks.iter().for_each(given);
                self.back_end.ask(lane, Ask::FreeBatch(order, blocks))
            }
            ask => {
                let (held, wanted, parts) = (ask.held(), ask.wanted(), ask.parts());
                held.into_iter().for_each(|held| self.write(held, usize::MAX));
                let answer = self.back_end.ask(lane, ask);
                let new = answer.ok().zip(wanted).map(|(index, len)| Held { index, len });
                let kept = if answer.is_ok() { parts } else { Vec::from_iter(held) };
                kept.into_iter().chain(new).for_each(|part| self.write(part, lane));
                answer
            }
        }
    }
}
