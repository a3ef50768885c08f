//! Requests for runs, while other lanes allocate and free between their steps: a place that is free at each of them is
//! found, and what is found is nobody else's.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use nbbs::sync::Word;
use nbbs::{Buddy, Request};
use testkit::depth;
use testkit::program::Arena;
use testkit::steered::{SteeredIn, steer};

/// What the other lanes hold, and have held at some step.
struct Others {
    random: fastrand::Rng,
    held: Vec<Range<u64>>,
    used: Vec<bool>,
    ever: Vec<bool>,
}

impl Others {
    fn new(seed: u64, units: u64) -> Self {
        let free = vec![false; units as usize];
        let random = fastrand::Rng::with_seed(seed);
        Self { random, held: Vec::new(), used: free.clone(), ever: free }
    }

    /// One of them allocates and frees, some of what it allocates at once.
    fn act<W: Word>(&mut self, buddy: &Buddy<'_, W>) {
        let (units, random) = (buddy.units(), &mut self.random);
        let lane = buddy.on(random.usize(1..4));
        for _ in 0..random.u32(1..4) {
            let random = &mut self.random;
            let (begin, len) = match random.u32(..4) {
                0 => {
                    let len = random.u64(1..=units.div_ceil(3));
                    (lane.alloc_at(random.u64(..=units - len), len).ok(), len)
                }
                1 | 2 => {
                    let order = random.u32(..=units.ilog2().min(6));
                    (lane.alloc(order).ok(), 1 << order)
                }
                _ if self.held.is_empty() => continue,
                _ => {
                    let freed = self.held.swap_remove(random.usize(..self.held.len()));
                    assert_eq!(lane.free(freed.start), Ok(freed.end - freed.start));
                    self.mark(freed, false);
                    continue;
                }
            };
            let Some(begin) = begin else { continue };
            if self.random.bool() {
                lane.free(begin).unwrap();
            } else {
                self.mark(begin..begin + len, true);
                self.held.push(begin..begin + len);
            }
        }
        self.ever.iter_mut().zip(&self.used).for_each(|(ever, used)| *ever |= used);
    }

    /// Forgets what they have held before.
    fn begin(&mut self) {
        self.ever.clone_from(&self.used);
    }

    fn mark(&mut self, units: Range<u64>, is_used: bool) {
        let units = &mut self.used[units.start as usize..units.end as usize];
        assert!(!units.contains(&is_used), "units are handed out twice, or freed twice");
        units.fill(is_used);
    }
}

/// Makes requests in arenas of up to `most` units of a shape. Returns how many had to be met.
fn requests<const LEAF: u32, const FAN: u32>(seeds: Range<u64>, most: u64) -> u64 {
    let mut had_to = 0;
    for seed in seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let all = random.u64(1..=most);
        let arena = Rc::new(Arena::<SteeredIn<LEAF, FAN>>::new(all));
        let others = Rc::new(RefCell::new(Others::new(seed, all)));
        for _ in 0..12 {
            for _ in 0..random.u32(..6) {
                others.borrow_mut().act(&arena.buddy());
            }
            others.borrow_mut().begin();
            let (units, order) = (random.u64(1..=all), random.u32(..=all.ilog2()));
            let order = if random.bool() { 0 } else { order };
            let from = if random.bool() { 0 } else { random.u64(..all) };
            let request = Request::units(units).aligned(order).within(from..all);
            let request = if random.bool() { request.top_down() } else { request };
            let steps = [0; 3].map(|_| random.u32(..60));
            let (at, acting) = (Cell::new(0), (Rc::clone(&arena), Rc::clone(&others)));
            let hook = move || {
                if steps.contains(&at.replace(at.get() + 1)) {
                    let (arena, others) = &acting;
                    steer(|| {}, || others.borrow_mut().act(&arena.buddy()));
                }
            };
            let found = steer(hook, || arena.buddy().on(0).request(request.clone()));
            let free = |first: &u64| {
                !others.borrow().ever[*first as usize..][..units as usize].contains(&true)
            };
            let mut places =
                (from..(all + 1).saturating_sub(units)).filter(|first| first % (1 << order) == 0);
            let place = places.find(free);
            had_to += u64::from(place.is_some());
            match found {
                Ok(first) => {
                    others.borrow_mut().mark(first..first + units, true);
                    arena.buddy().on(0).free(first).unwrap();
                    others.borrow_mut().mark(first..first + units, false);
                }
                Err(error) => {
                    assert_eq!(place, None, "seed {seed}, {all} units: {request:?}: {error}")
                }
            }
            arena.buddy().audit().unwrap();
        }
    }
    had_to
}

#[test]
fn what_is_free_at_each_step_is_found() {
    let seeds = 0..3000 * depth();
    let had_to = [
        requests::<5, 4>(seeds.clone(), 700),
        requests::<5, 1>(seeds.clone(), 300),
        requests::<2, 1>(seeds.clone(), 64),
        requests::<1, 2>(seeds.clone(), 64),
        requests::<3, 2>(seeds, 150),
    ];
    assert!(had_to.into_iter().all(|number| number > 1000), "{had_to:?}");
}
