//! The operations of each lane, in the order of a trace.

use crate::trace::{Action, Event, Trace};

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

/// The operations in the order of the trace, and the blocks that are left at the end.
#[derive(Debug)]
pub struct ReplayPlan {
    /// Operations, with their lanes.
    pub steps: Vec<(usize, Step)>,
    /// The number of blocks.
    pub blocks: usize,
    /// The blocks that the trace never frees, with their orders.
    pub survivors: Vec<(usize, u32)>,
}

impl ReplayPlan {
    /// Deals the trace's CPUs out to the lanes: CPU number modulo `lanes`.
    pub fn new(trace: &Trace, lanes: usize) -> Self {
        let mut survives = vec![true; trace.orders.len()];
        let mut steps = Vec::with_capacity(trace.events.len());
        for &Event { cpu, action, block } in &trace.events {
            let step = Step { action, order: trace.orders[block], block: block as u32 };
            steps.push((cpu % lanes, step));
            survives[block] &= action == Action::Alloc;
        }
        let survivors = (0..survives.len())
            .filter(|&block| survives[block])
            .map(|block| (block, u32::from(trace.orders[block])))
            .collect();
        Self { steps, blocks: survives.len(), survivors }
    }

    /// Adds frees at the end for the blocks that the trace never frees, in the order of allocation.
    #[cfg(feature = "suite")]
    pub fn free_survivors(&mut self) {
        for (block, order) in self.survivors.drain(..) {
            let step = Step { action: Action::Free, order: order as u8, block: block as u32 };
            self.steps.push((0, step));
        }
    }
}
