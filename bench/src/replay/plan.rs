//! Which thread does what.

use crate::trace::{Action, Trace};

/// One operation of a lane.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Allocate or free.
    pub action: Action,
    /// Order of the block.
    pub order: u8,
    /// Number of the block in the trace.
    pub block: u32,
}

/// The operations of each lane, and what is left at the end.
#[derive(Debug)]
pub struct Plan {
    /// Operations by lane; a lane is a thread.
    pub lanes: Vec<Vec<Step>>,
    /// The operations in the order of the trace, with their lanes.
    pub in_turn: Vec<(usize, Step)>,
    /// How many blocks there are.
    pub blocks: usize,
    /// The blocks that the trace never frees, with their orders.
    pub survivors: Vec<(usize, u32)>,
}

impl Plan {
    /// Deals the trace's CPUs out to so many threads: CPU number modulo threads.
    pub fn new(trace: &Trace, threads: usize) -> Self {
        let mut lanes = vec![Vec::new(); threads];
        let mut survives = vec![true; trace.orders.len()];
        let mut in_turn = Vec::with_capacity(trace.events.len());
        for event in &trace.events {
            let (action, lane) = (event.action, event.cpu % threads);
            let step = Step { action, order: trace.orders[event.block], block: event.block as u32 };
            lanes[lane].push(step);
            in_turn.push((lane, step));
            survives[event.block] &= action == Action::Alloc;
        }
        let survivors = (0..survives.len())
            .filter(|&block| survives[block])
            .map(|block| (block, u32::from(trace.orders[block])))
            .collect();
        Self { lanes, in_turn, blocks: survives.len(), survivors }
    }

    /// Frees at the end what the trace never frees, in the order of allocation: in turn, for the lanes are left
    /// as they are.
    #[cfg(feature = "suite")]
    pub fn free_survivors(&mut self) {
        for (block, order) in self.survivors.drain(..) {
            let step = Step { action: Action::Free, order: order as u8, block: block as u32 };
            self.in_turn.push((0, step));
        }
    }
}
