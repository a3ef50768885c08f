//! Tests looks for a free block, which claim nothing: alone, behind operations that died, and beside others.
//! `beside_pairs.rs` tests that they end.

use std::cell::RefCell;
use std::rc::Rc;

use nbbs::{Buddy, Request};
use testkit::Spec;
use testkit::program::Arena;
use testkit::steered::{Steered, count_steps, die_before, steer};

/// More steps than any operation takes.
const ALIVE: u64 = 1 << 40;

/// Does one operation, which dies before `step`, on blocks of any order or at any place.
fn act_until(
    step: u64,
    buddy: &Buddy<'_, Steered>,
    held: &mut Vec<u64>,
    random: &mut fastrand::Rng,
) {
    let lane = buddy.on(random.usize(0..4));
    let got = match random.u8(0..10) {
        0..4 => {
            let order = random.u32(0..=buddy.max_order());
            die_before(step, || lane.alloc(order).ok())
        }
        4 => {
            let index = random.u64(0..buddy.units());
            let units = random.u64(1..=(buddy.units() - index).min(40));
            die_before(step, || lane.alloc_at(index, units).ok())
        }
        5..9 if !held.is_empty() => {
            let index = held.swap_remove(random.usize(0..held.len()));
            die_before(step, || lane.free(index).map(|_| index)).map(|_| None)
        }
        _ => None,
    };
    held.extend(got.flatten());
}

/// Alone, also behind operations that died, a look finds what an allocation and a request then find, and a `false`
/// leaves a bound that says so.
#[test]
fn alone_as_an_allocation_does() {
    for units in (1..=70).chain([96, 127, 500, 512, 513, 545, 1023, 1025, 8192, 8193, 8737, 17000])
    {
        for seed in 0..if units > 600 { 4 } else { 12 } {
            let mut random = fastrand::Rng::with_seed(seed * 7919 + units);
            let arena = Arena::<Steered>::new(units);
            let (buddy, mut held) = (arena.buddy(), Vec::new());
            for _ in 0..120 {
                let dies = seed % 2 == 1 && random.u8(0..6) == 0;
                let step = if dies { random.u64(1..40) } else { ALIVE };
                act_until(step, &buddy, &mut held, &mut random);
                let (order, lane) = (random.u32(0..=buddy.max_order() + 2), random.usize(0..8));
                let look = || buddy.on(lane).has_free(order);
                let (is_free, _) = count_steps(20 * (units / 8 + 64), look).unwrap();
                let is_in_arena = order <= buddy.max_order();
                assert!(is_free || !is_in_arena || buddy.order_bound() < Some(order));
                let lane = buddy.on(random.usize(0..8));
                let request = || lane.request(Request::block(order)).ok();
                let got = if random.bool() { lane.alloc(order).ok() } else { request() };
                // A lane may find by its notes what a free that died has told nobody of.
                let agree = is_free == got.is_some() || seed % 2 == 1 && !is_free;
                assert!(agree, "{units} units, seed {seed}, order {order}: {is_free}, {got:?}");
                held.extend(got);
            }
        }
    }
}

/// What others do during a look, and whether at some instant no block of an order was free, and whether one was.
struct Others {
    spec: Spec,
    held: Vec<u64>,
    was_free: Vec<[bool; 2]>,
    random: fastrand::Rng,
    left: u32,
}

impl Others {
    fn note(&mut self) {
        for (order, was) in self.was_free.iter_mut().enumerate() {
            was[usize::from(self.spec.free_block(order as u32).is_some())] = true;
        }
    }

    fn begin(&mut self) {
        (self.was_free, self.left) = (vec![[false; 2]; self.spec.max_order() as usize + 1], 60);
        self.note();
    }

    fn act(&mut self, buddy: &Buddy<'_, Steered>) {
        let lane = buddy.on(self.random.usize(1..4));
        let got = match self.random.u8(0..8) {
            0..2 => {
                let order = self.random.u32(0..=buddy.max_order()) * self.random.u32(0..2);
                lane.alloc(order).ok().map(|index| (index, 1 << order))
            }
            2 => {
                let units = self.random.u64(1..=buddy.units().min(70));
                lane.alloc_units(units).ok().map(|index| (index, units))
            }
            _ if !self.held.is_empty() => {
                let index = self.held.swap_remove(self.random.usize(0..self.held.len()));
                assert_eq!(lane.free(index).ok(), self.spec.give_back_run(index));
                None
            }
            _ => None,
        };
        if let Some((index, units)) = got {
            self.spec.grant_run(index, units);
            self.held.push(index);
        }
        self.note();
    }
}

/// Beside whole operations of others before any of its steps, a look says `false` only if no block was free at some
/// instant, and `true` nearly always only if one was; no bound becomes too low.
#[test]
fn beside_others() {
    let (mut looks, mut perhaps) = (0, 0);
    for units in [20, 64, 96, 512, 544, 600, 1100, 9000] {
        for seed in 0..if units > 2000 { 20 } else { 100 } {
            let mut random = fastrand::Rng::with_seed(seed * 104_729 + units);
            let arena = Rc::new(Arena::<Steered>::new(units));
            let buddy = arena.buddy();
            let others = Rc::new(RefCell::new(Others {
                spec: Spec::new(units),
                held: Vec::new(),
                was_free: Vec::new(),
                random: random.fork(),
                left: 0,
            }));
            (0..random.u32(0..30)).for_each(|_| others.borrow_mut().act(&buddy));
            for _ in 0..20 {
                others.borrow_mut().begin();
                let (every, beside, shared) =
                    (random.u32(1..12), Rc::clone(&others), Rc::clone(&arena));
                let hook = move || {
                    let mut others = beside.borrow_mut();
                    if others.left > 0 && others.random.u32(0..every) == 0 {
                        others.left -= 1;
                        steer(|| {}, || others.act(&shared.buddy()));
                    }
                };
                let order = random.u32(0..=buddy.max_order());
                let lane = random.usize(0..5);
                let is_free = steer(hook, || buddy.on(lane).has_free(order));
                let others = others.borrow();
                let was = others.was_free[order as usize];
                assert!(is_free || was[0], "{units} units, seed {seed}, order {order}: {was:?}");
                looks += 1;
                perhaps += u32::from(is_free && !was[1]);
                let free = |&order: &u32| others.spec.free_block(order).is_some();
                assert!(buddy.order_bound() >= (0..=buddy.max_order()).rev().find(free));
                buddy.audit().unwrap();
            }
        }
    }
    assert!(perhaps * 100 < looks, "{perhaps} of {looks} looks found what was not there");
}
