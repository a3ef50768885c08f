//! The guest: threads that allocate, write, check and free in memory that the host takes back once it is free.

use std::thread;
use std::time::Duration;

use anyhow::{anyhow, ensure};
use nbbs::{AllocError, Buddy};
use testkit::Block;

use super::shared::{Number, Shared, frame_units};
use crate::blocks::{Held, draw, take_any};
use crate::mapping::Contents;

/// Runs `cpus` threads that use the guest's memory until they are told to stop; then they free all of it.
pub fn run(shared: &Shared, cpus: usize) -> anyhow::Result<()> {
    thread::scope(|scope| {
        let cpu = |lane| scope.spawn(move || Cpu::new(shared, lane, cpus)?.run());
        let cpus: Vec<_> = (0..cpus).map(cpu).collect();
        cpus.into_iter().try_for_each(|cpu| cpu.join().map_err(|_| anyhow!("a thread panicked"))?)
    })
}

/// A CPU of the guest, and what its programs hold.
struct Cpu<'a> {
    shared: &'a Shared,
    pages: Buddy<'a>,
    lane: usize,
    /// Its share of the guest's memory, in units.
    most: u64,
    random: fastrand::Rng,
    held: Vec<Held>,
    units: u64,
    blocks: u64,
}

impl<'a> Cpu<'a> {
    fn new(shared: &'a Shared, lane: usize, cpus: usize) -> anyhow::Result<Self> {
        let random = fastrand::Rng::with_seed(lane as u64);
        let (pages, most) = (shared.pages()?, shared.units() / cpus as u64);
        Ok(Self { shared, pages, lane, most, random, held: Vec::new(), units: 0, blocks: 0 })
    }

    fn run(mut self) -> anyhow::Result<()> {
        while self.shared.get(Number::Stop) == 0 {
            let wanted = self.most * self.shared.get(Number::Wanted) / 1000;
            // Near the wanted amount it allocates and frees; otherwise it mostly moves towards it.
            let alloc = match self.units {
                units if units + self.most / 50 < wanted => self.random.u32(..8) != 0,
                units if units > wanted + self.most / 50 => self.random.u32(..8) == 0,
                units => self.random.bool() && units < wanted,
            };
            if alloc {
                self.alloc()?
            } else {
                self.free_any()?
            }
            if self.random.u32(..4) == 0 {
                self.check_any()?;
            }
        }
        while !self.held.is_empty() {
            self.free_any()?;
        }
        Ok(())
    }

    /// Acts as a guest's kernel: allocates, checks whether there is memory, and has it installed if not.
    fn alloc(&mut self) -> anyhow::Result<()> {
        let order = draw(&mut self.random, frame_units().ilog2());
        let index = match self.pages.on(self.lane).alloc(order) {
            Err(AllocError::Exhausted { .. }) => {
                self.shared.add(Number::Refused, 1);
                return self.free_any();
            }
            index => index?,
        };
        self.blocks += 1;
        let held = Held { index, order, tag: (self.lane as u64) << 48 | self.blocks };
        self.back(held)?;
        self.shared.owners().take(self.lane, index, order)?;
        self.shared.replace(held, Contents::Zero, Contents::Of(held.tag))?;
        self.held.push(held);
        self.count(1 << order, 0);
        Ok(())
    }

    /// Has each frame of a block backed. If two find the same frame without memory, both have it installed, which does
    /// no harm; neither waits for the other. The host cannot take the frame before both have freed their blocks.
    fn back(&self, held: Held) -> anyhow::Result<()> {
        let units = held.units();
        for frame in units.start / frame_units()..units.end.div_ceil(frame_units()) {
            if self.shared.not_backed().get(frame) {
                self.shared.install(frame)?;
                let first = self.shared.not_backed().clear(frame);
                self.shared.add(Number::Installed, u64::from(first));
            }
        }
        Ok(())
    }

    fn free_any(&mut self) -> anyhow::Result<()> {
        let Some(held) = take_any(&mut self.random, &mut self.held) else {
            thread::sleep(Duration::from_micros(100));
            return Ok(());
        };
        // Leaves zeros, which the next holder also finds in memory that was taken and returned.
        self.shared.replace(held, Contents::Of(held.tag), Contents::Zero)?;
        self.shared.owners().give(Block { index: held.index, order: held.order })?;
        let freed = self.pages.on(self.lane).free(held.index)?;
        ensure!(freed == 1 << held.order, "{freed} units freed of {held:?}");
        self.count(0, freed);
        Ok(())
    }

    fn check_any(&mut self) -> anyhow::Result<()> {
        if !self.held.is_empty() {
            let held = self.held[self.random.usize(..self.held.len())];
            let contents = Contents::Of(held.tag);
            self.shared.replace(held, contents, contents)?;
            self.shared.add(Number::Checked, 1);
        }
        Ok(())
    }

    fn count(&mut self, more: u64, less: u64) {
        self.units = self.units + more - less;
        self.shared.add(Number::Held, more.wrapping_sub(less));
        self.shared.add(Number::Operations, 1);
    }
}
