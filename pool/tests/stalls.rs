//! Tests a thread that stops for good after any step of growing or shrinking the pool, beside another that was stopped
//! in the middle of its own and goes on: the loss is at most its chunk, and the others neither wait nor lose anything.

mod support;

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use nbbs_pool::{Config, PoolBox};
use support::steps::Stepped;
use support::{Bank, BankPool, Item};
use testkit::depth;
use testkit::program::Body;
use testkit::steered::{Turn, count_steps, follow};

const CHUNK: usize = 2;
const ITEM: Item = Item([1, 0, 0, !1]);

/// The most words that an operation looks at afterwards: 12 chunks, and as many words again for each that it adds.
const STEPS: u64 = 400;

/// A pool before the race.
#[derive(Clone, Copy, Debug)]
struct Scene {
    /// Chunks of which every slot is in use.
    busy: usize,
    /// Chunks that are free.
    spare: usize,
    /// Chunks that have lost their memory.
    bare: usize,
    /// The number of further chunks that there may be.
    more: usize,
    /// With fewer free slots than this an allocation adds a chunk, with what it has claimed in its hands.
    ahead: usize,
}

struct Stage<'b> {
    bank: &'b Bank,
    pool: BankPool<'b, Stepped>,
    /// By number of the slot.
    held: Mutex<BTreeSet<u64>>,
}

impl<'b> Stage<'b> {
    fn new(bank: &'b Bank, scene: Scene) -> Self {
        let Scene { busy, spare, bare, more, ahead } = scene;
        let limit = CHUNK * (busy + spare + bare + more);
        let config = Config::new().chunk_size(CHUNK).limit(limit).ahead(ahead);
        let pool = BankPool::with_words(bank, config);
        let stage = Self { bank, pool, held: Mutex::default() };
        let mut local = stage.pool.local_of(2);
        for _ in 0..CHUNK * busy {
            stage.hold(PoolBox::leak(local.alloc(ITEM).unwrap()));
        }
        drop(local);
        stage.pool.reserve(CHUNK * (busy + bare)).unwrap();
        stage.pool.shrink();
        stage.pool.reserve(CHUNK * (busy + spare)).unwrap();
        stage
    }

    fn hold(&self, object: NonNull<Item>) {
        let number = self.bank.number(object.as_ptr());
        assert!(self.held.lock().unwrap().insert(number), "slot {number} is handed out twice");
    }

    fn alloc(&self) -> bool {
        self.pool.alloc(ITEM).map(|object| self.hold(object)).is_ok()
    }

    fn free_one(&self) {
        let number = self.held.lock().unwrap().pop_first();
        number.into_iter().for_each(|number| self.free(number));
    }

    fn free(&self, number: u64) {
        assert_eq!(self.pool.take(self.bank.object(number)), Ok(ITEM));
    }
}

type Act = fn(&Stage<'_>);

const GROW: Act = |stage| _ = stage.pool.grow();
const SHRINK: Act = |stage| _ = stage.pool.shrink();
const ALLOC: Act = |stage| _ = stage.alloc();
const CHURN: Act = |stage| {
    stage.alloc();
    stage.free_one();
    GROW(stage);
    SHRINK(stage);
};

/// Allocates everything that is left afterwards, and counts each step. At most `cost` slots may be lost, and no more
/// chunks than they fill may stay.
fn look_after(stage: Stage<'_>, scene: Scene, cost: usize, place: &str) {
    let Scene { busy, spare, bare, more, .. } = scene;
    while count_steps(STEPS, || stage.alloc()).expect(place).0 {}
    let held = stage.held.lock().unwrap().clone();
    let lost = CHUNK * (busy + spare + bare + more) - held.len();
    assert!(lost <= cost, "{lost} slots are lost: {place}");
    for &number in &held {
        count_steps(STEPS, || stage.free(number)).expect(place);
    }
    count_steps(STEPS, || stage.pool.shrink()).expect(place);
    let left: usize = stage.bank.taken().iter().sum();
    assert!(left <= cost.next_multiple_of(CHUNK), "{left} slots do not go: {place}");
}

fn bank(scene: Scene) -> Bank {
    let Scene { busy, spare, bare, more, .. } = scene;
    let bank = Bank::new(CHUNK, busy + spare + bare + more + 1);
    // The block that the stopped thread has just got.
    bank.write_off(1);
    bank
}

/// Stops `one` after each of its steps, with `other` stopped at every twelfth of its own, or at more of them with a
/// greater depth. Returns how many cases there are.
fn stop_everywhere(scene: Scene, one: Act, other: Act) -> u32 {
    let alone = bank(scene);
    let (_, steps) = count_steps(10_000, || other(&Stage::new(&alone, scene))).unwrap();
    let mut cases = 0;
    for stall in (0..=steps).step_by((12 / depth()).max(1) as usize) {
        for step in 0.. {
            let bank = bank(scene);
            let stage = Stage::new(&bank, scene);
            let done = [(); 2].map(|()| AtomicBool::new(false));
            let on_stage = &stage;
            let bodies = [one, other].into_iter().zip(&done).map(|(act, done)| -> Body<'_> {
                Box::new(move || {
                    act(on_stage);
                    done.store(true, Ordering::Relaxed);
                    Ok(())
                })
            });
            let script = [Turn::steps(1, stall), Turn::last(0, step), Turn::rest(1)];
            let place = format!("{scene:?}, stalled at {stall}, stopped at {step}");
            follow(&script, bodies.collect()).unwrap_or_else(|error| panic!("{error}: {place}"));
            let [survived, other_is_done] = done.map(AtomicBool::into_inner);
            assert!(other_is_done, "one waits: {place}");
            let cost = if survived { 0 } else { CHUNK + usize::from(scene.ahead > 0) };
            look_after(stage, scene, cost, &place);
            cases += 1;
            if survived {
                break;
            }
        }
    }
    cases
}

/// From nothing; behind eight chunks, where the ninth begins a segment and is the first that an index lists; behind
/// nine; and with chunks that were there before.
const SCENES: [Scene; 5] = [
    Scene { busy: 0, spare: 0, bare: 0, more: 3, ahead: 0 },
    Scene { busy: 8, spare: 0, bare: 0, more: 3, ahead: 0 },
    Scene { busy: 9, spare: 0, bare: 0, more: 2, ahead: 0 },
    Scene { busy: 8, spare: 2, bare: 0, more: 1, ahead: 0 },
    Scene { busy: 1, spare: 1, bare: 2, more: 1, ahead: 0 },
];

fn everywhere(name: &str, one: Act, other: Act) {
    everywhere_in(&SCENES, name, one, other);
}

fn everywhere_in(scenes: &[Scene], name: &str, one: Act, other: Act) {
    let cases: u32 = scenes.iter().map(|&scene| stop_everywhere(scene, one, other)).sum();
    println!("{name}: nothing lost in {cases} cases");
}

#[test]
fn while_it_grows() {
    everywhere("grow beside grow", GROW, GROW);
    everywhere("grow beside alloc", GROW, ALLOC);
}

#[test]
fn while_it_grows_for_an_allocation() {
    everywhere("alloc beside alloc", ALLOC, ALLOC);
    everywhere("alloc beside shrink", ALLOC, SHRINK);
}

#[test]
fn while_it_grows_ahead() {
    let scenes = SCENES.map(|scene| Scene { ahead: CHUNK, ..scene });
    everywhere_in(&scenes, "alloc that grows ahead beside alloc", ALLOC, ALLOC);
    everywhere_in(&scenes, "alloc that grows ahead beside shrink", ALLOC, SHRINK);
}

#[test]
fn while_it_shrinks() {
    everywhere("shrink beside alloc", SHRINK, ALLOC);
    everywhere("shrink beside shrink", SHRINK, SHRINK);
}

#[test]
fn beside_everything() {
    everywhere("grow beside everything", GROW, CHURN);
    everywhere("shrink beside everything", SHRINK, CHURN);
}
