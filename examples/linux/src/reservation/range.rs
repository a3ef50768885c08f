//! Addresses that are backed while they are allocated.

use std::ops::Range;
use std::{fmt, fs, io};

use anyhow::{Context, ensure};
use nbbs::{Buddy, Piece};
use rustix::mm::Advice;

use super::seen::Seen;
use crate::blocks::Held;
use crate::mapping::{Access, Contents, Mapping};
use crate::table::size;

/// How the addresses of freed memory are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// They can still be accessed, and then have a page of zeros. This takes one system call a free, and none an
    /// allocation.
    Open,
    /// They cannot be accessed: a program that uses freed memory is stopped. This takes two more system calls, and as
    /// many mappings as there are stretches in use, which Linux limits to 65530.
    Closed,
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "can be accessed",
            Self::Closed => "cannot",
        })
    }
}

/// An address range and the allocator of its pages, whose bookkeeping lies elsewhere: nothing is written into the
/// range, so what is free needs no memory.
#[derive(Debug)]
pub struct Reserved<'a> {
    pages: Buddy<'a>,
    mapping: Mapping,
    guard: Guard,
    page: usize,
    /// Blocks of this order and more are asked to be in huge pages.
    huge_order: u32,
    broken: bool,
}

impl<'a> Reserved<'a> {
    /// Reserves a page of addresses for each unit.
    pub fn new(pages: Buddy<'a>, guard: Guard, broken: bool) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let huge = huge_page();
        let access = if guard == Guard::Open { Access::All } else { Access::None };
        let mapping = Mapping::reserve(pages.units() as usize * page, huge, access)?;
        let huge_order = (huge / page).ilog2();
        let reserved = Self { pages, mapping, guard, page, huge_order, broken };
        // If the system always uses huge pages, a single used page would have memory for 512.
        reserved.mapping.advise(&(0..reserved.bytes()), Advice::LinuxNoHugepage)?;
        Ok(reserved)
    }

    /// Allocates a block, from the lane of the caller, and has it backed.
    ///
    /// The operating system backs small blocks when they are first accessed; large ones, which are aligned to their
    /// size, are backed by huge pages.
    pub fn alloc(&self, lane: usize, order: u32) -> anyhow::Result<u64> {
        let index = self.pages.on(lane).alloc(order)?;
        let range = self.bytes_of(index, order);
        self.commit(&range, order).inspect_err(|_| {
            let _ = self.pages.on(lane).free_sized(index, order);
        })?;
        Ok(index)
    }

    /// Frees a block. Its memory goes back before its addresses do: afterwards these may belong to another holder.
    pub fn free(&self, lane: usize, index: u64, order: u32) -> anyhow::Result<()> {
        self.decommit(&self.bytes_of(index, order), order)?;
        Ok(self.pages.on(lane).free_sized(index, order)?)
    }

    fn commit(&self, range: &Range<usize>, order: u32) -> anyhow::Result<()> {
        if self.guard == Guard::Closed {
            self.mapping.protect(range, Access::All).context(MAPPINGS)?;
        }
        if order >= self.huge_order {
            self.mapping.advise(range, Advice::LinuxHugepage)?;
        }
        Ok(())
    }

    fn decommit(&self, range: &Range<usize>, order: u32) -> anyhow::Result<()> {
        if self.broken {
            return Ok(());
        }
        self.mapping.advise(range, Advice::LinuxDontNeed)?;
        if order >= self.huge_order {
            self.mapping.advise(range, Advice::LinuxNoHugepage)?;
        }
        if self.guard == Guard::Closed {
            self.mapping.protect(range, Access::None).context(MAPPINGS)?;
        }
        Ok(())
    }

    /// Replaces the contents of a block that the caller holds.
    pub fn replace(&self, held: Held, from: Contents, to: Contents) -> anyhow::Result<()> {
        let range = self.bytes_of(held.index, held.order);
        // SAFETY: the caller holds the block, so it is committed.
        unsafe { self.mapping.replace(range, from, to)? };
        Ok(())
    }

    /// Returns the order of a huge page.
    pub fn huge_order(&self) -> u32 {
        self.huge_order
    }

    /// Returns the number of pages in blocks that are requested as huge pages.
    pub fn huge_in_use(&self) -> u64 {
        let mut pages = 0;
        self.pages.walk(|piece| match piece {
            Piece::Used { order, .. } if order >= self.huge_order => pages += 1 << order,
            _ => {}
        });
        pages
    }

    /// Returns its addresses.
    pub fn addresses(&self) -> Range<usize> {
        self.mapping.addresses()
    }

    /// Checks that exactly the pages in use are resident, while nobody allocates or frees: each was written to.
    pub fn check_resident(&self, seen: &Seen) -> anyhow::Result<()> {
        let in_use = self.pages.stats().used_units * self.page as u64;
        ensure!(
            seen.resident == in_use,
            "{} resident, but {} in use",
            size(seen.resident),
            size(in_use)
        );
        ensure!(seen.huge <= self.huge_in_use() * self.page as u64, "small blocks in huge pages");
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.pages.units() as usize * self.page
    }

    fn bytes_of(&self, index: u64, order: u32) -> Range<usize> {
        let first = index as usize * self.page;
        first..first + (self.page << order)
    }
}

impl fmt::Display for Reserved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.addresses();
        let bookkeeping = 8 * nbbs::metadata_words(self.pages.units()) as u64;
        write!(
            f,
            "{} GiB of addresses, {start:#x} to {end:#x}, in {} pages; bookkeeping {}; a huge page has {}",
            self.bytes() >> 30,
            self.pages.units(),
            size(bookkeeping),
            size((self.page << self.huge_order) as u64),
        )
    }
}

/// Returns why access cannot be changed.
const MAPPINGS: &str = "more mappings than Linux keeps apart: raise vm.max_map_count, or hold less";

/// Returns the bytes of a huge page, or the common size if there are none.
fn huge_page() -> usize {
    let said = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    said.ok().and_then(|said| said.trim().parse().ok()).unwrap_or(2 << 20)
}
