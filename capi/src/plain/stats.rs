//! Figures of the program's arena. Before the first `nb_init` they are 0, but for the settings.

use nbbs::metadata_words;

use super::settings::Settings;
use super::{Plain, current};
use crate::pointer;

/// The settings that count: the arena's, or those of the next `nb_init` while there is no arena.
fn settings() -> Settings {
    current().map_or_else(Settings::now, |plain| plain.settings)
}

/// log2 of the smallest blocks that the arena has, rounded down.
fn depth(plain: &Plain) -> u32 {
    plain.buddy.max_order()
}

/// Bytes of the smallest block.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_min_size() -> u64 {
    settings().block_size(0)
}

/// The largest order.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_max_order() -> u32 {
    settings().max_order
}

/// Bytes of the tree: all bookkeeping of this allocator, 2.3 bits for a smallest block.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_tree_size() -> u64 {
    current().map_or(0, |plain| metadata_words(plain.buddy.units()) as u64 * 8)
}

/// Bytes of the index: 0, since the tree says where blocks begin.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_index_size() -> u64 {
    0
}

/// Depth of the tree: log2 of the smallest blocks in the arena, rounded down.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_depth() -> u32 {
    current().map_or(0, depth)
}

/// The level of the largest blocks: the depth less the largest order; 0 if the arena is smaller than a largest block.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_base_level() -> u32 {
    current().map_or(0, |plain| depth(plain).saturating_sub(plain.settings.max_order))
}

/// Bytes of a largest block.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_max_size() -> u64 {
    settings().max_size()
}

/// How many blocks have been freed since `nb_init`, modulo 2^32. Refused frees do not count.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_release_count() -> u32 {
    current().map_or(0, |plain| plain.counts.all_freed() as u32)
}

/// Bytes of the arena, as `nb_init` was told.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_total_memory() -> u64 {
    current().map_or(0, |plain| plain.size)
}

/// Bytes in allocated blocks. Exact when nothing else runs. Reads 16 counts for each order, whatever the arena's size.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_used_memory() -> u64 {
    current().map_or(0, |plain| {
        let orders = 0..=plain.settings.max_order;
        orders.map(|order| plain.counts.in_use(order) * plain.settings.block_size(order)).sum()
    })
}

/// Bytes of a block of `order`; 0 if that is above the largest.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_block_size(order: u32) -> u64 {
    let settings = settings();
    if order > settings.max_order { 0 } else { settings.block_size(order) }
}

/// Blocks of `order` that fit into the arena; 0 if the order is above the largest.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_total_blocks(order: u32) -> u64 {
    current().map_or(0, |plain| total_blocks(plain, order))
}

/// Allocated blocks of `order`; 0 if that is above the largest. Exact when nothing else runs. Reads 16 counts.
#[unsafe(no_mangle)]
pub extern "C" fn nb_stat_used_blocks(order: u32) -> u64 {
    current().map_or(0, |plain| {
        if order > plain.settings.max_order { 0 } else { plain.counts.in_use(order) }
    })
}

/// Fills `buff`, which has room for `nb_stat_total_blocks(order)` bytes, with 1 for each block of `order` of which any
/// part is allocated and with 0 for each that is free. Returns 0, or 1 if `buff` is null, the order above the largest,
/// or there was no `nb_init`; then `buff` has not changed.
///
/// A load for each word in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nb_stat_occupancy_map(buff: *mut u8, order: u32) -> u8 {
    let Some(plain) = current() else {
        return 1;
    };
    if buff.is_null() || order > plain.settings.max_order {
        return 1;
    }
    let blocks = total_blocks(plain, order) as usize;
    // SAFETY: room for that many bytes, by the contract; bytes have no invalid values.
    let Ok(map) = (unsafe { pointer::array_mut(buff, blocks, 1) }) else {
        return 1;
    };
    if !map.is_empty() && plain.buddy.occupancy_map(order, map).is_err() {
        return 1;
    }
    map.iter_mut().for_each(|share| *share = u8::from(*share != 0));
    0
}

fn total_blocks(plain: &Plain, order: u32) -> u64 {
    let settings = &plain.settings;
    if order > settings.max_order { 0 } else { plain.buddy.units() >> order }
}
