//! What ownership costs: an allocation and a free by a member of a segment, beside the same by the buddy allocator alone,
//! over words of this process's. In turn, a thousand pairs at a time; of each the fastest, the median, and the ratio.

use std::alloc::Layout;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use nbbs::{Buddy, MetadataBox};
use nbbs_shared::{Geometry, Segment};

const UNITS: u64 = 1 << 18;
const PAIRS: u32 = 1000;
const ROUNDS: usize = 4000;

fn main() -> Result<(), Box<dyn Error>> {
    let segment = Segment::memfd("cost", Geometry { units: UNITS, unit_bytes: 64, members: 8 })?;
    let member = segment.join()?;
    let metadata = MetadataBox::new(UNITS)?;
    let buddy = Buddy::new(metadata.words(), UNITS)?;
    // Known to the compiler no better than the segment's.
    let buddy = black_box(&buddy);
    println!(
        "{:>6} {:>18} {:>18} {:>14}",
        "order", "buddy, ns a pair", "member, ns a pair", "ratio"
    );
    for order in [0, 3, 6] {
        let layout = Layout::from_size_align(64 << order, 64)?;
        let (mut alone, mut owned) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            alone.push(time(|| {
                let index = buddy.on(0).alloc(order).unwrap_or_default();
                let _ = black_box(buddy.on(0).free(black_box(index)));
            }));
            owned.push(time(|| {
                if let Ok(offset) = member.alloc(layout) {
                    let _ = black_box(member.free(black_box(offset)));
                }
            }));
        }
        alone.sort_by(f64::total_cmp);
        owned.sort_by(f64::total_cmp);
        let (fastest, median) = ((alone[0], owned[0]), (alone[ROUNDS / 2], owned[ROUNDS / 2]));
        println!(
            "{order:>6} {:>8.1} {:>9.1} {:>8.1} {:>9.1} {:>6.2} {:>7.2}",
            fastest.0,
            median.0,
            fastest.1,
            median.1,
            fastest.1 / fastest.0,
            median.1 / median.0
        );
    }
    Ok(())
}

/// Nanoseconds that one of many takes.
fn time(mut pair: impl FnMut()) -> f64 {
    let begun = Instant::now();
    (0..PAIRS).for_each(|_| pair());
    begun.elapsed().as_nanos() as f64 / f64::from(PAIRS)
}
