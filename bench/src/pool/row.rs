//! Turns a measured case into a row of the suite.

use super::course::ObjectPlan;
use super::subject::ITEM_BYTES;
use super::{Contender, course::Figure};
use crate::market::Kind;
use crate::median::median;
use crate::row::Row;

/// Returns the row of a case. It is verified if every object had its own contents when it was freed, and none was
/// refused. Only the clock is read: `valgrind --tool=callgrind` counts instructions.
pub fn row(contender: &Contender, plan: &ObjectPlan, rounds: &[Figure]) -> Row {
    let verified = rounds.iter().all(|figure| figure.verified);
    let wrong =
        || "objects were refused, or had other objects' contents when they were freed".to_owned();
    let mut row = Row {
        phase: plan.case.name().into(),
        safe: contender.safe,
        private_caches: contender.private_caches,
        size_bytes: Some(ITEM_BYTES as u64),
        ops: Some(median(rounds.iter().map(|figure| figure.ops as f64)) as u64),
        complete: rounds.iter().all(|figure| figure.complete),
        verified: Some(verified),
        violation: (!verified).then(wrong),
        ..Row::named("pool", contender.name, Kind::Pool, plan.threads)
    };
    if verified {
        let times: Vec<_> = rounds.iter().map(|figure| (figure.ns, figure.ops)).collect();
        row.set_times(&times);
    }
    row
}
