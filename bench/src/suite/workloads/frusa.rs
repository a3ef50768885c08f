//! The workload of the crate frusa, whose table has the nanoseconds of a pair on one thread, at 1, 2, 4 and 8 threads.

use std::alloc::Layout;

use crate::crew::Crew;
use crate::suite::gauge::{Gauge, measured};
use crate::suite::on_heap::HeapRound;
use crate::suite::round::Part;

/// Allocates a block of a random power of two of 16 to 2,048 bytes, and frees it at once: 10,000,000 times on each
/// thread, or until time is up.
pub fn random_pairs(round: &HeapRound<'_>) -> Vec<Part> {
    const PAIRS: u64 = 10_000_000;
    Crew::run(round.setting.threads, |crew, lane| {
        let mut random = fastrand::Rng::with_seed(lane as u64);
        let mut gauge = Gauge::new(round.setting, round.clock);
        let (mut done, mut refused) = (0, 0);
        crew.wait_awake();
        gauge.start();
        measured(|| {
            for pair in 0..PAIRS {
                if pair.is_multiple_of(32) && gauge.is_late() {
                    break;
                }
                let layout = Layout::from_size_align(16 << random.u32(0..8), 8).expect("small");
                match gauge.time(|| round.heap.alloc(layout)) {
                    Some(at) => gauge.time(|| round.heap.free(at, layout)),
                    None => refused += 1,
                }
                done += 1;
            }
        });
        let stretches = vec![gauge.stop("pairs".into(), 2 * (done - refused), true)];
        Part { stretches, refused, ..Part::default() }
    })
}
