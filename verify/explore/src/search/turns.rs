//! Takes turns within turns: before a step of one lane, the others are tried in its place.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use testkit::Violation;

use super::hash::mix;
use super::lane::{BEGUN, DONE, Lane, Left, MOST_LANES, Standing, WOKEN};
use super::reach::bit;
use super::{
    Finding, Footprint, Mark, Mode, Point, Reach, Reached, Search, Seen, Step, TOO_MANY, Trial,
    Turn, Users, search,
};

/// A program: what its lanes do, and how its end is judged.
pub trait Program {
    fn lanes(&self) -> usize;

    /// Carries out everything that the lane does, from its beginning.
    fn run(&self, lane: usize) -> Left;

    /// Judges the end: all lanes are done, and hold this.
    ///
    /// # Errors
    /// What is wrong.
    fn judge(&self, left: Vec<Left>) -> Result<(), Violation>;
}

thread_local! {
    static PROGRAM: RefCell<Option<Rc<dyn Program>>> = const { RefCell::new(None) };
}

/// The payload that unwinds a lane that never ends.
struct Stopped;

/// Takes a step on the word at a place, and returns what the word held before.
#[inline]
pub fn access(place: u32, step: Step) -> u64 {
    loop {
        match search(|search| search.access(place as usize, step)) {
            Next::Answer(answer) => return answer,
            Next::Try(mark, lane, budget) => {
                let reached = try_turn(mark, lane, budget);
                search(|search| search.tried(lane, reached));
            }
            Next::Stop => resume_unwind(Box::new(Stopped)),
        }
    }
}

/// Runs a program under every schedule with up to `preemptions` preemptions, from the current state.
///
/// # Errors
/// The first violation.
pub fn explore(program: Rc<dyn Program>, preemptions: u8) -> Result<Seen, Finding> {
    PROGRAM.set(Some(program));
    let result = attempt(preemptions).map_err(|finding| {
        // Runs it once more, and records its steps.
        search(|search| search.telling = true);
        let told = attempt(preemptions);
        search(|search| search.telling = false);
        told.err().unwrap_or(finding)
    });
    PROGRAM.set(None);
    result
}

/// Does the same as [`explore`], without reductions except that for states met before.
///
/// # Errors
/// The first violation.
pub fn explore_in_full(program: Rc<dyn Program>, preemptions: u8) -> Result<Seen, Finding> {
    search(|search| search.in_full = true);
    let result = explore(program, preemptions);
    search(|search| search.in_full = false);
    result
}

fn program() -> Rc<dyn Program> {
    PROGRAM.with_borrow(Clone::clone).expect("one is explored")
}

fn attempt(preemptions: u8) -> Result<Seen, Finding> {
    let changes = search(|search| search.memory.changes());
    scout();
    loop {
        search(|search| {
            search.memory.back_to(changes);
            search.begin(program().lanes());
        });
        hand_over(None, preemptions);
        if search(|search| search.finding.is_some() || !search.news) {
            break;
        }
    }
    search(|search| {
        search.memory.back_to(changes);
        search.finding.clone().map_or(Ok(search.seen), Err)
    })
}

/// Finds out which words the lanes use: first one after the other, then the other way round.
fn scout() {
    let program = program();
    search(|search| search.users.fill(Users::default()));
    for lane in (0..program.lanes()).chain((0..program.lanes()).rev()) {
        search(|search| search.turns.push(Turn::new(lane, Mode::Scout, 0)));
        // A violation here will occur again in the search.
        _ = catch_unwind(AssertUnwindSafe(|| program.run(lane)));
        search(|search| search.turns.pop());
    }
}

/// Lets each other lane go on, after a lane is done, or when none has begun.
fn hand_over(done: Option<usize>, budget: u8) -> Reached {
    let (mark, lanes) = search(|search| (search.mark(), search.lanes.len()));
    let mut all = Reached::default();
    for lane in 0..lanes {
        if Some(lane) != done && search(|search| search.may_go_on(&mark.standings[lane])) {
            merge(&mut all, &try_turn(mark, lane, budget));
        }
    }
    all
}

/// Lets a lane take a turn, and undoes it. Returns what followed.
fn try_turn(mark: Mark, lane: usize, budget: u8) -> Reached {
    let reached = match search(|search| search.begin_turn(lane, budget)) {
        Some(reached) => reached,
        None => {
            run(lane, budget);
            search(Search::end_turn)
        }
    };
    search(|search| search.back_to(&mark));
    reached
}

/// Lets a lane go on to its end, and the others after it.
fn run(lane: usize, budget: u8) {
    let program = program();
    match catch_unwind(AssertUnwindSafe(|| program.run(lane))) {
        Ok(left) => match search(|search| search.lane_done(left)) {
            Done::Nothing => {}
            Done::HandOver => {
                let reached = hand_over(Some(lane), budget);
                search(|search| search.reached(&reached));
            }
            Done::All(left) => judge(&*program, left),
        },
        Err(payload) if payload.is::<Stopped>() => {}
        Err(payload) => search(|search| search.found(Violation::from_panic(&*payload))),
    }
}

fn judge(program: &dyn Program, left: Vec<Left>) {
    search(|search| search.aside(0));
    let result = catch_unwind(AssertUnwindSafe(|| program.judge(left)));
    let result = result.unwrap_or_else(|payload| Err(Violation::from_panic(&*payload)));
    search(|search| {
        search.turns.pop();
        if let Err(violation) = result {
            search.found(violation);
        }
    });
}

fn merge(all: &mut Reached, more: &Reached) {
    all.iter_mut().zip(more).for_each(|(all, &more)| all.merge(more));
}

/// What a lane has to do before its next step.
enum Next {
    Answer(u64),
    /// First another lane's turn is tried.
    Try(Mark, usize, u8),
    /// Stop: the lane never ends.
    Stop,
}

/// What to do when a lane has come to its end.
enum Done {
    Nothing,
    HandOver,
    /// All lanes are done, in a state that was not met before.
    All(Vec<Left>),
}

impl Users {
    fn add(&mut self, lane: usize, wrote: bool) {
        self.all |= 1 << lane;
        self.writers |= u8::from(wrote) << lane;
    }

    /// Returns whether steps of some lane on the word matter to another.
    fn are_in_touch(self) -> bool {
        self.writers != 0 && self.all.count_ones() > 1
    }

    /// Returns whether others can see such a step of the lane, or change its answer.
    #[inline]
    fn see(self, lane: usize, step: Step) -> bool {
        let others = if step == Step::Load { self.writers } else { self.all };
        others & !(1 << lane) != 0
    }
}

impl Search {
    /// Begins a search with all lanes at their beginnings, and with what is known about the words.
    fn begin(&mut self, lanes: usize) {
        let mut numbers = 0..;
        for (known, &users) in self.known.iter_mut().zip(&self.users) {
            let users = if self.in_full { Users { all: u8::MAX, writers: u8::MAX } } else { users };
            *known = (users, if users.are_in_touch() { numbers.next().map_or(0, bit) } else { 0 });
        }
        self.seen = Seen::default();
        self.lanes.clear();
        self.lanes.resize_with(lanes, Lane::default);
        self.tokens = std::array::from_fn(|number| Standing::default().token(number));
        self.news = false;
        self.finding = None;
        self.points.clear();
        self.visited.clear();
        self.ends.clear();
    }

    /// Returns whether the search is over.
    fn is_over(&self) -> bool {
        self.seen.capped || self.news || self.finding.is_some()
    }

    fn mark(&self) -> Mark {
        let mut standings = [Standing::default(); MOST_LANES];
        for (standing, lane) in standings.iter_mut().zip(&self.lanes) {
            *standing = lane.now;
        }
        Mark { changes: self.memory.changes(), standings }
    }

    fn back_to(&mut self, mark: &Mark) {
        self.memory.back_to(mark.changes);
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            lane.now = mark.standings[number];
            lane.answers.truncate(lane.now.answers as usize);
            lane.steps.truncate(lane.now.answers as usize);
            self.tokens[number] = lane.now.token(number);
        }
    }

    /// Begins a turn, unless what would follow has been seen; then returns that.
    fn begin_turn(&mut self, lane: usize, budget: u8) -> Option<Reached> {
        if self.is_over() {
            return Some(Reached::default());
        }
        self.lanes[lane].now.set(WOKEN, false);
        self.tokens[lane] = self.lanes[lane].now.token(lane);
        let points = self.points.len();
        if let Err(mut reached) = self.meet(lane, budget) {
            reached[lane] = Reach::default();
            return Some(reached);
        }
        self.seen.turns += 1;
        let from = self.lanes[lane].answers.len();
        self.turns.push(Turn { from, points, ..Turn::new(lane, Mode::Watched, budget) });
        None
    }

    /// Ends a turn: what followed is now known for the states on its way.
    fn end_turn(&mut self) -> Reached {
        let turn = self.turns.pop().expect("somebody ran");
        let mut all = Reached::default();
        while self.points.len() > turn.points {
            let Some(Point { place, reached }) = self.points.pop() else { break };
            merge(&mut all, &reached);
            self.visited.reach(place, turn.lane, &all);
        }
        all[turn.lane] = Reach::default();
        all
    }

    /// Records that the running lane has come to its end.
    fn lane_done(&mut self, left: Left) -> Done {
        if self.mode() != Mode::Watched || self.is_over() {
            return Done::Nothing;
        }
        let running = self.running();
        let lane = &mut self.lanes[running];
        lane.now = Standing::done(left.hash(), lane.now.answers);
        lane.left = left;
        self.tokens[running] = lane.now.token(running);
        if self.lanes.iter().any(|lane| !lane.now.is(DONE)) {
            return Done::HandOver;
        }
        self.seen.schedules += 1;
        if self.ends.meet(self.state(), 0, 0).is_err() {
            return Done::Nothing;
        }
        self.seen.ends += 1;
        self.seen.sum = self.seen.sum.wrapping_add(self.state());
        Done::All(self.lanes.iter().map(|lane| lane.left.clone()).collect())
    }

    #[inline]
    fn access(&mut self, place: usize, step: Step) -> Next {
        let turn = self.turns.last_mut().expect("somebody runs");
        if turn.mode == Mode::Watched
            && let Some(&answer) = self.lanes[turn.lane].answers.get(turn.position)
        {
            turn.position += 1;
            if self.known[place].0.see(turn.lane, step) {
                turn.pending.clear();
                turn.begins = false;
            }
            return Next::Answer(answer);
        }
        self.access_anew(place, step)
    }

    fn access_anew(&mut self, place: usize, step: Step) -> Next {
        let is_over = self.is_over();
        let turn = self.turn();
        let running = turn.lane;
        if turn.mode == Mode::Watched {
            if is_over {
                turn.mode = Mode::Unwatched;
            } else if self.known[place].0.see(running, step)
                && let Some((mark, lane, budget)) = self.other_turn()
            {
                return Next::Try(mark, lane, budget);
            }
        }
        let turn = self.turn();
        turn.steps += 1;
        let (mode, steps) = (turn.mode, turn.steps);
        if mode != Mode::Aside && steps > TOO_MANY {
            if mode != Mode::Scout {
                self.found(Violation::Stuck { lane: running, steps: TOO_MANY.into() });
            }
            return Next::Stop;
        }
        if mode == Mode::Watched {
            return Next::Answer(self.step(place, step));
        }
        let (found, wrote) = self.memory.perform(place, step);
        if mode == Mode::Scout {
            self.users[place].add(running, wrote);
        }
        Next::Answer(found)
    }

    /// Returns a lane to be tried first, before a visible step.
    fn other_turn(&mut self) -> Option<(Mark, usize, u8)> {
        let turn = self.turn();
        if std::mem::take(&mut turn.fresh) {
            return None;
        }
        let (running, budget, others) = (turn.lane, turn.budget, turn.others);
        if others == 0 && !self.come_by(running, budget) {
            return None;
        }
        if budget == 0 {
            return None;
        }
        let mark = self.mark();
        let next = (others..self.lanes.len()).find(|&other| self.matters(other, &mark));
        self.turn().others = next.map_or(0, |lane| lane + 1);
        next.map(|lane| (mark, lane, budget - 1))
    }

    /// Passes a state. Returns `false` if what follows has been seen.
    fn come_by(&mut self, running: usize, budget: u8) -> bool {
        let lane = &self.lanes[running];
        self.tokens[running] = lane.now.token(running);
        let often = if self.in_full {
            1
        } else if budget == 0 {
            8
        } else {
            2
        };
        if !lane.now.answers.is_multiple_of(often) {
            return true;
        }
        if let Err(reached) = self.meet(running, budget) {
            self.reached(&reached);
            self.turn().mode = Mode::Unwatched;
            return false;
        }
        true
    }

    /// Meets a state. Returns `Err` with what followed if it was met before.
    fn meet(&mut self, running: usize, budget: u8) -> Result<(), Reached> {
        let states = self.visited.len();
        let place = self.visited.meet(mix(self.state(), running as u64), budget, running)?;
        self.seen.states += (self.visited.len() - states) as u64;
        self.seen.capped |= self.seen.states >= self.most_states;
        self.points.push(Point { place, reached: Reached::default() });
        Ok(())
    }

    /// Returns the hash of what the words hold and where the lanes are.
    fn state(&self) -> u64 {
        self.tokens.iter().fold(self.memory.hash(), |sum, &token| sum.wrapping_add(token))
    }

    /// Returns whether a lane can take the next turn, in a schedule that is not left out.
    fn may_go_on(&self, standing: &Standing) -> bool {
        !standing.is(DONE) && (!standing.is(BEGUN) || standing.is(WOKEN) || self.in_full)
    }

    /// Returns whether schedules in which another lane goes on here may differ from those in which it went on before
    /// the last step.
    fn matters(&self, other: usize, mark: &Mark) -> bool {
        let turn = &self.turns[self.turns.len() - 1];
        let same = |trial: &Trial| {
            !self.in_full
                && trial.woken == mark.woken()
                && !trial.reach.meets(mark.standings[turn.lane].last())
        };
        other != turn.lane
            && self.may_go_on(&mark.standings[other])
            && !turn.tried[other].as_ref().is_some_and(same)
    }

    /// Records that another lane went on in place of the running one.
    fn tried(&mut self, other: usize, reached: Reached) {
        let woken = self.mark().woken();
        let turn = self.turn();
        turn.tried[other] = Some(Trial { reach: reached[turn.lane], woken });
        self.reached(&reached);
    }

    /// Records what followed the last point.
    fn reached(&mut self, reached: &Reached) {
        merge(&mut self.points.last_mut().expect("a turn begins with one").reached, reached);
    }

    /// Takes a step, and remembers it.
    fn step(&mut self, place: usize, step: Step) -> u64 {
        let running = self.running();
        let (known, word) = self.known[place];
        let seen = known.see(running, step);
        let event = seen && self.happen();
        let (found, wrote) = self.memory.perform(place, step);
        let users = &mut self.users[place];
        users.add(running, wrote);
        self.news |= !self.in_full && *users != known && users.are_in_touch();
        let answer = if let Step::Store(_) = step { 0 } else { found };
        self.turn().position += 1;
        let lane = &mut self.lanes[running];
        lane.answers.push(answer);
        if self.telling {
            lane.steps.push((place as u16, step));
        }
        lane.now.answers += 1;
        lane.now.set(BEGUN, true);
        if seen {
            let step = Footprint { word, wrote, event };
            lane.now.take(step, answer);
            self.tell(step);
        }
        answer
    }
}

impl Mark {
    fn woken(&self) -> [bool; MOST_LANES] {
        self.standings.map(|standing| standing.is(WOKEN))
    }
}
