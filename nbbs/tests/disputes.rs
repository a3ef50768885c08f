//! Wrong calls of one lane beside others whose calls would be right: they are granted the very units that it frees,
//! releases and cuts. Whose a unit is nobody can tell then, and frees of what was wrongly freed are refused. But every
//! call ends, nothing is out of order once all have, and what is left in use can be seen and freed.

use std::ops::Range;
use std::sync::Mutex;

use fastrand::Rng;
use nbbs::sync::Word;
use nbbs::{Buddy, Invariant, Lane, Piece};
use testkit::depth;
use testkit::program::{Arena, Body};
use testkit::steered::{Schedule, SteeredIn};

/// A lane that calls for what it was granted, or, if it errs, for what anybody was granted.
struct Caller<'a, W> {
    buddy: Buddy<'a, W>,
    lane: usize,
    random: Rng,
    /// The units of a leaf word.
    leaf: u64,
    /// The units that all callers fight for.
    range: Range<u64>,
    /// What was granted last, to anybody.
    granted: &'a Mutex<Vec<Range<u64>>>,
    held: Vec<Range<u64>>,
    reserved: Vec<Range<u64>>,
}

impl<W: Word> Caller<'_, W> {
    fn receive(&mut self, units: Range<u64>) {
        self.granted.lock().unwrap().push(units.clone());
        self.held.push(units);
    }

    /// Draws units of the range.
    fn part(&mut self) -> Range<u64> {
        let Range { start, end } = self.range;
        let most = if self.random.bool() { end - start } else { (end - start).min(8) };
        let len = self.random.u64(1..=most);
        let start = self.random.u64(start..=end - len);
        start..start + len
    }

    /// Makes a call that is right, unless somebody has wrongly freed what it is for.
    fn act(&mut self) {
        let (buddy, part) = (self.buddy, self.part());
        let (lane, len) = (buddy.on(self.lane), part.end - part.start);
        match self.random.u32(..10) {
            0 => {
                let order = self.random.u32(..=buddy.max_order());
                if let Ok(index) = lane.alloc(order) {
                    self.receive(index..index + (1 << order));
                }
            }
            1 | 2 => {
                if lane.alloc_at(part.start, len).is_ok() {
                    self.receive(part);
                }
            }
            3 => {
                if let Ok(index) = lane.alloc_units(len) {
                    self.receive(index..index + len);
                }
            }
            4 => {
                if buddy.reserve(part.clone()).is_ok() {
                    self.granted.lock().unwrap().push(part.clone());
                    self.reserved.push(part);
                }
            }
            5 => {
                if let Some(range) = self.reserved.pop() {
                    _ = buddy.release(range);
                }
            }
            6 => {
                let order = self.random.u32(..3.min(buddy.max_order() + 1));
                let mut blocks = [0; 5];
                let count = lane.alloc_batch(order, &mut blocks).unwrap_or(0);
                blocks[..count].iter().for_each(|&at| self.receive(at..at + (1 << order)));
            }
            _ => self.change(lane),
        }
    }

    /// Frees, cuts or grows what the lane holds.
    fn change(&mut self, lane: Lane<'_, W>) {
        if self.held.is_empty() {
            return;
        }
        let run = self.held.swap_remove(self.random.usize(..self.held.len()));
        let len = run.end - run.start;
        let first = self.random.u64(1..=len);
        let cut = run.start + first;
        match self.random.u32(..6) {
            0 if first < len => match lane.split_off(run.start, first) {
                Ok(_) => self.held.extend([run.start..cut, cut..run.end]),
                Err(_) => self.held.push(run),
            },
            1 => match lane.shrink(run.start, first) {
                Ok(()) => self.held.push(run.start..cut),
                Err(_) => self.held.push(run),
            },
            2 => match lane.grow(run.start, len + first) {
                Ok(()) => self.receive(run.start..run.end + first),
                Err(_) => self.held.push(run),
            },
            3 => {
                let start = self.random.u64(run.start..cut);
                match lane.free_part(run.start, start..cut) {
                    Ok(()) => {
                        let left = [run.start..start, cut..run.end];
                        self.held.extend(left.into_iter().filter(|part| !part.is_empty()));
                    }
                    Err(_) => self.held.push(run),
                }
            }
            _ => _ = lane.free(run.start),
        }
    }

    /// Makes a call on units that are not the lane's. Returns whether it was accepted.
    fn err(&mut self) -> bool {
        let buddy = self.buddy;
        let (lane, part) = (buddy.on(self.lane), self.part());
        let part = if self.random.u32(..4) > 0 {
            let granted = self.granted.lock().unwrap();
            self.random.choice(granted.iter().rev().take(3)).cloned().unwrap_or(part)
        } else {
            part
        };
        let (index, len) = (part.start, part.end - part.start);
        let index = if self.random.u32(..4) == 0 { self.random.u64(part.clone()) } else { index };
        let order = self.random.u32(..=self.buddy.max_order());
        let first = self.random.u64(1..=len);
        match self.random.u32(..11) {
            0 | 1 => lane.free(index).is_ok(),
            2 => lane.free_sized(index, order).is_ok(),
            3 => lane.free_units(index, len).is_ok(),
            4 => lane.shrink(index, first).is_ok(),
            5 => lane.split_off(index, first).is_ok(),
            6 => lane.free_part(index, index..index + first).is_ok(),
            7 => lane.split(index, order.min(2)).is_ok(),
            // The last unit of a word may be that of a hidden head: what it grew by would have no head afterwards.
            8 => (index + 1) % self.leaf != 0 && lane.grow(index, len + first).is_ok(),
            9 => lane.free_batch(order.min(1), &[index, index + (1 << order.min(1))]).is_ok(),
            _ => self.release_wrongly(part),
        }
    }

    /// Releases units that the lane has not reserved, up to the last one of a word: where that comes free, a run may
    /// begin before the owner of the reservation releases it, and the owner would take the head of that run.
    fn release_wrongly(&self, part: Range<u64>) -> bool {
        let last = part.start | (self.leaf - 1);
        let part = part.start..part.end.min(last);
        !part.is_empty() && self.buddy.release(part).is_ok()
    }

    /// Frees all that the lane holds. What was wrongly freed is refused.
    fn give_all(&mut self) {
        let lane = self.buddy.on(self.lane);
        self.held.drain(..).for_each(|run| _ = lane.free(run.start));
        self.reserved.drain(..).for_each(|range| _ = self.buddy.release(range));
    }
}

/// Runs a race, and returns how many wrong calls were accepted.
fn race<W: Word>(buddy: Buddy<'_, W>, leaf: u64, seed: u64, random: &mut Rng) -> u64 {
    let units = buddy.units();
    let start = random.u64(..units);
    let range = start..random.u64(start + 1..=units);
    let granted = Mutex::new(Vec::new());
    let (rights, steps) = (random.usize(2..4), random.u64(40..400));
    let mut callers: Vec<_> = (0..=rights)
        .map(|lane| {
            let (held, reserved) = (Vec::new(), Vec::new());
            let random = random.fork();
            let (range, granted) = (range.clone(), &granted);
            Caller { buddy, lane, random, leaf, range, granted, held, reserved }
        })
        .collect();
    callers[..rights].iter_mut().for_each(|caller| (0..3).for_each(|_| caller.act()));
    let (calls, errors, mut accepted) = (random.u32(1..7), random.u32(1..9), 0);
    let mut wrong = callers.pop().expect("one more than those that are right");
    let mut bodies: Vec<Body<'_>> = Vec::new();
    for caller in &mut callers {
        bodies.push(Box::new(move || {
            (0..calls).for_each(|_| caller.act());
            Ok(())
        }));
    }
    bodies.push(Box::new(|| {
        accepted = (0..errors).map(|_| u64::from(wrong.err())).sum();
        Ok(())
    }));
    let most = [3, 12, steps as u32 / 3][random.usize(..3)];
    let ran = Schedule { seed, stalls: random.u32(..most), steps }.run(bodies);
    ran.unwrap_or_else(|violation| panic!("{violation}"));
    check_audit(&buddy);
    callers.iter_mut().for_each(Caller::give_all);
    check_audit(&buddy);
    accepted
}

/// What is left of a refused claim, of which a part was wrongly freed, may be below a block. All else is in order.
fn check_audit<W: Word>(buddy: &Buddy<'_, W>) {
    if let Err(broken) = buddy.audit() {
        assert!(broken.invariant == Invariant::Dormant, "{broken}");
    }
}

/// Frees all that is seen, and returns how much that was.
fn free_what_is_seen<W: Word>(buddy: &Buddy<'_, W>) -> usize {
    let mut pieces = Vec::new();
    buddy.walk(|piece| pieces.push(piece));
    pieces.retain(|piece| !matches!(piece, Piece::Free { .. }));
    for &piece in &pieces {
        match piece {
            Piece::Used { index, .. } | Piece::Run { index, .. } => {
                buddy.free(index).unwrap_or_else(|error| panic!("{piece:?}: {error}"));
            }
            Piece::Reserved { index, len } => buddy.release(index..index + len).unwrap(),
            _ => {}
        }
    }
    pieces.len()
}

fn races<const LEAF: u32, const FAN: u32>(seeds: Range<u64>, sizes: Range<u64>) {
    let mut accepted = 0;
    for seed in seeds.clone() {
        let mut random = Rng::with_seed(seed);
        let arena = Arena::<SteeredIn<LEAF, FAN>>::new(random.u64(sizes.clone()));
        let buddy = arena.buddy();
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            accepted += race(buddy, 1 << LEAF, seed, &mut random);
            // What stands below a block shows once that is free.
            let mut seen = 1;
            while seen > 0 {
                buddy.mend();
                seen = free_what_is_seen(&buddy);
            }
            buddy.audit().unwrap();
            assert_eq!(buddy.count_free(), buddy.units());
            let max = buddy.max_order();
            (0..buddy.units() >> max).for_each(|_| _ = buddy.alloc(max).unwrap());
        }));
        assert!(ended.is_ok(), "seed {seed}, shape {LEAF}, {FAN}, {sizes:?}");
    }
    assert!(accepted > (seeds.end - seeds.start) / 4, "{accepted} mistakes");
}

#[test]
fn every_call_ends_and_nothing_is_lost() {
    let seeds = || 0..4000 * depth();
    races::<1, 1>(seeds(), 4..40);
    races::<1, 1>(seeds(), 40..200);
    races::<2, 1>(seeds(), 8..100);
    races::<2, 2>(seeds(), 16..200);
    races::<1, 2>(seeds(), 8..100);
    races::<5, 4>(seeds(), 33..1500);
}
