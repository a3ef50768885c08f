//! A measured case, as a row of the suite.

use baselines::Kind;

use super::course::Plan;
use super::subject::ITEM_BYTES;
use super::{Contender, course::Figure};
use crate::median::median;
use crate::suite::row::Row;

/// Verified: every object had its own contents when it was freed, and none was refused. The clock is all that
/// is read: `valgrind --tool=callgrind` counts instructions.
pub fn row(contender: &Contender, plan: &Plan, rounds: &[Figure]) -> Row {
    let verified = rounds.iter().all(|figure| figure.verified);
    let wrong = || "objects were refused, or had others' contents when they were freed".to_owned();
    let mut row = Row {
        phase: plan.case.name(),
        private_caches: contender.private_caches,
        size_bytes: Some(ITEM_BYTES as u64),
        ops: median(rounds.iter().map(|figure| figure.ops as f64)) as u64,
        complete: rounds.iter().all(|figure| figure.complete),
        verified,
        violation: (!verified).then(wrong),
        ..Row::new("pool", contender.name, Kind::Pool, contender.safe, plan.threads)
    };
    if verified {
        let times: Vec<_> = rounds.iter().map(|figure| (figure.ns, figure.ops)).collect();
        row.set_times(&times);
    }
    row
}
