//! Prints a schedule in words.

use crate::search::{Step, Taken};
use crate::word::Form;

/// The words of a lane, and of a cache line.
const LANE_WORDS: usize = nbbs::lane_words(1);
const LINE: usize = 8;

/// Returns the name of the word at a place of an arena of `units` units, as the library lays them out.
fn name<F: Form>(units: u64, place: usize) -> String {
    let lanes = 4.min(1 << (units >> F::LANE | 1).ilog2());
    let epoch = lanes * LANE_WORDS;
    if place < epoch {
        return format!("hint {} of lane {}", place % LANE_WORDS, place / LANE_WORDS);
    }
    let mut base = epoch + LINE;
    for level in 0..10 {
        let words = units.div_ceil(1 << (F::LEAF + F::FAN * level)) as usize;
        let stride = if level < 2 { 1 } else { LINE };
        let end = base + words * stride;
        if (base..end).contains(&place) {
            return format!("word {} of level {level}", (place - base) / stride);
        }
        base = end.next_multiple_of(LINE) + LINE;
    }
    "the epoch".to_string()
}

/// Prints what a word of the protocol holds.
fn value<F: Form>(name: &str, value: u64) -> String {
    let Some(level) = name.strip_prefix("word ").map(|name| &name[name.len() - 1..]) else {
        return format!("{value:#x}");
    };
    let slots = if level == "0" { 1 << F::LEAF } else { 1 << F::FAN };
    let signs = if level == "0" { [".", "o", "b", "B"] } else { [".", "/", "b", "B"] };
    let codes: String = (0..slots).map(|slot| signs[(value >> (2 * slot) & 3) as usize]).collect();
    if level == "0" {
        return codes;
    }
    let mark = if value >> 63 == 1 { " marked" } else { "" };
    format!("{codes} bound {} version {}{mark}", value >> 57 & 63, value >> 32 & 0x1ff_ffff)
}

/// Returns a line for each step on a word of the protocol.
pub fn schedule<F: Form>(units: u64, steps: &[Taken]) -> Vec<String> {
    let lines = steps.iter().filter_map(|taken| {
        let name = name::<F>(units, taken.place.into());
        let shown = |number| value::<F>(&name, number);
        let found = shown(taken.found);
        let what = match taken.step {
            _ if name.starts_with("hint") => return None,
            Step::Load => format!("reads {found}"),
            Step::Store(new) => format!("stores {}", shown(new)),
            Step::Swap { current, new } if current == taken.found => {
                format!("turns {found} into {}", shown(new))
            }
            Step::Swap { current, .. } => format!("expects {} and finds {found}", shown(current)),
        };
        Some(format!("lane {}: {name}: {what}", taken.lane))
    });
    lines.collect()
}
