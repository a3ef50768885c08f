//! Replays traces: what Linux asked of its page allocator, and what a program asked of malloc.

use std::path::{Path, PathBuf};

use testkit::{BackEnd, Block, Violation};

use crate::clock::Clock;
use crate::crew::Crew;
use crate::replay::course::Course;
use crate::replay::{Events, Replayed};
use crate::suite::args::Suite;
use crate::suite::gauge::{Gauge, measured};
use crate::suite::on_heap::HeapRound;
use crate::suite::round::Part;
use crate::suite::worker::{LONG, Setting};
use crate::trace::{Action, Event, HeapEvent, HeapTrace, Trace, TraceError};

/// Reads the page traces that are asked for.
pub fn page_traces(args: &Suite) -> Result<Vec<Replayed>, TraceError> {
    loaded("--traces", args.traces.iter(), Trace::sample, Trace::open, Events::Pages)
}

/// Reads the heap trace that is asked for.
pub fn heap_traces(args: &Suite) -> Result<Vec<Replayed>, TraceError> {
    loaded("--heap-trace", args.heap_trace.iter(), HeapTrace::sample, HeapTrace::open, Events::Heap)
}

fn loaded<'a, T>(
    option: &str,
    paths: impl Iterator<Item = &'a PathBuf>,
    sample: fn() -> Result<T, TraceError>,
    open: fn(&Path) -> Result<T, TraceError>,
    events: fn(T) -> Events,
) -> Result<Vec<Replayed>, TraceError> {
    let asked = paths.map(|path| {
        let asked = Some([option.into(), path.into()]);
        Ok(Replayed { asked, events: events(open(path)?) })
    });
    let asked = asked.collect::<Result<Vec<_>, _>>()?;
    if asked.is_empty() {
        return Ok(vec![Replayed { asked: None, events: events(sample()?) }]);
    }
    Ok(asked)
}

/// Memory to allocate from: blocks are named by their places in a trace.
trait Memory: Sync {
    fn alloc(&self, lane: usize, place: u32) -> Option<u64>;
    /// Frees the block of a place. Returns `false` if that is refused.
    fn free(&self, lane: usize, place: u32, at: u64) -> bool;
    /// Resizes the block of one place into that of another.
    fn resize(&self, lane: usize, from: u32, at: u64, to: u32) -> Option<u64>;
}

/// Replays a heap trace, on as many threads as it had, or fewer, and then frees what it leaves. Before that the same
/// threads replay it once untimed: no heap has to fetch memory from the system while it is timed.
pub fn replay_heap(round: &HeapRound<'_>) -> Vec<Part> {
    let trace = round.trace.expect("a replay has a trace");
    let played = Play {
        memory: round,
        name: trace.name,
        events: &trace.events,
        places: trace.places.len(),
        warms_up: true,
        setting: round.setting,
        clock: round.clock,
    };
    let (parts, left) = played.run();
    left.into_iter().for_each(|(place, at)| {
        round.free(0, place, at);
    });
    parts
}

impl Memory for HeapRound<'_> {
    fn alloc(&self, _lane: usize, place: u32) -> Option<u64> {
        self.heap.alloc(self.layout(place))
    }

    fn free(&self, _lane: usize, place: u32, at: u64) -> bool {
        self.heap.free(at, self.layout(place));
        true
    }

    fn resize(&self, _lane: usize, from: u32, at: u64, to: u32) -> Option<u64> {
        self.heap.resize(at, self.layout(from), self.layout(to).size())
    }
}

/// Replays a page trace, on as many threads as it had CPUs, or fewer. Also returns the blocks that it leaves.
pub fn replay(
    back_end: &dyn BackEnd,
    trace: &Trace,
    setting: Setting,
    clock: &Clock,
) -> (Vec<Part>, Vec<Block>) {
    let event = |event: &Event| {
        let place = Some(event.block as u32);
        let (from, to) = if event.action == Action::Alloc { (None, place) } else { (place, None) };
        HeapEvent { thread: event.cpu, from, to }
    };
    let events: Vec<HeapEvent> = trace.events.iter().map(event).collect();
    let pages = Pages { back_end, orders: &trace.orders };
    let (name, places) = (trace.name, trace.orders.len());
    let (memory, events) = (&pages, &events);
    let play = Play { memory, name, events, places, warms_up: false, setting, clock };
    let (parts, left) = play.run();
    let block = |(place, index)| Block { index, order: pages.order(place) };
    (parts, left.into_iter().map(block).collect())
}

/// Blocks of pages.
struct Pages<'a> {
    back_end: &'a dyn BackEnd,
    orders: &'a [u8],
}

impl Pages<'_> {
    fn order(&self, place: u32) -> u32 {
        u32::from(self.orders[place as usize])
    }
}

impl Memory for Pages<'_> {
    fn alloc(&self, lane: usize, place: u32) -> Option<u64> {
        self.back_end.alloc(lane, self.order(place))
    }

    fn free(&self, lane: usize, place: u32, at: u64) -> bool {
        self.back_end.free(lane, at, self.order(place)).is_ok()
    }

    fn resize(&self, _lane: usize, _from: u32, _at: u64, _to: u32) -> Option<u64> {
        None
    }
}

/// A replay of a trace on a memory.
struct Play<'a, M> {
    memory: &'a M,
    name: &'static str,
    events: &'a [HeapEvent],
    places: usize,
    /// Whether each thread replays its part before it is timed, too.
    warms_up: bool,
    setting: Setting,
    clock: &'a Clock,
}

impl<M: Memory> Play<'_, M> {
    /// Replays the whole trace, or as much of it as there is time for. Also returns what is left, by places.
    fn run(&self) -> (Vec<Part>, Vec<(u32, u64)>) {
        let mut lanes = vec![Vec::new(); self.setting.threads];
        for &event in self.events {
            lanes[event.thread % self.setting.threads].push(event);
        }
        let course = Course::new(&lanes, self.places);
        let before = self.warms_up.then(|| Course::new(&lanes, self.places));
        let played = course.run(|crew, number, events| {
            if let Some(before) = &before {
                self.warm_up(before, crew, number, events);
            }
            self.lane(&course, number, self.setting).run(events)
        });
        let parts =
            played.into_iter().map(|part| part.unwrap_or_else(|panic| self.broken(&*panic)));
        (parts.collect(), self.left(&course))
    }

    fn lane<'l>(
        &'l self,
        course: &'l Course<'l, HeapEvent>,
        number: usize,
        setting: Setting,
    ) -> Lane<'l, M> {
        let gauge = Gauge::new(setting, self.clock).with_times(LONG);
        Lane { play: self, course, number, gauge, refused: 0, wrong_frees: 0 }
    }

    /// Replays a thread's part, and frees what all threads have left.
    fn warm_up(
        &self,
        course: &Course<'_, HeapEvent>,
        crew: &Crew,
        number: usize,
        events: &[HeapEvent],
    ) {
        let _stop = course.stop_on_panic();
        let mut lane = self.lane(course, number, Setting { latency: false, ..self.setting });
        lane.gauge.start();
        lane.follow(events);
        crew.wait_asleep();
        if number == 0 {
            self.left(course).into_iter().for_each(|(place, at)| {
                self.memory.free(0, place, at);
            });
        }
        crew.wait_asleep();
    }

    /// Returns what is left at the end, by places.
    fn left(&self, course: &Course<'_, HeapEvent>) -> Vec<(u32, u64)> {
        let left = |place| Some((place, course.place(place).flatten()?));
        (0..self.places as u32).filter_map(left).collect()
    }

    /// Returns the part of a thread that panicked.
    fn broken(&self, panic: &(dyn std::any::Any + Send)) -> Part {
        let gauge = Gauge::new(self.setting, self.clock);
        Part {
            stretches: vec![gauge.stop(self.name.into(), 0, false)],
            broken: Some(Violation::from_panic(panic).to_string()),
            ..Part::default()
        }
    }
}

/// A thread of a replay.
struct Lane<'a, M> {
    play: &'a Play<'a, M>,
    course: &'a Course<'a, HeapEvent>,
    number: usize,
    gauge: Gauge<'a>,
    refused: u64,
    wrong_frees: u64,
}

impl<M: Memory> Lane<'_, M> {
    fn run(mut self, events: &[HeapEvent]) -> Part {
        self.gauge.start();
        let ops = measured(|| self.follow(events));
        let complete = !self.course.is_stopped();
        let stretches = vec![self.gauge.stop(self.play.name.into(), ops, complete)];
        Part { stretches, refused: self.refused, wrong_frees: self.wrong_frees, ..Part::default() }
    }

    /// Carries the events out. Returns for how many there was something to do.
    fn follow(&mut self, events: &[HeapEvent]) -> u64 {
        let mut ops = 0;
        for (&event, number) in events.iter().zip(1_u32..) {
            ops += u64::from(self.carry_out(event));
            if number.is_multiple_of(32) && self.gauge.is_late() {
                self.course.stop();
            }
            if self.course.is_stopped() {
                break;
            }
        }
        ops
    }

    /// Carries out an event, or tries to. Returns `false` if there is nothing to do because an allocation was refused.
    fn carry_out(&mut self, HeapEvent { from, to, .. }: HeapEvent) -> bool {
        let (memory, lane, gauge) = (self.play.memory, self.number, &mut self.gauge);
        let old = from.and_then(|from| Some((from, self.course.wait(from)?)));
        let (new, left) = match (old, to) {
            (None, None) => return false,
            (Some((from, at)), None) => {
                let freed = gauge.time(|| memory.free(lane, from, at));
                self.wrong_frees += u64::from(!freed);
                (None, freed)
            }
            (Some((from, at)), Some(to)) => {
                let new = gauge.time(|| memory.resize(lane, from, at, to));
                (new, new.is_some())
            }
            (None, Some(to)) => (gauge.time(|| memory.alloc(lane, to)), false),
        };
        // A block that is found in a place at the end is left over.
        if let (Some((from, _)), true) = (old, left) {
            self.course.publish(from, None);
        }
        if let Some(to) = to {
            self.refused += u64::from(new.is_none());
            self.course.publish(to, new);
        }
        true
    }
}
