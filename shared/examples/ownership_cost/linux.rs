//! The pairs, and the table of what they take.

use std::alloc::Layout;
use std::error::Error;
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use nbbs::MetadataBox;
use nbbs_shared::{Geometry, Segment};

const UNITS: u64 = 1 << 18;
const PAIRS: u32 = 1000;
const ROUNDS: usize = 4000;

pub fn main() -> Result<(), Box<dyn Error>> {
    let segment = Segment::memfd("cost", Geometry { units: UNITS, unit_bytes: 64, members: 8 })?;
    let member = segment.join()?;
    let metadata = MetadataBox::new(UNITS)?;
    let buddy = metadata.arena()?;
    // Known to the compiler no better than the segment's.
    let buddy = black_box(&buddy);
    let alone = |order| {
        let index = buddy.on(black_box(0)).alloc(order).unwrap_or_default();
        let _ = black_box(buddy.on(black_box(0)).free(black_box(index)));
    };
    let sized = |order| {
        let index = buddy.on(black_box(0)).alloc(order).unwrap_or_default();
        let _ = black_box(buddy.on(black_box(0)).free_sized(black_box(index), order));
    };
    let owned = |layout| {
        if let Ok(offset) = member.alloc(layout) {
            let _ = black_box(member.free(black_box(offset)));
        }
    };
    let slot = |layout| {
        if let Ok(offset) = member.heap().alloc(layout) {
            let _ = black_box(member.heap().free(black_box(offset)));
        }
    };
    let arguments = testkit::arguments();
    if let [which, order, pairs] = &arguments[..] {
        let (order, pairs): (u32, u64) = (order.parse()?, pairs.parse()?);
        let layout = Layout::from_size_align(64 << order, 64)?;
        match which.as_str() {
            "buddy" => (0..pairs).for_each(|_| alone(order)),
            "sized" => (0..pairs).for_each(|_| sized(order)),
            "member" => (0..pairs).for_each(|_| owned(layout)),
            "heap" => (0..pairs).for_each(|_| slot(layout)),
            other => return Err(format!("{other} is none of buddy, sized, member, heap").into()),
        }
        return Ok(());
    }
    // Printed at once, as `println!` panics if whoever reads has seen enough.
    let mut table = "ns a pair, fastest and median, and beside those of a member\n".to_owned();
    writeln!(
        table,
        "{:>6} {:>16} {:>24} {:>24}",
        "order", "member", "buddy", "buddy, told the order"
    )?;
    for order in [0, 3, 6] {
        let layout = Layout::from_size_align(64 << order, 64)?;
        let mut takes = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            takes[0].push(time(|| owned(layout)));
            takes[1].push(time(|| alone(order)));
            takes[2].push(time(|| sized(order)));
        }
        let [member, buddy, told] = takes.map(|mut times| {
            times.sort_by(f64::total_cmp);
            (times[0], times[ROUNDS / 2])
        });
        write!(table, "{order:>6} {:>9.1} {:>6.1}", member.0, member.1)?;
        for other in [buddy, told] {
            let ratio = (member.0 / other.0, member.1 / other.1);
            write!(table, " {:>9.1} {:>5.1} {:>4.2} {:>4.2}", other.0, other.1, ratio.0, ratio.1)?;
        }
        writeln!(table)?;
    }
    print!("{table}");
    Ok(())
}

/// Nanoseconds that one of many takes.
fn time(mut pair: impl FnMut()) -> f64 {
    let begun = Instant::now();
    (0..PAIRS).for_each(|_| pair());
    begun.elapsed().as_nanos() as f64 / f64::from(PAIRS)
}
