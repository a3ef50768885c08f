//! Searches every schedule of a program with few preemptions. The top of the crate says how.

mod hash;
mod lane;
mod memory;
mod reach;
mod turns;
mod visited;

use std::cell::RefCell;

use testkit::{Oracle, Violation};

use lane::{DISTURBED, DONE, EVENT, IN_CALL, Lane, Standing};
pub use lane::{Left, MOST_LANES};
pub use memory::Event;
use memory::Memory;
use reach::{Footprint, Reach};
pub use turns::{Program, access, explore, explore_in_full};
use visited::{Place, Reached, Visited};

/// A step on one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Load,
    Store(u64),
    Swap { current: u64, new: u64 },
}

/// A step that was taken, and what the word held before.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub lane: usize,
    pub place: u16,
    pub step: Step,
    pub found: u64,
}

/// A finding: what went wrong, and the steps that led there.
#[derive(Clone, Debug)]
pub struct Finding {
    pub violation: Violation,
    pub steps: Vec<Taken>,
}

/// The figures of a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// The number of states, each with the running lane.
    pub states: u64,
    /// The number of turns taken.
    pub turns: u64,
    /// The number of schedules that went to their end.
    pub schedules: u64,
    /// The number of different ends.
    pub ends: u64,
    /// The sum of the hashes of the ends.
    pub sum: u64,
    /// Whether the search ended early, with too many states.
    pub capped: bool,
}

/// The number of steps of one lane, without another lane's in between, after which it must be waiting for another.
const TOO_MANY: u32 = 20_000;

thread_local! {
    static SEARCH: RefCell<Search> = RefCell::new(Search::new(0, 0));
}

/// Calls `act` on this thread's search.
#[inline]
pub fn search<R>(act: impl FnOnce(&mut Search) -> R) -> R {
    SEARCH.with_borrow_mut(act)
}

/// How the steps of the running lane are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// They are remembered, and the lane may be preempted.
    Watched,
    /// What follows has been seen.
    Unwatched,
    /// They say which words the lane uses.
    Scout,
    /// They are not part of a schedule: the arena is set up or inspected.
    Aside,
}

/// An unfinished turn of a lane: the lane runs, or others are tried in its place.
#[derive(Debug)]
struct Turn {
    lane: usize,
    mode: Mode,
    /// The number of preemptions that may follow.
    budget: u8,
    /// The number of answers that the lane had before.
    from: usize,
    /// The number of answers that it has been given.
    position: usize,
    /// The number of new steps that it has taken.
    steps: u32,
    /// Whether its first visible step is still to come.
    fresh: bool,
    /// The first lane that has not been considered to go on before the next step.
    others: usize,
    /// The events that happen with the next visible step.
    pending: Vec<Event>,
    /// Whether a call begins with the next visible step.
    begins: bool,
    /// For each lane, what was seen when it went on in place of this one.
    tried: [Option<Trial>; MOST_LANES],
    /// The place where its points begin among those of all turns.
    points: usize,
}

impl Turn {
    fn new(lane: usize, mode: Mode, budget: u8) -> Self {
        Self {
            lane,
            mode,
            budget,
            from: 0,
            position: 0,
            steps: 0,
            fresh: true,
            others: 0,
            pending: Vec::new(),
            begins: false,
            tried: [None; MOST_LANES],
            points: 0,
        }
    }
}

/// A turn that another lane took before a step.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The words on which others stepped before the preempted lane went on.
    reach: Reach,
    /// The lanes that had been woken.
    woken: [bool; MOST_LANES],
}

/// A recorded state on the way, and what followed until the next one.
#[derive(Clone, Copy, Debug)]
struct Point {
    place: Place,
    reached: Reached,
}

/// The state of everything before a step.
#[derive(Clone, Copy, Debug)]
struct Mark {
    changes: usize,
    standings: [Standing; MOST_LANES],
}

/// The lanes that accessed a word, and those that wrote it, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Users {
    all: u8,
    writers: u8,
}

/// A search through the schedules of one program.
#[derive(Debug)]
pub struct Search {
    pub memory: Memory,
    lanes: Vec<Lane>,
    /// For each lane, its part of the state.
    tokens: [u64; MOST_LANES],
    /// For each word, the lanes that are known to use it, and its bit; and the lanes that used it in this search.
    known: Vec<(Users, u32)>,
    users: Vec<Users>,
    /// Whether it turned out that lanes share a word that was not known to be shared.
    news: bool,
    /// The turns; the last one is that of the running lane.
    turns: Vec<Turn>,
    points: Vec<Point>,
    visited: Visited,
    ends: Visited,
    /// Whether only states met before are left out.
    in_full: bool,
    /// The number of states that are enough.
    pub most_states: u64,
    /// Whether steps are recorded.
    telling: bool,
    finding: Option<Finding>,
    pub seen: Seen,
}

impl Search {
    /// Creates a search over zeroed words of an arena of `units` units.
    pub fn new(words: usize, units: u64) -> Self {
        Self {
            memory: Memory::new(words, units),
            lanes: Vec::new(),
            tokens: [0; MOST_LANES],
            known: vec![Default::default(); words],
            users: vec![Users::default(); words],
            news: false,
            turns: vec![Turn::new(0, Mode::Aside, 0)],
            points: Vec::new(),
            visited: Visited::new(),
            ends: Visited::new(),
            in_full: false,
            most_states: u64::MAX,
            telling: false,
            finding: None,
            seen: Seen::default(),
        }
    }

    /// Begins a turn outside the search: until it is over, calls are those of this lane, before or after a search.
    pub fn aside(&mut self, lane: usize) {
        self.turns.push(Turn::new(lane, Mode::Aside, 0));
    }

    /// Records a violation in this schedule.
    pub fn found(&mut self, violation: Violation) {
        if self.finding.is_none() {
            self.finding = Some(Finding { violation, steps: self.steps_taken() });
        }
    }

    pub fn finding(&self) -> Option<&Finding> {
        self.finding.as_ref()
    }

    /// Returns the steps of this schedule, if they were recorded.
    fn steps_taken(&self) -> Vec<Taken> {
        let of_turn = |turn: &Turn| {
            let (lane, known) = (turn.lane, &self.lanes[turn.lane]);
            let steps = known.steps.iter().zip(&known.answers).take(turn.position).skip(turn.from);
            let steps = steps.map(|(&(place, step), &found)| Taken { lane, place, step, found });
            steps.collect::<Vec<_>>()
        };
        self.turns.iter().filter(|turn| turn.mode == Mode::Watched).flat_map(of_turn).collect()
    }

    /// Returns the turn of the running lane.
    #[inline]
    fn turn(&mut self) -> &mut Turn {
        self.turns.last_mut().expect("somebody runs")
    }

    #[inline]
    fn running(&self) -> usize {
        self.turns[self.turns.len() - 1].lane
    }

    #[inline]
    fn mode(&self) -> Mode {
        self.turns[self.turns.len() - 1].mode
    }

    /// Records that a call of the running lane begins.
    pub fn begin_call(&mut self) {
        self.turn().begins = true;
    }

    /// Records that the running lane gives something up, at the latest moment: with its next step.
    pub fn will(&mut self, event: Event) {
        match self.mode() {
            Mode::Aside => self.record(event),
            _ => self.turn().pending.push(event),
        }
    }

    /// Records that the running lane has been given something, at the earliest moment: with its last step.
    pub fn has(&mut self, event: Event) {
        if self.mode() == Mode::Aside {
            self.record(event);
        } else if self.is_live() {
            self.happen();
            self.record(event);
            self.mark_event();
        }
    }

    /// Records that a call of the running lane has returned. If no other lane disturbed it, `judge` judges its answer.
    pub fn end_call(&mut self, judge: impl FnOnce(&Oracle) -> Result<(), Violation>) {
        let mut alone = self.mode() == Mode::Aside;
        if self.is_live() {
            // Only matters if the call took no visible step.
            self.happen();
            self.mark_event();
            let running = self.running();
            let now = &mut self.lanes[running].now;
            alone = !now.is(DISTURBED);
            now.set(IN_CALL | DISTURBED, false);
        }
        if alone && let Err(violation) = judge(&self.memory.oracle) {
            self.found(violation);
        }
        self.forget_pending();
    }

    /// Forgets the pending events, which have happened.
    fn forget_pending(&mut self) {
        let turn = self.turn();
        turn.pending.clear();
        turn.begins = false;
    }

    /// Records that something happened with the last step of the running lane.
    fn mark_event(&mut self) {
        let running = self.running();
        self.lanes[running].now.set(EVENT, true);
        self.tell(Footprint { event: true, ..Footprint::default() });
    }

    /// Returns whether the lane is past the answers that it had at the beginning of its turn.
    fn is_live(&mut self) -> bool {
        let turn = self.turn();
        turn.mode == Mode::Watched && turn.steps > 0
    }

    /// Makes the pending events happen. Returns whether there were any.
    fn happen(&mut self) -> bool {
        let turn = self.turn();
        let (running, begins) = (turn.lane, std::mem::take(&mut turn.begins));
        let events = std::mem::take(&mut turn.pending);
        if begins {
            let disturbed = self.lanes.iter().any(|lane| lane.now.is(IN_CALL));
            let now = &mut self.lanes[running].now;
            now.set(IN_CALL, true);
            now.set(DISTURBED, disturbed);
        }
        let happened = begins || !events.is_empty();
        for event in events {
            self.record(event);
        }
        happened
    }

    /// Tells the other lanes of a step.
    fn tell(&mut self, step: Footprint) {
        let running = self.running();
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            if number != running && !lane.now.is(DONE) && lane.now.learn(step) {
                self.tokens[number] = lane.now.token(number);
            }
        }
        let point = self.points.last_mut().expect("a turn begins with one");
        point.reached.iter_mut().for_each(|reach| reach.add(step));
    }

    fn record(&mut self, event: Event) {
        if let Err(violation) = self.memory.happen(self.running(), event) {
            self.found(violation);
        }
    }
}
