//! A GPU heap of 64 GiB, given out in stretches of 64 KiB by 64-bit offset: exact sizes, growth in place.

use nbbs::{Block, Lane, MetadataBox, Request, RequestError};

const UNIT: u64 = 64 << 10;
const HEAP: u64 = 64 << 30;

/// Where a resource lies in the heap, in bytes.
fn offset(block: &Block<'_>) -> u64 {
    block.units().start * UNIT
}

fn allocate<'a>(heap: Lane<'a>, bytes: u64, align: u64) -> Result<Block<'a>, RequestError> {
    let order = align.div_ceil(UNIT).next_power_of_two().trailing_zeros();
    Block::new(heap, Request::units(bytes.div_ceil(UNIT)).aligned(order))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let units = HEAP / UNIT;
    let metadata = MetadataBox::new(units)?;
    let heap = metadata.arena()?;

    let texture = allocate(heap.here(), 33 << 20, 2 << 20)?; // 33 MiB: a buddy system would take 64
    let mut cache = allocate(heap.here(), 5 << 20, UNIT)?;
    println!("texture at {:#x}, cache at {:#x}", offset(&texture), offset(&cache));
    cache.grow((300 << 20) / UNIT)?; // the cache of a longer context, where it is
    println!("{} MiB in use for {} asked for", (heap.stats().used_units * UNIT) >> 20, 33 + 300);
    assert_eq!(heap.stats().used_units * UNIT, (33 + 300) << 20);

    let spilled = cache.split_off((100 << 20) / UNIT)?;
    drop(spilled);
    let largest = heap.stats().largest_free_order().map_or(0, |order| UNIT << order);
    println!("largest free block: {} MiB", largest >> 20);
    assert_eq!(offset(&texture) % (2 << 20), 0);
    drop((texture, cache));
    assert_eq!(heap.stats().free_units, units);
    Ok(())
}
