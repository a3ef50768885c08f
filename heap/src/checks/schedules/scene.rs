//! The heap of a race, the array through which lanes hand blocks over, and an owner map that knows nothing of slabs.

use std::alloc::{Layout, alloc, dealloc};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use testkit::{Addresses, Oracle, Violation, check_whole};

use super::race::{Op, Race};
use crate::api::{On, Placed};
use crate::class::{Class, GRAIN, UNIT};
use crate::operations::Operations;
use crate::region::{Memory, Region, bytes_for};

/// A block that whoever takes it off the array frees.
#[derive(Debug)]
struct Block {
    at: NonNull<u8>,
    layout: Layout,
    /// The lane that allocated it.
    by: usize,
    /// What all its bytes are.
    mark: u8,
    /// Whether it may be longer than its layout, as it was allocated or resized by its address.
    by_address: bool,
}

// SAFETY: the owner of this value holds the block.
unsafe impl Send for Block {}

/// Memory of a heap, with any content, which nobody uses when it is dropped.
struct Area {
    start: NonNull<u8>,
    layout: Layout,
}

impl Area {
    fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, 4096).unwrap();
        // SAFETY: it has a size.
        let start = NonNull::new(unsafe { alloc(layout) }).unwrap();
        // SAFETY: it has these bytes.
        unsafe { start.write_bytes(0xa5, bytes) };
        Self { start, layout }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody uses it any more.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// A heap in use.
pub struct Scene {
    heap: &'static Placed,
    /// The memory of the heap, and of the regions that lanes may add.
    areas: Vec<Area>,
    /// How many of the areas are the heap's, or about to be.
    added: AtomicUsize,
    caches: usize,
    nested: bool,
    owners: Addresses,
    /// Never locked while another lane may go on.
    blocks: Mutex<Vec<Block>>,
    granted: AtomicU64,
    refused: AtomicU64,
}

// SAFETY: the heap may be used by all threads, and its memory is reached through it only.
unsafe impl Sync for Scene {}

impl Scene {
    pub fn new(race: &Race) -> Self {
        let own = Area::new(Placed::bytes_for(race.caches, UNIT << race.order).unwrap());
        // SAFETY: the memory stays until the scene is dropped.
        let heap = unsafe { Placed::new(own.start, own.layout.size(), race.caches) }.unwrap();
        let more = race.more.iter().map(|&units| Area::new(bytes_for(units * UNIT).unwrap()));
        Self {
            heap,
            areas: std::iter::once(own).chain(more).collect(),
            added: AtomicUsize::new(1),
            caches: race.caches,
            nested: race.nested,
            owners: Addresses::default(),
            blocks: Mutex::default(),
            granted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Returns how many allocations were granted, and how many were refused.
    pub fn counts(&self) -> (u64, u64) {
        (self.granted.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }

    fn on(&self, lane: usize) -> On<'_> {
        if self.nested {
            // SAFETY: each lane is a thread, which does one thing after the other.
            unsafe { self.heap.on_nested(lane) }
        } else {
            self.heap.on(lane)
        }
    }

    fn memory(&self) -> Memory<'_> {
        Operations::memory(self.heap.on(0))
    }

    fn blocks(&self) -> MutexGuard<'_, Vec<Block>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a block off the array, if there is one.
    fn pick(&self, pick: usize, by: Option<usize>) -> Option<Block> {
        let mut blocks = self.blocks();
        let is_its = |block: &Block| by.is_none_or(|by| block.by == by);
        let places: Vec<usize> = blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| is_its(block))
            .map(|(at, _)| at)
            .collect();
        let place = *places.get(pick % places.len().max(1))?;
        Some(blocks.remove(place))
    }

    pub fn run(&self, lane: usize, op: Op) -> Result<(), Violation> {
        let on = self.on(lane);
        match op {
            Op::Alloc { size, align, count, zeroed } => {
                let layout = Layout::from_size_align(size, align).unwrap();
                (0..count).try_for_each(|_| self.alloc(lane, layout, zeroed))
            }
            Op::AllocAtLeast { size } => {
                let layout = Layout::from_size_align(size, 1).unwrap();
                let Some(at) = on.alloc_at_least(layout) else { return Ok(()) };
                let found = on.usable(at);
                if found.is_ok_and(|bytes| bytes >= size) {
                    self.put(Block { by_address: true, ..self.take(lane, at, layout)? });
                    return Ok(());
                }
                Err(wrong("alloc_at_least", found))
            }
            Op::Free { pick, count, own, by_address } => (0..count).try_for_each(|_| {
                let block = self.pick(pick, own.then_some(lane));
                block.map_or(Ok(()), |block| self.free(lane, block, by_address))
            }),
            Op::Resize { pick, size, by_address } => {
                let block = self.pick(pick, None);
                block.map_or(Ok(()), |block| self.resize(lane, block, size, by_address))
            }
            Op::Add => {
                let next = self.added.fetch_add(1, Ordering::Relaxed);
                let Some(area) = self.areas.get(next) else { return Ok(()) };
                // SAFETY: the memory stays until the scene is dropped, and nobody else adds it.
                unsafe { self.heap.add(area.start, area.layout.size()) }
                    .map_err(|error| wrong("add", error))
            }
            Op::Trim => {
                on.trim();
                Ok(())
            }
            Op::Drain => {
                let (memory, lane) = (Operations::memory(on), Operations::lane(on));
                _ = Operations::with_cache(on, |cache| cache.drain(&memory, lane));
                Ok(())
            }
            Op::Discard => {
                let zero = |at: NonNull<u8>, bytes| {
                    // SAFETY: nobody holds the pages, and nobody can allocate them now.
                    unsafe { at.write_bytes(0, bytes) };
                    true
                };
                // SAFETY: they are zero.
                unsafe { on.discard(4096, zero) }
                    .map(|_| ())
                    .map_err(|error| wrong("discard", error))
            }
            Op::Look { pick } => {
                let Some(block) = self.pick(pick, None) else { return Ok(()) };
                let found = on.usable(block.at);
                let fits = found.is_ok_and(|bytes| bytes >= block.layout.size());
                self.heap.walk(|_| {});
                self.blocks().push(block);
                if fits { Ok(()) } else { Err(wrong("usable", found)) }
            }
        }
    }

    fn alloc(&self, lane: usize, layout: Layout, zeroed: bool) -> Result<(), Violation> {
        let on = self.on(lane);
        let found = if zeroed { on.alloc_zeroed(layout) } else { on.alloc(layout) };
        let Some(at) = found else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        let block = self.take(lane, at, layout)?;
        if zeroed {
            block.check(layout.size(), 0)?;
        }
        self.put(block);
        Ok(())
    }

    /// Notes what was allocated.
    fn take(&self, by: usize, at: NonNull<u8>, layout: Layout) -> Result<Block, Violation> {
        self.owners.take(at.addr().get(), layout)?;
        let number = self.granted.fetch_add(1, Ordering::Relaxed);
        Ok(Block { at, layout, by, mark: number as u8 | 1, by_address: false })
    }

    /// Marks a block that the caller holds, and puts it on the array.
    fn put(&self, block: Block) {
        // SAFETY: the block is ours.
        unsafe { block.at.write_bytes(block.mark, block.layout.size()) };
        self.blocks().push(block);
    }

    fn free(&self, lane: usize, block: Block, by_address: bool) -> Result<(), Violation> {
        let (at, layout) = (block.at, block.layout);
        block.check(layout.size(), block.mark)?;
        self.owners.give(at.addr().get(), layout)?;
        if by_address || block.by_address {
            // SAFETY: the block is ours.
            let freed = unsafe { self.on(lane).free_at(at) };
            return freed.map(|_| ()).map_err(|error| wrong("free_at", error));
        }
        // SAFETY: the block is ours.
        unsafe { self.on(lane).free(at, layout) };
        Ok(())
    }

    fn resize(
        &self,
        lane: usize,
        block: Block,
        size: usize,
        by_address: bool,
    ) -> Result<(), Violation> {
        let Block { at, layout, mark, .. } = block;
        let by_address = by_address || block.by_address;
        block.check(layout.size(), mark)?;
        self.owners.give(at.addr().get(), layout)?;
        let (on, mut align) = (self.on(lane), layout.align());
        let moved = if by_address {
            align = align.min(GRAIN);
            // SAFETY: the block is ours.
            unsafe { on.resize_at(at, size) }.map_err(|error| wrong("resize_at", error))?
        } else {
            // SAFETY: the block is ours.
            unsafe { on.resize(at, layout, size) }
        };
        let new = moved.map_or(layout, |_| Layout::from_size_align(size, align).unwrap());
        let by_address = block.by_address || by_address && moved.is_some();
        let block = Block { at: moved.unwrap_or(at), layout: new, by_address, ..block };
        self.owners.take(block.at.addr().get(), new)?;
        block.check(new.size().min(layout.size()), mark)?;
        self.put(block);
        Ok(())
    }

    /// Checks what is left, frees it, and checks that everything is free and in one piece. Nothing else runs.
    pub fn finish(self) -> Result<(), Violation> {
        self.audit()?;
        self.trim();
        self.is_held_by_lanes_only()?;
        self.has_no_whole_slab()?;
        for lane in (0..self.caches.max(2)).cycle() {
            let Some(block) = self.pick(0, None) else { break };
            self.free(lane, block, false)?;
        }
        self.audit()?;
        self.trim();
        self.audit()?;
        self.owners.check_empty()?;
        let stats = self.heap.stats();
        if stats.free != stats.bytes || stats.refused != 0 {
            return Err(Violation::wrong("stats", "everything is free", stats));
        }
        let (regions, added) = (self.memory().regions(), self.added.load(Ordering::Relaxed));
        if regions != added.min(self.areas.len()) {
            return Err(Violation::wrong("add", added, regions));
        }
        self.has_zeroes()?;
        self.of_regions(|region| check_whole(region.buddy(), &Oracle::new(region.buddy().units())))
    }

    /// Checks that what is known to be zero is: allocates all of each region, the largest first. Nothing is in use.
    fn has_zeroes(&self) -> Result<(), Violation> {
        let mut regions = Vec::new();
        self.memory().each(|region| regions.push(region.buddy().units()));
        regions.sort_by_key(|&units| Reverse(units));
        for units in regions {
            let all = Layout::from_size_align(units as usize * UNIT, 1).unwrap();
            if Class::of(all).is_none() {
                self.alloc(0, all, true)?;
                let block = self.blocks().last().map(|block| block.layout);
                if block != Some(all) {
                    return Err(wrong("alloc_zeroed", block));
                }
            }
        }
        while let Some(block) = self.pick(0, None) {
            self.free(0, block, false)?;
        }
        self.trim();
        Ok(())
    }

    /// Checks something of each region.
    fn of_regions(
        &self,
        check: impl Fn(&Region<'static>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let found = self.memory().find(|region| check(region).err());
        found.map_or(Ok(()), Err)
    }

    /// Empties all caches, and returns the memory of all slabs that are whole.
    fn trim(&self) {
        (0..self.caches).for_each(|cpu| _ = self.heap.on(cpu).trim());
    }

    fn audit(&self) -> Result<(), Violation> {
        self.heap.audit().map_err(|error| Violation::Audit(error.to_string()))
    }

    /// Checks that the heap says of each block that is held, and of nothing else, that it is in use.
    fn is_held_by_lanes_only(&self) -> Result<(), Violation> {
        let (mut in_use, mut twice) = (BTreeMap::new(), None);
        self.heap.walk(|live| {
            if in_use.insert(live.at.addr().get(), live.size).is_some() {
                twice = Some(live);
            }
        });
        if let Some(live) = twice {
            return Err(Violation::wrong("walk", "each block once", live));
        }
        for block in self.blocks().iter() {
            let at = block.at.addr().get();
            let bytes = in_use.remove(&at);
            if bytes.is_none_or(|bytes| bytes < block.layout.size()) {
                return Err(Violation::wrong("walk", block, bytes));
            }
        }
        match in_use.first_key_value() {
            None => Ok(()),
            Some((&at, &bytes)) => Err(Violation::BytesStillHeld { held: at..at + bytes }),
        }
    }

    /// Checks that all slabs of which no slot is in use were found.
    fn has_no_whole_slab(&self) -> Result<(), Violation> {
        self.of_regions(|region| {
            for unit in 0..region.buddy().units() {
                let slab = region.slabs().look(unit);
                if slab.is_some_and(|(class, free)| free == class.all_slots()) {
                    return Err(Violation::Lost { units: vec![unit] });
                }
            }
            Ok(())
        })
    }
}

impl Block {
    /// Checks that its first bytes are all `mark`.
    fn check(&self, bytes: usize, mark: u8) -> Result<(), Violation> {
        // SAFETY: the block is ours, and was written to, by the heap or by whoever had it.
        let contents = unsafe { NonNull::slice_from_raw_parts(self.at, bytes).as_ref() };
        let other = contents.iter().position(|&byte| byte != mark);
        other.map_or(Ok(()), |place| {
            let at = self.at.addr().get() + place;
            Err(Violation::ContentsChanged { at, expected: mark, got: contents[place] })
        })
    }
}

fn wrong(question: &str, got: impl std::fmt::Debug) -> Violation {
    Violation::wrong(question, "the block of its caller", got)
}
