//! Everything at once: lanes that live one life after the other, in which they come, allocate slots of two classes and
//! blocks, free, send, take, trim and recover, and leave, or are killed at any step of any of it. The arenas have a word
//! or several levels.

mod actor;

use std::collections::HashSet;
use std::sync::Mutex;

use testkit::program::Body;
use testkit::steered::{Schedule, die_within};
use testkit::{Block, Oracle, Violation, depth};

use crate::ledger::Seat;
use crate::ledger::tests::world::{SEATS, World};
use actor::Actor;

/// How many lives each lane has, and what it does in one at most.
const LIVES: u64 = 4;
const ACTS: u32 = 8;

/// Within how many steps a member may die as it comes, and as it leaves.
const COMING: u64 = 45;
const LEAVING: u64 = 40;

/// Who holds in the owner map what is under way.
const MAIL: usize = 60_000;

/// What the owner map of all memory counts: the least slot.
const GRAIN: u64 = 16;

/// What was sent, and who is about to take it.
#[derive(Clone, Copy, Debug)]
struct Mail {
    at: u64,
    class: usize,
    taker: Option<usize>,
}

/// What all share.
struct Stage {
    world: World,
    oracle: Oracle,
    mail: Mutex<Vec<Mail>>,
    /// Who has left or died, of all that there were.
    gone: Mutex<HashSet<usize>>,
}

impl Stage {
    fn new(units: u64) -> Self {
        let (world, oracle) = (World::new(units), Oracle::new(units * 64 / GRAIN));
        Self { world, oracle, mail: Mutex::default(), gone: Mutex::default() }
    }

    /// A member's number, which no other has.
    fn id(seat: &Seat) -> usize {
        let (number, generation) = seat.owner.seat().expect("a member");
        number + SEATS * generation as usize
    }

    fn is_gone(&self, id: usize) -> bool {
        self.gone.lock().unwrap().contains(&id)
    }

    /// A member is no more.
    fn bury(&self, seat: &Seat) {
        self.gone.lock().unwrap().insert(Self::id(seat));
        self.world.kill(seat.number);
    }

    /// Something is another's from now on.
    fn pass(&self, block: Block, to: usize) -> Result<(), Violation> {
        self.oracle.give(block)?;
        self.oracle.take(to, block.index, block.order).map(drop)
    }
}

/// A slot in the owner map.
fn slot(at: u64, class: usize) -> Block {
    Block { index: at / GRAIN, order: class as u32 }
}

fn wrong(what: impl std::fmt::Debug) -> Violation {
    Violation::wrong("lives", "as it should be", what)
}

/// A lane's lives, each of which ends by a death at some step, or by leaving.
fn lives(stage: &Stage, lane: usize, seed: u64) -> Result<(), Violation> {
    let mut random = fastrand::Rng::with_seed(seed * 77 + lane as u64);
    for life in 0..LIVES {
        let come = || Actor::new(stage, lane + 1, seed * 5 + life);
        let comes = if random.u8(..8) == 0 {
            die_within(lane, random.u64(..COMING), come)
        } else {
            Some(come())
        };
        let Some(mut actor) = comes else {
            stage.world.kill(lane + 1);
            continue;
        };
        for _ in 1..random.u32(1..ACTS) {
            actor.act()?;
            actor.check()?;
        }
        let most = if random.bool() { 30 } else { 250 };
        let (step, dies) = (random.u64(0..most), random.bool());
        let ended = if dies { die_within(lane, step, || actor.act()) } else { Some(actor.act()) };
        let leaves = match ended {
            Some(done) => {
                done?;
                let within = if random.u8(..4) == 0 { LEAVING } else { u64::MAX };
                die_within(lane, random.u64(..within), || actor.leave())
            }
            None => None,
        };
        if leaves.is_none() {
            stage.bury(&actor.seat);
        }
    }
    Ok(())
}

fn run(seed: u64) -> Result<(), Violation> {
    let units = [8, 32, 33, 64, 96, 560][seed as usize % 6];
    let stage = &Stage::new(units);
    let lanes = 3 + seed as usize / 6 % 3;
    let bodies = (0..lanes).map(|lane| {
        let body: Body<'_> = Box::new(move || lives(stage, lane, seed));
        body
    });
    Schedule { seed, stalls: seed as u32 % 40, steps: 6000 }.run(bodies.collect())?;
    let last = Actor::new(stage, 0, seed);
    // What lies below a block comes to light when that is free.
    for _ in 0..3 {
        last.recover()?;
        last.give_all_back()?;
    }
    let dead = stage.world.ledger().count_dead(&last.seat, &stage.world);
    if dead != 0 {
        return Err(wrong(("members are left", dead)));
    }
    stage.world.ledger().buddy.audit().map_err(wrong)?;
    let free = stage.world.ledger().buddy.count_free();
    if free != units {
        return Err(wrong(("units are lost", free, units)));
    }
    stage.oracle.check_empty()
}

/// NBBS_SEED: the first.
#[test]
fn under_many_schedules() {
    let first = std::env::var("NBBS_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    for seed in first..first + 12_000 * depth() {
        run(seed).unwrap_or_else(|found| panic!("seed {seed}: {found}"));
    }
}
