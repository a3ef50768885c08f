//! Searches for an order of calls that the sequential specification accepts (J. M. Wing, C. Gong, "Testing and
//! verifying concurrent objects", 1993), and remembers what has been tried in vain (G. Lowe, "Testing for
//! linearizability", 2017): what is free after some of the calls does not depend on their order.

use std::collections::HashSet;

use super::{Answer, Call};
use crate::{Block, Spec, Unit};

/// Returns whether there is an order of those calls whose answer `counts`.
pub(super) fn find(units: u64, calls: &[Call], counts: impl Fn(&Answer) -> bool) -> bool {
    let calls: Vec<Call> = calls.iter().copied().filter(|call| counts(&call.answer)).collect();
    let mut search =
        Search { calls: &calls, spec: Spec::new(units), done: 0, in_vain: HashSet::new() };
    search.goes_on()
}

struct Search<'a> {
    calls: &'a [Call],
    spec: Spec,
    /// A bit for each call in the order so far.
    done: u128,
    in_vain: HashSet<u128>,
}

impl Search<'_> {
    /// Returns whether the order so far can be continued to the end.
    fn goes_on(&mut self) -> bool {
        let calls = self.calls;
        let open = |done: u128| (0..calls.len()).filter(move |&call| done >> call & 1 == 0);
        // A call that began after another had returned comes after it.
        let Some(first_end) = open(self.done).map(|call| calls[call].end).min() else {
            return true;
        };
        if self.in_vain.contains(&self.done) {
            return false;
        }
        for next in open(self.done).take_while(|&call| calls[call].start < first_end) {
            if self.accept(calls[next].answer) {
                self.done |= 1 << next;
                if self.goes_on() {
                    return true;
                }
                self.done &= !(1 << next);
                self.revoke(calls[next].answer);
            }
        }
        self.in_vain.insert(self.done);
        false
    }

    /// Changes the specification as the call did. Returns `false` if its answer is wrong here.
    fn accept(&mut self, answer: Answer) -> bool {
        let spec = &mut self.spec;
        match answer {
            Answer::Granted(block) => {
                let free = block.is_aligned() && spec.all(&block.units(), Unit::Free);
                if free {
                    spec.grant(block.index, block.order);
                }
                free
            }
            Answer::Refused(order) => order > spec.max_order() || spec.free_block(order).is_none(),
            Answer::Freed(block) => {
                let held = holds(spec, block);
                held && spec.give_back(block.index).is_some()
            }
            Answer::NotFreed(block) => !holds(spec, block),
        }
    }

    fn revoke(&mut self, answer: Answer) {
        match answer {
            Answer::Granted(block) => _ = self.spec.give_back(block.index),
            Answer::Freed(block) => self.spec.grant(block.index, block.order),
            Answer::Refused(_) | Answer::NotFreed(_) => {}
        }
    }
}

fn holds(spec: &Spec, block: Block) -> bool {
    spec.block_at(block.index) == Some(block)
}
