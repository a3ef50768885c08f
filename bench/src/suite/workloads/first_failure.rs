//! Measures how full a heap is when a program meets its first refusal.

use crate::suite::gauge::{Gauge, measured};
use crate::suite::on_heap::HeapRound;
use crate::suite::round::Part;
use crate::suite::worker::LONG;

/// Replays a trace in its order, on one thread, until something is refused, and compares the bytes that were asked for
/// and are live then with those of the heap. A heap that refuses nothing has no figure. The first refusal is often that
/// of a large block: heaps that stop at the same event have the same figure.
pub fn first_failure(round: &HeapRound<'_>) -> Vec<Part> {
    let trace = round.trace.expect("a replay has a trace");
    let mut replay = Replay { round, blocks: vec![None; trace.places.len()], live_bytes: 0 };
    let mut gauge = Gauge::new(round.setting, round.clock).with_times(LONG);
    gauge.start();
    let (mut ops, mut refused) = (0, false);
    let mut late = false;
    measured(|| {
        for event in &trace.events {
            late = ops % 32 == 0 && gauge.is_late();
            refused = !late && !gauge.time(|| replay.carry_out(event.from, event.to));
            if late {
                break;
            }
            ops += 1;
            if refused {
                break;
            }
        }
    });
    let stretch = gauge.stop(trace.name.into(), ops, !late);
    let percent = replay.live_bytes as f64 * 100.0 / round.bytes as f64;
    replay.free_all();
    let efficiency_percent = refused.then_some(percent);
    let (stretches, refused) = (vec![stretch], u64::from(refused));
    vec![Part { stretches, refused, efficiency_percent, ..Part::default() }]
}

struct Replay<'a> {
    round: &'a HeapRound<'a>,
    /// The blocks, by their places in the trace.
    blocks: Vec<Option<u64>>,
    live_bytes: u64,
}

impl Replay<'_> {
    /// Allocates a block, frees it, or resizes it into another. Returns `false` if that is refused.
    #[inline]
    fn carry_out(&mut self, from: Option<u32>, to: Option<u32>) -> bool {
        let (heap, layout) = (self.round.heap, |place| self.round.layout(place));
        let old = from.map(|from| (from, self.blocks[from as usize].expect("nothing was refused")));
        let new = match (old, to) {
            (None, Some(to)) => heap.alloc(layout(to)),
            (Some((from, at)), Some(to)) => heap.resize(at, layout(from), layout(to).size()),
            (Some((from, at)), None) => {
                heap.free(at, layout(from));
                None
            }
            (None, None) => None,
        };
        if to.is_some() && new.is_none() {
            return false;
        }
        let bytes = |place: Option<u32>| place.map_or(0, |place| layout(place).size() as u64);
        self.live_bytes = self.live_bytes + bytes(to) - bytes(from);
        from.into_iter().for_each(|from| self.blocks[from as usize] = None);
        to.into_iter().for_each(|to| self.blocks[to as usize] = new);
        true
    }

    fn free_all(self) {
        let left = (0..).zip(self.blocks).filter_map(|(place, at)| Some((place, at?)));
        left.for_each(|(place, at)| self.round.heap.free(at, self.round.layout(place)));
    }
}
