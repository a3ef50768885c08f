//! Contenders on words that count read-modify-writes: those that are generic over their words.

use baselines::paper::{MAX_ORDER, Nb1, Nb4, Sl1, Sl4};
use baselines::{Lines, Pause};
use nbbs::Buddy;
use testkit::BackEnd;

use crate::counted::Counted;

impl Pause for Counted {}

/// Shows `visit` a fresh allocator of that name, if there is one that counts.
pub fn with_counted<R>(name: &str, units: u64, visit: impl FnOnce(&dyn BackEnd) -> R) -> Option<R> {
    let visited = match name {
        "nbbs" => {
            let lines = Lines::<Counted>::zeroed(nbbs::metadata_words(units));
            let buddy = Buddy::new(lines.words(), units);
            visit(&buddy.expect("metadata of the size that was asked for"))
        }
        "nb1" => visit(&Nb1::<Counted>::new(units, MAX_ORDER)),
        "nb4" => visit(&Nb4::<Counted>::new(units, MAX_ORDER)),
        "sl1" => visit(&Sl1::<Counted>::new(units, MAX_ORDER)),
        "sl4" => visit(&Sl4::<Counted>::new(units, MAX_ORDER)),
        _ => return None,
    };
    Some(visited)
}
