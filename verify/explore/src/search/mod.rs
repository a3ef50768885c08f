//! Every schedule of a program with few preemptions: how it is found is told at the top of the crate.

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

/// What went wrong, and the steps that led there.
#[derive(Clone, Debug)]
pub struct Finding {
    pub violation: Violation,
    pub steps: Vec<Taken>,
}

/// What a search has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// States, with who runs.
    pub states: u64,
    /// Turns taken.
    pub turns: u64,
    /// Schedules that went to their end.
    pub schedules: u64,
    /// Different ends.
    pub ends: u64,
    /// The sum of their hashes.
    pub sum: u64,
    /// Whether the search ended before its time, with too many states.
    pub capped: bool,
}

/// So many steps of one lane, without another in between, and no end: it waits for somebody.
const TOO_MANY: u32 = 20_000;

thread_local! {
    static SEARCH: RefCell<Search> = RefCell::new(Search::new(0, 0));
}

/// Calls `act` on this thread's search.
#[inline]
pub fn search<R>(act: impl FnOnce(&mut Search) -> R) -> R {
    SEARCH.with_borrow_mut(act)
}

/// What is done with the steps of the lane that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// They are remembered, and the lane may be preempted.
    Watched,
    /// What follows has been seen.
    Unwatched,
    /// They say which words the lane uses.
    Scout,
    /// They are no part of a schedule: the arena is set up or looked at.
    Aside,
}

/// A lane's turn that is not over: it runs, or others are tried in its place.
#[derive(Debug)]
struct Turn {
    lane: usize,
    mode: Mode,
    /// Preemptions that may follow.
    budget: u8,
    /// Answers that the lane had before.
    from: usize,
    /// Answers that it has been given.
    position: usize,
    /// Steps that it has taken anew.
    steps: u32,
    /// Whether it has yet to come to its first step that others can see.
    fresh: bool,
    /// The first lane that has not been thought of to go on before the next step.
    others: usize,
    /// What happens with the next step that others can see.
    pending: Vec<Event>,
    /// Whether a call begins with it.
    begins: bool,
    /// By lane: what was seen when that went on in place of this one.
    tried: [Option<Trial>; MOST_LANES],
    /// Where its points begin among those of all turns.
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
    /// Where others stepped before the lane that was preempted went on.
    reach: Reach,
    /// Which lanes had been woken.
    woken: [bool; MOST_LANES],
}

/// A state on the way, and what followed until the next such state.
#[derive(Clone, Copy, Debug)]
struct Point {
    place: Place,
    reached: Reached,
}

/// Where everything stands before a step.
#[derive(Clone, Copy, Debug)]
struct Mark {
    changes: usize,
    standings: [Standing; MOST_LANES],
}

/// Which lanes accessed a word, and which wrote, as bits.
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
    /// By lane, its part of the state.
    tokens: [u64; MOST_LANES],
    /// By word, who is known to use it, and its bit; and who used it in this search.
    known: Vec<(Users, u32)>,
    users: Vec<Users>,
    /// Whether it turned out that lanes are in touch by a word who were not known to be.
    news: bool,
    /// The last one is that of the lane that runs.
    turns: Vec<Turn>,
    points: Vec<Point>,
    visited: Visited,
    ends: Visited,
    /// Whether nothing but states met before is left out.
    in_full: bool,
    /// So many states are enough.
    pub most_states: u64,
    /// Whether steps are kept.
    telling: bool,
    finding: Option<Finding>,
    pub seen: Seen,
}

impl Search {
    /// Over so many words, all zero, of an arena of so many units.
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

    /// Calls made from now on, until the turn is over, are those of this lane, before or after a search.
    pub fn aside(&mut self, lane: usize) {
        self.turns.push(Turn::new(lane, Mode::Aside, 0));
    }

    /// Something is wrong in this schedule.
    pub fn found(&mut self, violation: Violation) {
        if self.finding.is_none() {
            self.finding = Some(Finding { violation, steps: self.steps_taken() });
        }
    }

    pub fn finding(&self) -> Option<&Finding> {
        self.finding.as_ref()
    }

    /// The steps of this schedule, if they were kept.
    fn steps_taken(&self) -> Vec<Taken> {
        let of_turn = |turn: &Turn| {
            let (lane, known) = (turn.lane, &self.lanes[turn.lane]);
            let steps = known.steps.iter().zip(&known.answers).take(turn.position).skip(turn.from);
            let steps = steps.map(|(&(place, step), &found)| Taken { lane, place, step, found });
            steps.collect::<Vec<_>>()
        };
        self.turns.iter().filter(|turn| turn.mode == Mode::Watched).flat_map(of_turn).collect()
    }

    /// The turn of the lane that runs.
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

    /// A call of the lane that runs begins.
    pub fn begin_call(&mut self) {
        self.turn().begins = true;
    }

    /// The lane that runs gives something up, at the latest moment: with its next step.
    pub fn will(&mut self, event: Event) {
        match self.mode() {
            Mode::Aside => self.record(event),
            _ => self.turn().pending.push(event),
        }
    }

    /// The lane that runs has been given something, at the earliest moment: with its last step.
    pub fn has(&mut self, event: Event) {
        if self.mode() == Mode::Aside {
            self.record(event);
        } else if self.is_live() {
            self.happen();
            self.record(event);
            self.mark_event();
        }
    }

    /// A call of the lane that runs has returned. If nobody else was about, `judge` says whether rightly.
    pub fn end_call(&mut self, judge: impl FnOnce(&Oracle) -> Result<(), Violation>) {
        let mut alone = self.mode() == Mode::Aside;
        if self.is_live() {
            // If the call took no step that others can see.
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

    /// What was pending has happened.
    fn forget_pending(&mut self) {
        let turn = self.turn();
        turn.pending.clear();
        turn.begins = false;
    }

    /// Something happened with the last step of the lane that runs.
    fn mark_event(&mut self) {
        let running = self.running();
        self.lanes[running].now.set(EVENT, true);
        self.tell(Footprint { event: true, ..Footprint::default() });
    }

    /// Whether the lane is past the answers that it had at the beginning of its turn.
    fn is_live(&mut self) -> bool {
        let turn = self.turn();
        turn.mode == Mode::Watched && turn.steps > 0
    }

    /// What was to happen with the next step. Returns whether anything did.
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

    /// The other lanes learn of a step.
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
