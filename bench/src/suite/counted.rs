//! Contenders on words that count what is done to them: those that are generic over their words.

use baselines::paper::{MAX_ORDER, Nb1, Nb4, Sl1, Sl4};
use baselines::{Lines, Pause};
use nbbs::Buddy;
use testkit::BackEnd;

use crate::counted::{Counted, begin_operation};

impl Pause for Counted {}

/// Shows `visit` a fresh allocator of that name, if there is one that counts.
pub fn with_counted<R>(name: &str, units: u64, visit: impl FnOnce(&dyn BackEnd) -> R) -> Option<R> {
    let visit = |back_end: &dyn BackEnd| visit(&ByOperation(back_end));
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

/// A back-end that says where each operation begins.
struct ByOperation<'a>(&'a dyn BackEnd);

impl BackEnd for ByOperation<'_> {
    fn units(&self) -> u64 {
        self.0.units()
    }

    fn max_order(&self) -> u32 {
        self.0.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.0.metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        begin_operation();
        self.0.alloc(lane, order)
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        begin_operation();
        self.0.free(lane, index, order)
    }
}
