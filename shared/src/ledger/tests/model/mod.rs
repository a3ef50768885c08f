//! A model of all members, of whom nobody is ever known to be at rest. The parts of their operations happen at random:
//! before any access of a recovery, whenever that asks who is alive, and between two recoveries. They claim, take back
//! and count, are granted, free, leave, die anywhere, also between taking back and counting, and others come to their
//! seats. Two recoverers take turns, each with a watch of its own.
//!
//! ```text
//! lives     the members, and what they do next
//! ```
//!
//! What is judged: nobody but the gone loses a unit, each part finds the tag and the block as its member left them,
//! whoever died and has left something still counts as dead, and in the end all comes free.

mod lives;

use std::cell::RefCell;
use std::rc::Rc;

use testkit::depth;
use testkit::steered::steer;

use super::world::{SEATS, World};
use crate::ledger::{Fate, Liveness, Recovery, Seat};
use lives::Lives;

/// The recoveries of a run beside members, and those when all of them have died.
const BESIDE: usize = 50;
const AFTER: usize = 4;

/// In how many accesses of a recovery a part of an operation falls: none, or one in so many.
const PACES: [Option<u32>; 6] = [None, Some(4), Some(20), Some(60), Some(200), Some(600)];

#[test]
fn parts_of_operations_at_random_accesses() {
    let mut tally = Tally::default();
    for seed in 0..2500 * depth() {
        Run::new(seed).run(&mut tally);
    }
    println!("{tally:?}");
    // It was a race: recoverers found much, had to wait for much, and came to an end of it.
    let Tally { calls, kept, freed, pending, told } = tally;
    assert!(kept > calls / 20 && freed > calls / 20, "{tally:?}");
    assert!(pending > calls / 20 && told > calls / 20, "{tally:?}");
}

/// What all recoveries beside members found.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    calls: usize,
    kept: usize,
    freed: usize,
    pending: usize,
    /// Recoveries after which fewer were dead than before, in spite of those who died meanwhile.
    told: usize,
}

impl Tally {
    fn count(&mut self, found: Recovery, has_told: bool) {
        self.calls += 1;
        self.kept += found.kept;
        self.freed += found.freed;
        self.pending += found.pending;
        self.told += usize::from(has_told);
    }
}

struct Run {
    dice: fastrand::Rng,
    world: Rc<World>,
    lives: Rc<RefCell<Lives>>,
    recoverers: [Seat; 2],
    pace: Option<u32>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed);
        let world = Rc::new(World::new(64));
        let lives = Rc::new(RefCell::new(Lives::new(Rc::clone(&world), seed)));
        let recoverers = [0, 1].map(|seat| world.sit(seat).seat);
        let pace = PACES[dice.usize(0..PACES.len())];
        Self { dice, world, lives, recoverers, pace }
    }

    fn run(mut self, tally: &mut Tally) {
        for _ in 0..BESIDE {
            for _ in 0..self.dice.u32(0..12) {
                self.lives.borrow_mut().stir(1);
            }
            self.recovers_beside_members(tally);
        }
        self.lives.borrow_mut().end();
        for _ in 0..AFTER {
            self.recovers_after_all();
        }
        self.ends_whole();
    }

    fn recovers_beside_members(&mut self, tally: &mut Tally) {
        let by = self.dice.usize(0..2);
        let before = self.dead(by);
        let stirred = Rc::clone(&self.lives);
        let asks = Asks { lives: Rc::clone(&self.lives) };
        let found = match self.pace {
            Some(pace) => {
                steer(move || stirred.borrow_mut().stir(pace), || self.recovers(by, &asks))
            }
            None => self.recovers(by, &asks),
        };
        self.check(by, found);
        tally.count(found, self.dead(by) < before);
        self.frees_some(by, 2);
    }

    /// Nobody is waited for any more.
    fn recovers_after_all(&mut self) {
        let by = self.dice.usize(0..2);
        let world = Rc::clone(&self.world);
        let found = self.recovers(by, &*world);
        self.check(by, found);
        let story = self.lives.borrow().story();
        assert_eq!((found.pending, self.dead(by)), (0, 0), "all have died\n{story}");
    }

    /// One of the two recovers, and keeps about half of the blocks.
    fn recovers(&mut self, by: usize, liveness: &impl Liveness) -> Recovery {
        let Self { dice, world, lives, recoverers, .. } = self;
        world.slabs().recover(&recoverers[by], liveness, |at, bytes| {
            assert_eq!(bytes, 64);
            let keeps = dice.bool();
            lives.borrow_mut().lose(at / 64, by, keeps);
            if keeps { Fate::Keep } else { Fate::Free }
        })
    }

    fn check(&self, by: usize, found: Recovery) {
        let mut lives = self.lives.borrow_mut();
        lives.note(format!("recoverer {by}: {found:?}"));
        assert_eq!(found.damaged, 0, "{}", lives.story());
        lives.check_dead();
    }

    /// A recoverer frees what it kept, as any member does: each block with a chance of one in so many.
    fn frees_some(&mut self, by: usize, one_in: u32) {
        let lives = self.lives.borrow();
        for unit in lives.units_of(by) {
            if self.dice.u32(0..one_in) == 0 {
                let freed = self.world.ledger().free(&self.recoverers[by], unit);
                assert_eq!(freed, Ok(1), "{}", lives.story());
                self.world.oracle.give(lives::block(unit)).unwrap();
            }
        }
    }

    fn ends_whole(mut self) {
        for by in [0, 1] {
            self.frees_some(by, 1);
            self.world.kill(by);
        }
        let what = self.lives.borrow().story();
        self.world.assert_whole(&mut self.world.sit(SEATS - 1), &what);
    }

    fn dead(&self, by: usize) -> usize {
        self.world.ledger().count_dead(&self.recoverers[by], &*self.world)
    }
}

/// Members go on as somebody asks who is alive.
struct Asks {
    lives: Rc<RefCell<Lives>>,
}

impl Liveness for Asks {
    fn is_alive(&self, seat: usize) -> bool {
        let mut lives = self.lives.borrow_mut();
        lives.stir(12);
        lives.world.is_alive(seat)
    }
}
