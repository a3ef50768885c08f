//! The kernel's buddy with its per-CPU page lists.
//!
//! It follows `mm/page_alloc.c` of Linux 6.18. Kept: a list per CPU and order up to `PAGE_ALLOC_COSTLY_ORDER`, and one
//! for huge pages; lists are filled and emptied in batches under the zone's lock; the block freed last is handed out
//! first; all lists are drained before an allocation is refused; the least and the most that a CPU keeps follow from the
//! zone's size, and each refill lets it keep a batch more. Left out: larger batches while a CPU only allocates or only
//! frees, and that it keeps less when memory is short.

use std::array;
use std::collections::VecDeque;
use std::thread;

use spin::mutex::SpinMutex;
use testkit::BackEnd;

use super::Linux;

/// The number of CPUs, to which lanes are dealt out.
const CPUS: usize = 64;

/// The kernel's `PAGE_ALLOC_COSTLY_ORDER`: larger blocks go to the zone.
const MAX_LISTED_ORDER: u32 = 3;

/// The kernel's `HPAGE_PMD_ORDER`: huge pages have a list, too.
const HUGE_ORDER: u32 = 9;

/// Returns the list for blocks of `order`, if there is one: `order_to_pindex`.
fn list_of(order: u32) -> Option<usize> {
    match order {
        0..=MAX_LISTED_ORDER => Some(order as usize),
        HUGE_ORDER => Some(LISTS - 1),
        _ => None,
    }
}

/// Returns the order of the blocks on a list: `pindex_to_order`.
fn order_of(list: usize) -> u32 {
    if list == LISTS - 1 { HUGE_ORDER } else { list as u32 }
}

const LISTS: usize = MAX_LISTED_ORDER as usize + 2;

/// The number of frames that move between list and zone at a time: the kernel's default `pcp->batch`.
const BATCH: usize = 63;

/// Returns how many blocks of `order` come from the zone at a time: `nr_pcp_alloc`.
fn batch(order: u32) -> usize {
    (BATCH >> order).max(2)
}

/// Returns how many frames the lists of each CPU hold before they give a batch back, at first and at most,
/// `zone_highsize`: the low watermark of a zone of `frames` frames, and an eighth of the zone, divided among `cpus` CPUs,
/// but at least four batches.
fn high(frames: u64, cpus: usize) -> (usize, usize) {
    const KIB_PER_FRAME: u64 = 4;
    // `min_free_kbytes`, and the low watermark, which lies a quarter of that, or a thousandth of the zone, above it.
    let least = (16 * frames * KIB_PER_FRAME).isqrt().clamp(128, 262_144) / KIB_PER_FRAME;
    let low = least + (least / 4).max(frames / 1000);
    let share = |frames: u64| (frames as usize / cpus).max(4 * BATCH);
    (share(low), share(frames / 8))
}

/// The lists of one CPU, alone in their cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct PerCpu {
    lists: SpinMutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    frames: usize,
    /// The number of frames from which on they give some back, once they have been refilled.
    high: usize,
    /// The blocks of each list, the one freed last at the front.
    blocks: [VecDeque<u32>; LISTS],
}

/// The kernel's buddy behind per-CPU page lists, the private caches that it has in every kernel.
#[derive(Debug)]
pub struct LinuxPcp {
    linux: Linux,
    cpus: Box<[PerCpu; CPUS]>,
    /// The least and the most that the marks of the lists can be.
    high: (usize, usize),
}

impl LinuxPcp {
    /// Creates an arena as [`Linux::new`] does.
    ///
    /// # Panics
    /// See [`Linux::new`].
    #[must_use]
    pub fn new(units: u64, max_order: u32) -> Self {
        let cpus = Box::new(array::from_fn(|_| PerCpu::default()));
        let online = thread::available_parallelism().map_or(1, usize::from);
        Self { linux: Linux::new(units, max_order), cpus, high: high(units, online) }
    }

    fn lists(&self, lane: usize) -> &SpinMutex<Lists> {
        &self.cpus[lane % CPUS].lists
    }

    /// Allocates from the CPU's list, `rmqueue_pcplist`. An empty list first gets a batch, `rmqueue_bulk`.
    fn alloc_listed(&self, lane: usize, list: usize) -> Option<u64> {
        let order = order_of(list);
        let mut lists = self.lists(lane).lock();
        if lists.blocks[list].is_empty() {
            // With a higher mark there might still be some.
            lists.high = (lists.high.max(self.high.0) + BATCH).min(self.high.1.max(self.high.0));
            let mut zone = self.linux.zone.lock();
            for _ in 0..batch(order) {
                let Some(index) = zone.alloc(order) else { break };
                lists.blocks[list].push_back(index);
                lists.frames += 1 << order;
            }
        }
        let index = lists.blocks[list].pop_front()?;
        lists.frames -= 1 << order;
        Some(u64::from(index))
    }

    /// Frees a block to its CPU's list, `free_unref_page`.
    fn free_listed(&self, lane: usize, index: u32, list: usize) {
        let mut lists = self.lists(lane).lock();
        lists.blocks[list].push_front(index);
        lists.frames += 1 << order_of(list);
        if lists.frames >= lists.high.max(self.high.0) {
            let left = lists.frames - BATCH.min(lists.frames);
            self.shrink(&mut lists, left, list);
        }
    }

    /// Gives back the blocks freed longest ago until only `frames` frames are left: all of one list, beginning with
    /// `first`, before any of the next, as `free_pcppages_bulk` does.
    fn shrink(&self, lists: &mut Lists, frames: usize, first: usize) {
        let mut zone = self.linux.zone.lock();
        for list in (first..LISTS).chain(0..first) {
            while lists.frames > frames
                && let Some(index) = lists.blocks[list].pop_back()
            {
                lists.frames -= 1 << order_of(list);
                zone.free(index, order_of(list));
            }
        }
    }

    /// Empties all lists, `drain_all_pages`.
    fn drain(&self) {
        for cpu in &*self.cpus {
            self.shrink(&mut cpu.lists.lock(), 0, 0);
        }
    }

    fn try_alloc(&self, lane: usize, order: u32) -> Option<u64> {
        match list_of(order) {
            Some(list) => self.alloc_listed(lane, list),
            None => self.linux.alloc(lane, order),
        }
    }
}

impl BackEnd for LinuxPcp {
    fn units(&self) -> u64 {
        self.linux.units()
    }

    fn max_order(&self) -> u32 {
        self.linux.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        let listed = |cpu: &PerCpu| {
            let lists = cpu.lists.lock();
            lists.blocks.iter().map(|list| list.capacity() * size_of::<u32>()).sum::<usize>()
        };
        let cpus: usize = self.cpus.iter().map(|cpu| size_of::<PerCpu>() + listed(cpu)).sum();
        self.linux.metadata_bytes() + cpus
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        if order > self.max_order() {
            return None;
        }
        self.try_alloc(lane, order).or_else(|| {
            self.drain();
            self.try_alloc(lane, order)
        })
    }

    /// Like the kernel, it trusts the caller for the order of the block, and does not notice a second free of a block
    /// that is on a list.
    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        let Some(list) = list_of(order) else { return self.linux.free(lane, index, order) };
        self.linux.check_place(index, order)?;
        self.free_listed(lane, index as u32, list);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH, LinuxPcp, high};
    use testkit::BackEnd;

    #[test]
    fn a_cpu_takes_a_batch_and_gets_back_what_it_freed_last() {
        let linux = LinuxPcp::new(1 << 10, 10);
        let first = linux.alloc(0, 0).unwrap();
        let others = linux.alloc(1, 0).unwrap();
        assert_eq!((first, others), (0, BATCH as u64));
        linux.free(0, others, 0).unwrap();
        assert_eq!(linux.alloc(0, 0), Some(others));
    }

    #[test]
    fn nothing_is_refused_while_another_cpu_has_it_listed() {
        let linux = LinuxPcp::new(8, 3);
        let block = linux.alloc(0, 0).unwrap();
        linux.free(0, block, 0).unwrap();
        assert_eq!(linux.alloc(1, 3), Some(0));
        assert_eq!(linux.alloc(0, 0), None);
    }

    #[test]
    fn what_is_too_much_for_a_list_goes_back_to_the_zone() {
        let linux = LinuxPcp::new(1 << 10, 10);
        let blocks: Vec<u64> = (0..1 << 10).filter_map(|_| linux.alloc(0, 0)).collect();
        blocks.iter().for_each(|&block| linux.free(0, block, 0).unwrap());
        assert!(linux.lists(0).lock().frames < linux.high.1);
        assert_eq!(linux.alloc(1, 10), Some(0));
    }

    #[test]
    fn the_list_that_is_too_much_gives_back_before_the_others() {
        let linux = LinuxPcp::new(1 << 12, 10);
        let single = linux.alloc(0, 0).unwrap();
        linux.free(0, single, 0).unwrap();
        let blocks: Vec<u64> = (0..100).filter_map(|_| linux.alloc(0, 3)).collect();
        blocks.iter().for_each(|&block| linux.free(0, block, 3).unwrap());
        let lists = linux.lists(0).lock();
        assert_eq!((lists.blocks[0].len(), lists.blocks[3].len() < 100), (BATCH, true));
    }

    #[test]
    fn a_cpu_that_is_refilled_keeps_more() {
        let linux = LinuxPcp::new(1 << 18, 10);
        let (least, most) = linux.high;
        let take = |count: usize| {
            let blocks: Vec<u64> = (0..count).filter_map(|_| linux.alloc(0, 0)).collect();
            blocks.iter().for_each(|&block| linux.free(0, block, 0).unwrap());
            linux.lists(0).lock().frames
        };
        // One refill, and many.
        take(1);
        assert_eq!(linux.lists(0).lock().high, (least + BATCH).min(most));
        assert!((most - BATCH..most).contains(&take(2 * most)));
    }

    #[test]
    fn huge_pages_have_a_list_and_what_lies_between_has_none() {
        let linux = LinuxPcp::new(1 << 12, 10);
        let huge = linux.alloc(0, 9).unwrap();
        assert_eq!(linux.lists(0).lock().frames, 512);
        linux.free(0, huge, 9).unwrap();
        linux.alloc(0, 8).unwrap();
        assert_eq!(linux.alloc(0, 9), Some(huge));
    }

    #[test]
    fn a_cpu_keeps_more_of_a_larger_zone() {
        assert_eq!(high(1 << 18, 2), (643, 1 << 14));
        assert_eq!(high(1 << 18, 64), (4 * BATCH, 512));
        assert_eq!(high(1 << 24, 4), (6242, 1 << 19));
    }
}
