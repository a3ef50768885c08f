//! Compares everything that can be asked about a resting arena with the specification.

use nbbs::sync::Word;
use nbbs::{Buddy, Piece, Stats};

use crate::{Block, Spec, Unit, Violation};

/// Compares statistics, walk and maps with the specification, and runs the audit.
///
/// # Errors
/// The first difference.
pub fn inspect<W: Word>(buddy: &Buddy<'_, W>, spec: &Spec) -> Result<(), Violation> {
    buddy.audit().map_err(|broken| Violation::Audit(broken.to_string()))?;
    check_walk(buddy, spec)?;
    check_walk_free(buddy, spec)?;
    check_stats(buddy, spec)?;
    check_bound(buddy, spec)?;
    // The smallest order, the largest, and one between, so that the arithmetic of each level is checked.
    let middle = spec.max_order() / 2;
    [0, middle, spec.max_order()].iter().try_for_each(|&order| check_map(buddy, spec, order))
}

/// Looks for a block of each order, which lowers the bounds that are too high, and compares the answers with the
/// specification.
///
/// # Errors
/// The first difference.
pub fn look_for_blocks<W: Word>(buddy: &Buddy<'_, W>, spec: &Spec) -> Result<(), Violation> {
    let largest = largest_free(spec);
    for order in (0..=spec.max_order() + 1).rev() {
        let (expected, found) = (largest >= Some(order), buddy.here().has_free(order));
        if found != expected {
            return Err(Violation::wrong(format!("has_free({order})"), expected, found));
        }
    }
    if buddy.order_bound() != largest {
        let question = "order_bound(), after a look for each order,";
        return Err(Violation::wrong(question, largest, buddy.order_bound()));
    }
    Ok(())
}

fn largest_free(spec: &Spec) -> Option<u32> {
    (0..=spec.max_order()).rev().find(|&order| spec.free_block(order).is_some())
}

/// Looks at the arena while others use it, except for the blocks in `held`. A walk must cover the arena without gap or
/// overlap, and meet each of these blocks as it is.
///
/// # Errors
/// The first thing that is wrong, whatever the others do.
pub fn observe<W: Word>(buddy: &Buddy<'_, W>, held: &[Block]) -> Result<(), Violation> {
    let (mut end, mut met, mut wrong) = (0, 0, None);
    buddy.walk(|piece| {
        let (index, len) = match piece {
            Piece::Free { index, order } | Piece::Used { index, order } => (index, 1 << order),
            Piece::Run { index, len } | Piece::Reserved { index, len } => (index, len),
            other => unreachable!("{other:?} is news"),
        };
        if index != end && wrong.is_none() {
            wrong = Some(Violation::wrong("walk(), the next piece's index,", end, piece));
        }
        end = index + len;
        if let Piece::Used { index, order } = piece {
            met += usize::from(held.contains(&Block { index, order }));
        }
    });
    wrong.map_or(Ok(()), Err)?;
    if (end, met) != (buddy.units(), held.len()) {
        let expected = (buddy.units(), held);
        return Err(Violation::wrong("walk(), end and blocks held,", expected, (end, met)));
    }
    let stats = buddy.stats();
    if stats.free_units + stats.used_units + stats.reserved_units != stats.units {
        return Err(Violation::wrong("stats(), the sum of its counts,", stats.units, &stats));
    }
    let (free, held) = (buddy.count_free(), held.iter().map(|block| block.len()).sum::<u64>());
    if free > buddy.units() - held {
        return Err(Violation::wrong(
            "count_free(), beside blocks held,",
            buddy.units() - held,
            free,
        ));
    }
    Ok(())
}

fn check_walk<W: Word>(buddy: &Buddy<'_, W>, spec: &Spec) -> Result<(), Violation> {
    let mut expected = spec.pieces();
    let mut wrong = None;
    buddy.walk(|piece| {
        // A stretch of reserved units may be cut anywhere; the specification counts these units, and those of runs, one
        // by one.
        let stretch = match piece {
            Piece::Run { len, .. } | Piece::Reserved { len, .. } => len,
            _ => 1,
        };
        for unit in 0..stretch {
            let expected = expected.next();
            if wrong.is_none() && expected != Some(seen(piece, unit)) {
                wrong = Some(Violation::wrong("walk()", expected, piece));
            }
        }
    });
    wrong.map_or(Ok(()), Err)?;
    match expected.next() {
        None => Ok(()),
        rest => Err(Violation::wrong("the end of walk()", rest, None::<Piece>)),
    }
}

/// Walks over what is free in all of the arena, and in parts that begin and end anywhere in it.
fn check_walk_free<W: Word>(buddy: &Buddy<'_, W>, spec: &Spec) -> Result<(), Violation> {
    let units = spec.units();
    let parts = (1..=7).map(|part| units * part / 8..(units * part / 8 + units / 5 + 1).min(units));
    for range in parts.chain(std::iter::once(0..units)) {
        let is_free = |unit: &u64| spec.unit(*unit) == Some(Unit::Free);
        let expected: Vec<u64> = range.clone().filter(is_free).collect();
        let mut free = Vec::new();
        let walked = buddy.walk_free(range.clone(), |piece| free.extend(piece));
        if walked.is_err() || free != expected {
            return Err(Violation::wrong(format!("walk_free({range:?})"), expected, free));
        }
    }
    Ok(())
}

/// Returns a piece, or the `unit`-th unit of a run or of a stretch of reserved units, in the form of the specification.
fn seen(piece: Piece, unit: u64) -> (Unit, Block) {
    match piece {
        Piece::Free { index, order } => (Unit::Free, Block { index, order }),
        Piece::Used { index, order } => (Unit::Head(order as u8), Block { index, order }),
        Piece::Run { index, len } => {
            let what = if unit == 0 { Unit::Run(len as u32) } else { Unit::Body };
            (what, Block { index: index + unit, order: 0 })
        }
        Piece::Reserved { index, .. } => (Unit::Reserved, Block { index: index + unit, order: 0 }),
        other => unreachable!("{other:?} is news"),
    }
}

fn check_stats<W: Word>(buddy: &Buddy<'_, W>, spec: &Spec) -> Result<(), Violation> {
    let stats = buddy.stats();
    if buddy.count_free() != stats.free_units {
        return Err(Violation::wrong("count_free()", stats.free_units, buddy.count_free()));
    }
    let (free, used) = (spec.free_blocks(), spec.used_blocks());
    let units_in = |blocks: &[u64]| blocks.iter().zip(0..).map(|(n, k)| n << k).sum::<u64>();
    let padded = |blocks: &[u64]| {
        let mut all = [0; nbbs::MAX_ORDERS];
        all[..blocks.len()].copy_from_slice(blocks);
        all
    };
    let (runs, run_units) = spec.runs();
    let units = [spec.units(), units_in(&free), units_in(used) + run_units, spec.reserved()];
    let expected = (units, runs, padded(&free), padded(used));
    let Stats { units, free_units, used_units, reserved_units, free_blocks, used_blocks, .. } =
        stats;
    let counted = [units, free_units, used_units, reserved_units];
    let got = (counted, stats.used_runs, free_blocks, used_blocks);
    if got != expected {
        return Err(Violation::wrong("stats()", expected, got));
    }
    let largest = (0..=spec.max_order()).rev().find(|&order| spec.free_block(order).is_some());
    if stats.largest_free_order() != largest {
        let got = stats.largest_free_order();
        return Err(Violation::wrong("stats().largest_free_order()", largest, got));
    }
    let total = units_in(&free);
    let permille = |part: u64| (part * 1000).checked_div(total).unwrap_or(0) as u32;
    let outside = permille(total - largest.map_or(0, |order| 1 << order));
    if stats.fragmentation_permille() != outside {
        let got = stats.fragmentation_permille();
        return Err(Violation::wrong("stats().fragmentation_permille()", outside, got));
    }
    for order in 0..=spec.max_order() {
        let (small, got) =
            (permille(units_in(&free[..order as usize])), stats.unusable_permille(order));
        if small != got {
            return Err(Violation::wrong(format!("unusable_permille({order})"), small, got));
        }
    }
    Ok(())
}

/// Checks the upper bound: it may be too high, but not too low.
fn check_bound<W: Word>(buddy: &Buddy<'_, W>, spec: &Spec) -> Result<(), Violation> {
    let (largest, bound) = (largest_free(spec), buddy.order_bound());
    if bound < largest || bound > Some(spec.max_order()) {
        return Err(Violation::wrong("order_bound()", largest, bound));
    }
    Ok(())
}

fn check_map<W: Word>(buddy: &Buddy<'_, W>, spec: &Spec, order: u32) -> Result<(), Violation> {
    let stretches = spec.units().div_ceil(1 << order) as usize;
    // One byte more than needed, and all of a value that must not stay in the others.
    let mut map = vec![77; stretches + 1];
    let filled = buddy.occupancy_map(order, &mut map);
    let mut unfree = vec![0; stretches];
    for unit in (0..spec.units()).filter(|&unit| spec.unit(unit) != Some(Unit::Free)) {
        unfree[(unit >> order) as usize] += 1;
    }
    let share = |(stretch, unfree): (usize, &u64)| {
        let len = (spec.units() - ((stretch as u64) << order)).min(1 << order);
        // 255 only if all of it is in use.
        (unfree * 255).div_ceil(len).min(254 + u64::from(*unfree == len)) as u8
    };
    let mut expected: Vec<u8> = unfree.iter().enumerate().map(share).collect();
    expected.push(77);
    if filled != Ok(stretches) || map != expected {
        let question = format!("occupancy_map({order})");
        return Err(Violation::wrong(question, (stretches, expected), (filled, map)));
    }
    Ok(())
}
