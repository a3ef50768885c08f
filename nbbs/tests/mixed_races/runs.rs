//! The calls on runs, on parts of what a lane holds, and on ranges.

use std::ops::Range;

use nbbs::sync::Word;
use testkit::program::{Ask, Held, No};

use crate::calls::Caller;
use crate::world::{Claims, range};

/// The length of short runs, ranges and growths: two leaf words of the standard shape.
const SHORT: u64 = 64;

impl<W: Word> Caller<'_, W> {
    /// Asks for a run: anywhere, at a place, aligned, or aligned in a range and from one of its ends.
    pub fn run(&mut self) {
        let random = &mut self.random;
        let units = self.buddy.units();
        let most = if random.bool() { units } else { units.min(SHORT) };
        let len = random.u64(1..=most);
        let index = random.u64(..=units - len);
        let order = if random.bool() { 0 } else { random.u32(..=self.buddy.max_order()) };
        let (start, top_down) = (index / 2, random.bool());
        let within = start..units - random.u64(..=units - len - start);
        let (ask, order, within) = match random.u32(..4) {
            0 => (Ask::Units(len), 0, 0..units),
            1 => (Ask::At(Held { index, len }), 0, index..index + len),
            2 => (Ask::Within(len, order, 0..units, false), order, 0..units),
            _ => (Ask::Within(len, order, within.clone(), top_down), order, within),
        };
        let has_place = ask.has_place();
        let (found, ended) = self.ask(Claims::Run(len), Vec::new(), ask);
        match found {
            Ok(index) => {
                assert!(index.is_multiple_of(1 << order) && within.contains(&index));
                self.world().receive(self.number, Held { index, len });
            }
            Err(No::Nowhere) => assert!(!has_place),
            Err(No::Exhausted | No::InUse(_)) => {
                self.world().judge_run(ended, len, order, within);
            }
            Err(no) => panic!("{no:?}"),
        }
    }

    /// Frees the end of what is held, or any part of it, or cuts it in two.
    pub fn cut(&mut self) {
        let Some(held) = self.pick() else { return };
        if held.len == 1 {
            return self.keep(held);
        }
        let first = self.random.u64(1..held.len);
        let (at, end) = (held.index + first, held.index + held.len);
        match self.random.u32(..4) {
            0 => self.change(Ask::SplitOff(held, first), 0..0),
            1 => self.change(Ask::Shrink(held, first), at..end),
            2 => self.change(Ask::FreePart(held, at..end), at..end),
            _ => {
                let start = held.index + self.random.u64(..held.len);
                let part = start..self.random.u64(start + 1..=end);
                self.change(Ask::FreePart(held, part.clone()), part);
            }
        }
    }

    pub fn split(&mut self) {
        let Some(held) = self.pick() else { return };
        let largest = (held.index | held.len).trailing_zeros().min(self.buddy.max_order());
        let order = self.random.u32(..=largest);
        self.change(Ask::Split(held, order), 0..0);
    }

    /// Changes what is held into parts, and frees `gap`. It is only refused beside a claim of another.
    fn change(&self, ask: Ask<'_>, gap: Range<u64>) {
        let (question, parts) = (format!("{ask:?}"), ask.parts());
        let held = ask.held().expect("parts are of something");
        self.world().leave(self.number, gap.clone());
        let (done, ended) = self.ask(Claims::Nothing, vec![range(held)], ask);
        let mut world = self.world();
        match done {
            Ok(_) => {
                world.held[self.number].extend(parts);
                world.left(self.number, gap);
            }
            Err(No::Contended) if !world.alone(ended) || !world.no_change_died() => {
                world.take(self.number, gap);
                world.held[self.number].push(held);
            }
            Err(no) => panic!("{question} alone: {no:?}"),
        }
    }

    pub fn grow(&mut self) {
        let Some(held) = self.pick() else { return };
        let (units, end) = (self.buddy.units(), held.index + held.len);
        let more = self.random.u64(..=(units - end).min(SHORT));
        let grown = Held { len: held.len + more, ..held };
        let hands = vec![range(grown)];
        let (done, ended) = self.ask(Claims::Run(more), hands, Ask::Grow(held, grown.len));
        let mut world = self.world();
        match done {
            Ok(_) => {
                world.take(self.number, end..end + more);
                world.held[self.number].push(grown);
            }
            Err(No::Contended | No::InUse(_)) => {
                world.held[self.number].push(held);
                if world.no_change_died() {
                    world.judge_run(ended, more, 0, end..end + more);
                }
            }
            Err(no) => panic!("growth of {held:?} by {more}: {no:?}"),
        }
    }

    pub fn reserve(&mut self) {
        let units = self.buddy.units();
        let len = self.random.u64(1..=units.min(SHORT));
        let start = self.random.u64(..=units - len);
        let range = start..start + len;
        let reserve = || self.buddy.reserve(range.clone());
        let (done, ended) = self.call(Claims::Run(len), vec![range.clone()], reserve);
        let mut world = self.world();
        if done.is_ok() {
            world.take(self.number, range.clone());
            world.reserved[self.number].push(range);
        } else {
            world.judge_run(ended, len, 0, range);
        }
    }

    pub fn release(&mut self) {
        let Some(range) = self.world().reserved[self.number].pop() else { return };
        self.world().leave(self.number, range.clone());
        let (done, _) =
            self.call(Claims::Nothing, vec![range.clone()], || self.buddy.release(range.clone()));
        assert_eq!(done, Ok(()));
        self.world().left(self.number, range);
    }
}
