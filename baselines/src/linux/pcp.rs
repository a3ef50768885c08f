//! The kernel's buddy with its per-CPU page lists.
//!
//! After `mm/page_alloc.c`. Kept: a list per CPU and order up to `PAGE_ALLOC_COSTLY_ORDER`, filled and
//! emptied in batches under the zone's lock, the last block freed handed out first, and all lists drained
//! before an allocation is refused. Left out: the tuning of the lists' length, which is fixed here.

use std::array;
use std::collections::VecDeque;

use spin::mutex::SpinMutex;
use testkit::BackEnd;

use super::Linux;

/// CPUs, which lanes are dealt out to.
const CPUS: usize = 64;

/// The kernel's `PAGE_ALLOC_COSTLY_ORDER`: larger blocks go to the zone.
const MAX_LISTED_ORDER: u32 = 3;

/// Frames that go from list to zone or back at a time: the kernel's default `pcp->batch`.
const BATCH: usize = 63;

/// Frames that the lists of a CPU hold at most.
const HIGH: usize = 6 * BATCH;

/// The lists of one CPU, alone in their cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct PerCpu {
    lists: SpinMutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    frames: usize,
    /// The block freed last at the front.
    by_order: [VecDeque<u32>; MAX_LISTED_ORDER as usize + 1],
}

/// The kernel's buddy behind per-CPU page lists: private caches, which every `Linux` of a kernel has.
#[derive(Debug)]
pub struct LinuxPcp {
    linux: Linux,
    cpus: Box<[PerCpu; CPUS]>,
}

impl LinuxPcp {
    /// An arena as [`Linux::new`] makes it.
    ///
    /// # Panics
    /// As [`Linux::new`].
    #[must_use]
    pub fn new(units: u64, max_order: u32) -> Self {
        let cpus = Box::new(array::from_fn(|_| PerCpu::default()));
        Self { linux: Linux::new(units, max_order), cpus }
    }

    fn lists(&self, lane: usize) -> &SpinMutex<Lists> {
        &self.cpus[lane % CPUS].lists
    }

    /// `rmqueue_pcplist`: from the CPU's list, after a batch for an empty one: `rmqueue_bulk`.
    fn alloc_listed(&self, lane: usize, order: u32) -> Option<u64> {
        let mut lists = self.lists(lane).lock();
        if lists.by_order[order as usize].is_empty() {
            let mut zone = self.linux.zone.lock();
            for _ in 0..(BATCH >> order) {
                let Some(index) = zone.alloc(order) else { break };
                lists.by_order[order as usize].push_back(index);
                lists.frames += 1 << order;
            }
        }
        let index = lists.by_order[order as usize].pop_front()?;
        lists.frames -= 1 << order;
        Some(u64::from(index))
    }

    /// `free_unref_page`.
    fn free_listed(&self, lane: usize, index: u32, order: u32) {
        let mut lists = self.lists(lane).lock();
        lists.by_order[order as usize].push_front(index);
        lists.frames += 1 << order;
        if lists.frames >= HIGH {
            self.shrink(&mut lists, HIGH - BATCH);
        }
    }

    /// `free_pcppages_bulk`: the blocks freed longest ago, list by list, until so few frames are left.
    fn shrink(&self, lists: &mut Lists, frames: usize) {
        let mut zone = self.linux.zone.lock();
        for order in (0..=MAX_LISTED_ORDER).cycle() {
            if lists.frames <= frames {
                break;
            }
            if let Some(index) = lists.by_order[order as usize].pop_back() {
                lists.frames -= 1 << order;
                zone.free(index, order);
            }
        }
    }

    /// `drain_all_pages`.
    fn drain(&self) {
        for cpu in &*self.cpus {
            self.shrink(&mut cpu.lists.lock(), 0);
        }
    }

    fn try_alloc(&self, lane: usize, order: u32) -> Option<u64> {
        if order <= MAX_LISTED_ORDER {
            self.alloc_listed(lane, order)
        } else {
            self.linux.alloc(lane, order)
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
            lists.by_order.iter().map(|list| list.capacity() * size_of::<u32>()).sum::<usize>()
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

    /// Like the kernel, it takes the caller's word for the order of the block, and notices no second free
    /// of a block that is on a list.
    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        if order > MAX_LISTED_ORDER {
            return self.linux.free(lane, index, order);
        }
        self.linux.check_place(index, order)?;
        self.free_listed(lane, index as u32, order);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH, LinuxPcp};
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
        assert!(linux.lists(0).lock().frames < super::HIGH);
        assert_eq!(linux.alloc(1, 10), Some(0));
    }
}
