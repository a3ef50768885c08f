//! The kernel's buddy with its per-CPU page lists.
//!
//! It follows `mm/page_alloc.c` of Linux 6.18. Kept: a list per CPU and order up to `PAGE_ALLOC_COSTLY_ORDER`, and one
//! for huge pages; lists are filled and emptied in batches under the zone's lock, larger ones while a CPU only allocates
//! or only frees; the block freed last is handed out first; all lists are drained before an allocation is refused; the
//! batch, and the least and the most that a CPU keeps, follow from the zone's size, and each refill lets it keep a batch
//! more. Left out: that it keeps less when memory is short, and less again after a while.

use std::array;
use std::collections::VecDeque;
use std::thread;

use spin::mutex::SpinMutex;
use testkit::BackEnd;

use super::Linux;
use super::tuning::{Limits, Tuning};

/// The number of CPUs, to which lanes are dealt out.
const CPUS: usize = 64;

/// The kernel's `PAGE_ALLOC_COSTLY_ORDER`: larger blocks go to the zone.
pub(super) const MAX_LISTED_ORDER: u32 = 3;

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

/// The lists of one CPU, alone in their cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct PerCpu {
    lists: SpinMutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    frames: usize,
    tuning: Tuning,
    /// The blocks of each list, the one freed last at the front.
    blocks: [VecDeque<u32>; LISTS],
}

/// The kernel's buddy behind per-CPU page lists, the private caches that it has in every kernel.
#[derive(Debug)]
pub struct LinuxPcp {
    linux: Linux,
    cpus: Box<[PerCpu; CPUS]>,
    limits: Limits,
}

impl LinuxPcp {
    /// Creates an arena as [`Linux::new`] does, with lists for the CPUs of this machine.
    ///
    /// # Panics
    /// See [`Linux::new`].
    #[must_use]
    pub fn new(units: u64, max_order: u32) -> Self {
        let online = thread::available_parallelism().map_or(1, usize::from);
        Self::for_cpus(online, units, max_order)
    }

    /// The more CPUs are online, the less each of them keeps.
    fn for_cpus(online: usize, units: u64, max_order: u32) -> Self {
        let cpus = Box::new(array::from_fn(|_| PerCpu::default()));
        Self { linux: Linux::new(units, max_order), cpus, limits: Limits::new(units, online) }
    }

    fn lists(&self, lane: usize) -> &SpinMutex<Lists> {
        &self.cpus[lane % CPUS].lists
    }

    /// Allocates from the CPU's list, `rmqueue_pcplist`. An empty list first gets a batch, `rmqueue_bulk`.
    fn alloc_listed(&self, lane: usize, list: usize) -> Option<u64> {
        let order = order_of(list);
        let mut guard = self.lists(lane).lock();
        let lists = &mut *guard;
        lists.tuning.note_alloc();
        if lists.blocks[list].is_empty() {
            let blocks = lists.tuning.refill(&self.limits, lists.frames, order);
            let mut zone = self.linux.zone.lock();
            for _ in 0..blocks {
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
        let order = order_of(list);
        let mut guard = self.lists(lane).lock();
        let lists = &mut *guard;
        lists.blocks[list].push_front(index);
        lists.frames += 1 << order;
        let frames = lists.tuning.surplus(&self.limits, lists.frames, order);
        if frames > 0 {
            self.shrink(lists, lists.frames.saturating_sub(frames), list);
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
    use super::LinuxPcp;
    use testkit::BackEnd;

    /// The batch of 1 GiB.
    const BATCH: usize = 63;

    fn gib() -> LinuxPcp {
        LinuxPcp::for_cpus(2, 1 << 18, 10)
    }

    #[test]
    fn a_cpu_takes_a_batch_and_gets_back_what_it_freed_last() {
        let linux = gib();
        let first = linux.alloc(0, 0).unwrap();
        let others = linux.alloc(1, 0).unwrap();
        assert_eq!((first, others), (0, BATCH as u64));
        linux.free(0, others, 0).unwrap();
        assert_eq!(linux.alloc(0, 0), Some(others));
    }

    #[test]
    fn nothing_is_refused_while_another_cpu_has_it_listed() {
        let linux = LinuxPcp::for_cpus(2, 8, 3);
        let block = linux.alloc(0, 0).unwrap();
        linux.free(0, block, 0).unwrap();
        assert_eq!(linux.alloc(1, 3), Some(0));
        assert_eq!(linux.alloc(0, 0), None);
    }

    #[test]
    fn what_is_too_much_for_a_list_goes_back_to_the_zone() {
        let linux = LinuxPcp::for_cpus(2, 1 << 12, 10);
        let blocks: Vec<u64> = (0..1 << 12).filter_map(|_| linux.alloc(0, 0)).collect();
        blocks.iter().for_each(|&block| linux.free(0, block, 0).unwrap());
        assert!(linux.lists(0).lock().frames < linux.limits.high.1);
        assert!(linux.linux.alloc(0, 9).is_some());
    }

    #[test]
    fn the_list_that_is_too_much_gives_back_before_the_others() {
        let linux = gib();
        let single = linux.alloc(0, 0).unwrap();
        linux.free(0, single, 0).unwrap();
        let blocks: Vec<u64> = (0..20).filter_map(|_| linux.alloc(0, 9)).collect();
        blocks.iter().for_each(|&block| linux.free(0, block, 9).unwrap());
        let lists = linux.lists(0).lock();
        assert_eq!((lists.blocks[0].len(), lists.blocks[4].len() < 20), (BATCH, true));
    }

    #[test]
    fn a_cpu_that_is_refilled_keeps_more() {
        let linux = gib();
        let (_, most) = linux.limits.high;
        let take = |count: usize| {
            let blocks: Vec<u64> = (0..count).filter_map(|_| linux.alloc(0, 0)).collect();
            blocks.iter().for_each(|&block| linux.free(0, block, 0).unwrap());
            linux.lists(0).lock().frames
        };
        // One refill, and many: then up to the most, and what is too much goes back in large batches.
        assert_eq!(take(1), BATCH);
        assert!((most - (BATCH << 5)..most).contains(&take(2 * most)));
    }

    #[test]
    fn a_cpu_that_only_allocates_needs_the_zone_less_and_less_often() {
        let linux = gib();
        let refills = (0..3000).filter(|_| {
            let was_empty = linux.lists(0).lock().blocks[0].is_empty();
            linux.alloc(0, 0).unwrap();
            was_empty
        });
        // Of 63, 126, 252, 504, 1008 and 2016 frames.
        assert_eq!(refills.count(), 6);
    }

    #[test]
    fn huge_pages_have_a_list_and_what_lies_between_has_none() {
        let linux = LinuxPcp::for_cpus(2, 1 << 15, 10);
        let huge = linux.alloc(0, 9).unwrap();
        assert_eq!(linux.lists(0).lock().frames, 512);
        linux.free(0, huge, 9).unwrap();
        linux.alloc(0, 8).unwrap();
        assert_eq!(linux.alloc(0, 9), Some(huge));
    }
}
