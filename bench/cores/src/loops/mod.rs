//! The loops that harts run.

mod bulk;
mod churn;
mod counters;
mod handed;
mod larson;
mod objects;
mod pairs;

use alloc::boxed::Box;

use testkit::BackEnd;

use crate::measure::Course;
use crate::request::Request;

/// A job: what every hart does, by its number.
pub type Job = Box<dyn Fn(&Course, usize) + Send + Sync>;

/// Returns a loop that every allocator of blocks can run.
pub fn block_loop<B: BackEnd + Send + 'static>(
    request: &Request,
    harts: usize,
    blocks: B,
) -> Option<Job> {
    let order = request.order;
    Some(match request.name.as_str() {
        "pairs" => pairs::pairs(blocks, order),
        "beside-merges" => pairs::beside_merges(blocks, harts, order),
        "bulk" => bulk::bulk(blocks, order),
        "churn" => churn::churn(blocks),
        "ring" => handed::ring(blocks, harts, order, 0),
        "ring-kept" => handed::ring(blocks, harts, order, handed::KEPT),
        "producers" => handed::producers(blocks, harts, order),
        "larson" => larson::larson(blocks, harts, order),
        _ => return None,
    })
}

/// Returns a loop that only one contender can run.
pub fn own_loop(request: &Request, harts: usize) -> Option<Job> {
    let Request { name, contender, .. } = request;
    Some(match (name.as_str(), contender.as_str()) {
        ("counters", "private") => counters::private(),
        ("counters", "shared") => counters::shared(),
        ("counters", "bare") => counters::bare(),
        ("objects", "nbbs-pool") => objects::pool(harts),
        ("objects", "nbbs-heap") => objects::heap(),
        _ => return None,
    })
}
