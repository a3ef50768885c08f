//! How many frames a CPU's lists take and give back at a time, and how many they keep.

use super::pcp::MAX_LISTED_ORDER;

/// How often a batch can be doubled: the kernel's default `CONFIG_PCP_BATCH_SCALE_MAX`.
const SCALE_MAX: u32 = 5;

/// What follows from the size of a zone: `zone_set_pageset_high_and_batch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// The frames that move between lists and zone at a time, unless a CPU only allocates or only frees.
    pub batch: usize,
    /// The least and the most that the mark of a CPU's lists can be, from which on they give frames back.
    pub high: (usize, usize),
}

impl Limits {
    /// Returns those of a zone of `frames` frames on a machine with `cpus` CPUs. `zone_highsize`: the low watermark of the
    /// zone, and an eighth of the zone, divided among the CPUs, but at least four batches.
    pub fn new(frames: u64, cpus: usize) -> Self {
        const KIB_PER_FRAME: u64 = 4;
        // `min_free_kbytes`, and the low watermark, which lies a quarter of that, or a thousandth of the zone, above it.
        let least = (16 * frames * KIB_PER_FRAME).isqrt().clamp(128, 262_144) / KIB_PER_FRAME;
        let low = least + (least / 4).max(frames / 1000);
        let batch = batch(frames);
        let share = |frames: u64| (frames as usize / cpus).max(4 * batch);
        Self { batch, high: (share(low), share(frames / 8)) }
    }

    /// Returns the mark, brought within its bounds. In a small zone the least is above the most, which then holds.
    fn bound(&self, high: usize) -> usize {
        high.max(self.high.0).min(self.high.1)
    }
}

/// Returns the batch of a zone, `zone_batchsize`: a 4096th of it or 64 frames, rounded to a power of two, less one.
fn batch(frames: u64) -> usize {
    const MOST: u64 = 64;
    let batch = (frames >> 12).clamp(1, MOST);
    let power = 1_usize << (batch + batch / 2).ilog2();
    (power - 1).max(1)
}

/// What the lists of a CPU have learnt from its calls.
#[derive(Debug, Default)]
pub(super) struct Tuning {
    high: usize,
    /// How often the next batch of single frames is doubled.
    alloc_factor: u32,
    /// The frames that were freed, halved by each allocation.
    free_count: usize,
    /// Whether the block freed last had an order from 1 to [`MAX_LISTED_ORDER`]: `PCPF_PREV_FREE_HIGH_ORDER`.
    freed_larger: bool,
}

impl Tuning {
    /// Notes an allocation, `rmqueue_pcplist`.
    pub fn note_alloc(&mut self) {
        self.free_count >>= 1;
    }

    /// Returns how many blocks of `order` come from the zone to an empty list, `nr_pcp_alloc`, while all lists of the CPU
    /// hold `frames` frames. Single frames are twice as many each time, unless some are freed.
    pub fn refill(&mut self, limits: &Limits, frames: usize, order: u32) -> usize {
        let factor = if order == 0 { self.alloc_factor } else { 0 };
        let mut batch = limits.batch << factor;
        // With a higher mark there might still be some.
        self.high = (limits.bound(self.high) + batch).min(limits.high.1);
        if order == 0 {
            let most = self.high.saturating_sub(frames + limits.batch).max(limits.batch);
            if batch <= most && self.alloc_factor < SCALE_MAX {
                self.alloc_factor += 1;
            }
            batch = batch.min(most);
        }
        if batch == 1 { 1 } else { (batch >> order).max(2) }
    }

    /// Notes the free of a block of `order`, after which the lists hold `frames` frames, and returns how many of these go
    /// back to the zone: `free_frozen_page_commit`, `nr_pcp_high`, `nr_pcp_free`.
    pub fn surplus(&mut self, limits: &Limits, frames: usize, order: u32) -> usize {
        let most = limits.batch << SCALE_MAX;
        self.alloc_factor >>= 1;
        let larger = (1..=MAX_LISTED_ORDER).contains(&order);
        // The cache is taken to be large: `PCPF_FREE_HIGH_BATCH`.
        let only_frees = larger
            && self.freed_larger
            && self.free_count >= limits.batch + limits.high.0 / 2
            && frames >= limits.batch;
        self.freed_larger = larger;
        if self.free_count < most {
            self.free_count += 1 << order;
        }
        let high = limits.bound(self.high);
        if only_frees {
            self.high = high.saturating_sub(most).max(limits.high.0);
            return frames.min(most);
        }
        self.high = high;
        if frames < high {
            return 0;
        }
        // The mark should allow for as many as are freed at a time.
        self.high = limits.bound(high.max(self.free_count + limits.batch));
        self.free_count.clamp(limits.batch, high - limits.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, Tuning, batch};

    const GIB: u64 = 1 << 18;

    #[test]
    fn the_batch_follows_from_the_size_of_the_zone() {
        // As /proc/zoneinfo has them: zones of 4 MiB, 16 MiB, 128 MiB, 512 MiB, 1 GiB, 64 GiB.
        let zones = [1 << 10, 1 << 12, 1 << 15, 1 << 17, GIB, GIB << 6];
        assert_eq!(zones.map(batch), [1, 1, 7, 31, 63, 63]);
    }

    #[test]
    fn a_cpu_keeps_more_of_a_larger_zone() {
        assert_eq!(Limits::new(GIB, 2).high, (643, 1 << 14));
        assert_eq!(Limits::new(GIB, 64).high, (4 * 63, 512));
        assert_eq!(Limits::new(1 << 24, 4).high, (6242, 1 << 19));
        // The least is above the most.
        let small = Limits::new(256, 1);
        assert_eq!((small.high, small.bound(0)), ((40, 32), 32));
    }

    #[test]
    fn batches_double_while_a_cpu_only_allocates() {
        let limits = Limits::new(GIB, 2);
        let mut tuning = Tuning::default();
        let taken: Vec<usize> = (0..7).map(|_| tuning.refill(&limits, 0, 0)).collect();
        assert_eq!(taken, [63, 126, 252, 504, 1008, 2016, 2016]);
        assert_eq!(tuning.refill(&limits, 0, 1), 31);
        assert_eq!(tuning.refill(&limits, 0, 9), 2);
        // A free halves the exponent: 5 to 2.
        assert_eq!(tuning.surplus(&limits, 1, 0), 0);
        assert_eq!(tuning.refill(&limits, 0, 0), 252);
        // No more than the mark allows beside what is there, but a batch.
        let full = limits.high.1;
        assert_eq!(tuning.refill(&limits, full, 0), 63);
    }

    #[test]
    fn batches_grow_while_a_cpu_only_frees() {
        let limits = Limits::new(GIB, 2);
        let mut tuning = Tuning::default();
        let below = (1..643).map(|frames| tuning.surplus(&limits, frames, 0)).max();
        assert_eq!(below, Some(0));
        // As many as were freed, less a batch that stays; then the mark allows for them.
        assert_eq!(tuning.surplus(&limits, 643, 0), 643 - 63);
        assert_eq!(tuning.high, 643 + 63);
        // Each allocation halves what counts as freed.
        (0..4).for_each(|_| tuning.note_alloc());
        assert_eq!(tuning.surplus(&limits, 706, 0), 63);
    }

    #[test]
    fn what_a_cpu_only_frees_of_larger_blocks_goes_back_before_the_mark_is_reached() {
        let limits = Limits::new(GIB, 2);
        let mut tuning = Tuning { high: 4000, ..Tuning::default() };
        let gives = |tuning: &mut Tuning, frames, order| tuning.surplus(&limits, frames, order);
        // 63 and half of 643 are 384 frames, or 48 blocks of order 3.
        let first = (1..=48).map(|blocks| gives(&mut tuning, 8 * blocks, 3)).max();
        assert_eq!(first, Some(0));
        assert_eq!(gives(&mut tuning, 392, 3), 392);
        assert_eq!(tuning.high, 4000 - (63 << 5));
        // A single frame before it, and it stays.
        assert_eq!([gives(&mut tuning, 100, 0), gives(&mut tuning, 108, 3)], [0, 0]);
    }
}
