//! Makes the calls of a lane, and tells the search what the lane holds, and when.

use std::fmt::Debug;
use std::ops::Range;

use nbbs::{AllocError, Buddy, FreeError, Lane, RangeError};
use testkit::program::{Held, No, ask, observe};
use testkit::{Block, Oracle, Violation};

use crate::answers;
use crate::calls::Call;
use crate::search::{Event, Left, search};
use crate::word::{Explored, Form};

/// The caller: a lane, and what it holds.
pub struct Actor<'a, F> {
    pub buddy: Buddy<'a, Explored<F>>,
    pub lane: usize,
    pub hands: Left,
}

impl<F: Form> Actor<'_, F> {
    /// Makes a call, unless it concerns something that the lane does not hold.
    pub fn call(&mut self, call: &Call) {
        match call {
            Call::Alloc(order) => self.alloc(*order),
            Call::Free(held) => {
                self.free(*held, |lane| lane.free(held.index));
            }
            Call::FreeSized(held) => self.free_sized(*held),
            Call::FreeAll => {
                for held in self.hands.held.clone() {
                    self.free(held, |lane| lane.free(held.index));
                }
            }
            Call::Batch(order, count) => self.batch(*order, *count),
            Call::FreeBatch(order) => self.free_batch(*order),
            Call::Reserve(range) => self.reserve(range),
            Call::Release(range) => self.release(range),
            Call::Look => self.look(),
            Call::Mend => self.mend(),
            _ => self.ask(call),
        }
    }

    fn lane(&self) -> Lane<'_, Explored<F>> {
        self.buddy.on(self.lane)
    }

    fn alloc(&mut self, order: u32) {
        begin();
        match self.lane().alloc(order) {
            Ok(index) => {
                self.has_taken(Held { index, len: 1 << order });
                end(|_| Ok(()));
            }
            Err(AllocError::Exhausted { .. }) => end(|oracle| answers::exhausted(oracle, order)),
            Err(error) => wrong(&Call::Alloc(order), error),
        }
    }

    fn free(
        &mut self,
        held: Held,
        free: impl FnOnce(Lane<'_, Explored<F>>) -> Result<u64, FreeError>,
    ) {
        if !self.hands.held.contains(&held) {
            return;
        }
        begin();
        self.will_give(held);
        match free(self.lane()) {
            Ok(units) if units == held.len => end(|_| Ok(())),
            answer => wrong(&Call::Free(held), answer),
        }
    }

    fn free_sized(&mut self, held: Held) {
        let Held { index, len } = held;
        let order = len.trailing_zeros();
        self.free(held, |lane| lane.free_sized(index, order).map(|()| len));
    }

    fn ask(&mut self, call: &Call) {
        let Some(question) = call.ask() else { return };
        let (held, parts) = (question.held(), question.parts());
        if held.is_some_and(|held| !self.hands.held.contains(&held)) {
            return;
        }
        begin();
        // A growth takes effect at the end; anything else is given up at the beginning.
        let grows = matches!(call, Call::Grow(..));
        if !grows {
            held.iter().for_each(|&held| self.will_give(held));
            parts.iter().for_each(|&part| self.will_take(part));
        }
        match ask(&self.buddy, self.lane, question) {
            Ok(index) => {
                if grows {
                    held.iter().for_each(|&held| self.has_given(held));
                    parts.iter().for_each(|&part| self.has_taken(part));
                }
                if let Some(len) = call.ask().and_then(|question| question.wanted()) {
                    self.has_taken(Held { index, len });
                }
                end(|oracle| answers::granted(oracle, call, index));
            }
            Err(no @ (No::Wrong | No::NotOffered)) => wrong(call, no),
            Err(no) => {
                if !grows {
                    parts.iter().for_each(|&part| self.has_given(part));
                    held.iter().for_each(|&held| self.has_taken(held));
                }
                end(|oracle| answers::refused(oracle, call, no));
            }
        }
    }

    fn batch(&mut self, order: u32, count: usize) {
        begin();
        let mut blocks = vec![0; count];
        let got = match self.lane().alloc_batch(order, &mut blocks) {
            Ok(got) => got,
            Err(AllocError::Exhausted { .. }) => 0,
            Err(error) => return wrong(&Call::Batch(order, count), error),
        };
        for &index in &blocks[..got] {
            self.has_taken(Held { index, len: 1 << order });
        }
        end(|oracle| if got < count { answers::exhausted(oracle, order) } else { Ok(()) });
    }

    fn free_batch(&mut self, order: u32) {
        let of_order = |held: &&Held| {
            Block::of(held.index, held.len).is_some_and(|block| block.order == order)
        };
        let blocks: Vec<Held> = self.hands.held.iter().filter(of_order).copied().collect();
        begin();
        blocks.iter().for_each(|&block| self.will_give(block));
        let indices: Vec<u64> = blocks.iter().map(|block| block.index).collect();
        match self.lane().free_batch(order, &indices) {
            Ok(()) => end(|_| Ok(())),
            Err(error) => wrong(&Call::FreeBatch(order), error),
        }
    }

    fn reserve(&mut self, range: &Range<u64>) {
        begin();
        match self.buddy.reserve(range.clone()) {
            Ok(()) => {
                self.hands.reservations.push(range.clone());
                search(|search| search.has(Event::Reserve(range.clone())));
                end(|_| Ok(()));
            }
            Err(RangeError::InUse { .. }) => end(|oracle| answers::in_use(oracle, range)),
            Err(error) => wrong(&Call::Reserve(range.clone()), error),
        }
    }

    fn release(&mut self, range: &Range<u64>) {
        let Some(place) = self.hands.reservations.iter().position(|own| own == range) else {
            return;
        };
        begin();
        self.hands.reservations.remove(place);
        search(|search| search.will(Event::Release(range.clone())));
        match self.buddy.release(range.clone()) {
            Ok(()) => end(|_| Ok(())),
            Err(error) => wrong(&Call::Release(range.clone()), error),
        }
    }

    fn look(&mut self) {
        begin();
        let blocks = self.hands.held.iter().filter_map(|held| Block::of(held.index, held.len));
        let seen = observe(&self.buddy, &blocks.collect::<Vec<_>>());
        if let Err(violation) = seen {
            search(|search| search.found(violation));
        }
        for held in self.hands.held.clone() {
            let order = self.buddy.order_of(held.index);
            if order != Ok(held.len.next_power_of_two().ilog2()) {
                wrong(&Call::Look, order);
            }
        }
        end(|_| Ok(()));
    }

    fn mend(&self) {
        begin();
        self.buddy.mend();
        end(|_| Ok(()));
    }

    fn will_give(&mut self, held: Held) {
        self.hands.held.retain(|&other| other != held);
        search(|search| search.will(Event::Give(held)));
    }

    fn will_take(&mut self, held: Held) {
        self.hands.held.push(held);
        search(|search| search.will(Event::Take(held)));
    }

    fn has_given(&mut self, held: Held) {
        self.hands.held.retain(|&other| other != held);
        search(|search| search.has(Event::Give(held)));
    }

    fn has_taken(&mut self, held: Held) {
        self.hands.held.push(held);
        search(|search| search.has(Event::Take(held)));
    }
}

fn begin() {
    search(|search| search.begin_call());
}

fn end(judge: impl FnOnce(&Oracle) -> Result<(), Violation>) {
    search(|search| search.end_call(judge));
}

/// Reports an answer that cannot be right, whatever the others do.
fn wrong(call: &Call, answer: impl Debug) {
    search(|search| search.found(Violation::wrong(format!("{call:?}"), "something else", answer)));
}
