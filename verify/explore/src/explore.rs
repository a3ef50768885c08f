//! Runs a program under every schedule.

use std::ops::Range;
use std::rc::Rc;

use nbbs::Buddy;
use nbbs::sync::Word;
use testkit::program::{Held, inspect, look_for_blocks};
use testkit::{Oracle, Spec, Violation, check_whole};

use crate::actor::Actor;
use crate::calls::Call;
use crate::search::{self, Finding, Left, Program, Search, Seen, search};
use crate::word::{Explored, Form};

/// A scene: an arena as some calls have left it, and who holds what.
pub struct Scene<F> {
    units: u64,
    words: Box<[Explored<F>]>,
    hands: Vec<Left>,
}

/// The number of lanes that can hold something in a scene.
const LANES: usize = 4;

impl<F: Form> Scene<F> {
    /// Makes the calls in an empty arena, which becomes this thread's. A search ends after `most_states` states.
    ///
    /// # Errors
    /// A violation on the way.
    pub fn new(units: u64, calls: &[(usize, Call)], most_states: u64) -> Result<Self, Finding> {
        let count = Explored::<F>::SHAPE.metadata_words(units);
        search(|search| {
            *search = Search::new(count, units);
            search.most_states = most_states;
        });
        let words = Explored::many(count);
        let mut hands = vec![Left::default(); LANES];
        for (lane, call) in calls {
            let left = std::mem::take(&mut hands[*lane]);
            search(|search| search.aside(*lane));
            let mut actor = Actor { buddy: buddy(&words, units), lane: *lane, hands: left };
            actor.call(call);
            hands[*lane] = actor.hands;
        }
        search(|search| search.finding().cloned().map_or(Ok(()), Err))?;
        Ok(Self { units, words, hands })
    }

    fn buddy(&self) -> Buddy<'_, Explored<F>> {
        buddy(&self.words, self.units)
    }

    /// Returns what a lane holds.
    pub fn held(&self, lane: usize) -> &[Held] {
        &self.hands[lane].held
    }

    /// Returns the units that a lane has reserved.
    pub fn reservations(&self, lane: usize) -> &[Range<u64>] {
        &self.hands[lane].reservations
    }

    /// Runs the tasks of lanes 0 and up under every schedule with up to `preemptions` preemptions, or until there are
    /// too many states.
    ///
    /// # Errors
    /// The first violation.
    pub fn explore(self: &Rc<Self>, tasks: &[Vec<Call>], preemptions: u8) -> Result<Seen, Finding> {
        let tasks = Tasks { scene: Rc::clone(self), tasks: tasks.to_vec() };
        search::explore(Rc::new(tasks), preemptions)
    }

    /// Does the same as [`explore`](Self::explore), without reductions except that for states met before.
    ///
    /// # Errors
    /// The first violation.
    pub fn explore_in_full(
        self: &Rc<Self>,
        tasks: &[Vec<Call>],
        preemptions: u8,
    ) -> Result<Seen, Finding> {
        let tasks = Tasks { scene: Rc::clone(self), tasks: tasks.to_vec() };
        search::explore_in_full(Rc::new(tasks), preemptions)
    }
}

/// The tasks of the lanes in a scene.
struct Tasks<F> {
    scene: Rc<Scene<F>>,
    tasks: Vec<Vec<Call>>,
}

impl<F: Form> Program for Tasks<F> {
    fn lanes(&self) -> usize {
        self.tasks.len()
    }

    fn run(&self, lane: usize) -> Left {
        let hands = self.scene.hands[lane].clone();
        let mut actor = Actor { buddy: self.scene.buddy(), lane, hands };
        self.tasks[lane].iter().for_each(|call| actor.call(call));
        actor.hands
    }

    fn judge(&self, mut left: Vec<Left>) -> Result<(), Violation> {
        left.extend(self.scene.hands[left.len()..].iter().cloned());
        aftermath(&self.scene.buddy(), &left)
    }
}

fn buddy<F: Form>(words: &[Explored<F>], units: u64) -> Buddy<'_, Explored<F>> {
    Buddy::new(words, units).expect("the words are as many as it takes")
}

/// Checks an arena at rest: it holds what the lanes hold, all of that can be freed, and then the arena is whole.
fn aftermath<F: Form>(buddy: &Buddy<'_, Explored<F>>, hands: &[Left]) -> Result<(), Violation> {
    let mut spec = Spec::new(buddy.units());
    for left in hands {
        left.held.iter().for_each(|held| spec.grant_run(held.index, held.len));
        left.reservations.iter().for_each(|range| _ = spec.reserve(range.clone()));
    }
    inspect(buddy, &spec)?;
    look_for_blocks(buddy, &spec)?;
    for (lane, left) in hands.iter().enumerate() {
        for held in &left.held {
            let len = buddy.len_of(held.index);
            if len != Ok(held.len) {
                return Err(Violation::wrong(format!("len_of({})", held.index), held.len, len));
            }
            let freed = buddy.on(lane).free_units(held.index, held.len);
            freed.map_err(|error| Violation::wrong(format!("free of {held:?}"), "done", error))?;
        }
        for range in &left.reservations {
            let released = buddy.release(range.clone());
            released.map_err(|error| {
                Violation::wrong(format!("release of {range:?}"), "done", error)
            })?;
        }
    }
    check_whole(buddy, &Oracle::new(buddy.units()))?;
    inspect(buddy, &Spec::new(buddy.units()))
}
