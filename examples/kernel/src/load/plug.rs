//! Memory that comes and goes while all CPUs work: added for the first time, taken offline, given back.

use nbbs_adapters::FRAME_SIZE;

use crate::memory::{Context, Held, Holder, memory};
use crate::random::Random;
use crate::{arch, cpus, report};

/// The changes of the memory, one after the other.
pub struct Plug {
    random: Random,
    is_added: bool,
    /// A range that is offline, and until when.
    offline: Option<(Held, u64)>,
    /// How often a range was taken offline and given back.
    pub rounds: u64,
    /// How often a range could not be taken, as one of its frames was held.
    pub refused: u64,
}

/// The ticks for which a range stays offline.
const TICKS_OFFLINE: u64 = arch::NMI_HERTZ as u64 / 20;
/// The orders of the ranges that are taken offline.
const SMALLEST: u32 = 3;
const LARGEST: u32 = 10;

impl Plug {
    /// Creates a state in which nothing has been done.
    pub const fn new() -> Self {
        let random = Random::new(u64::MAX);
        Self { random, is_added: false, offline: None, rounds: 0, refused: 0 }
    }

    /// Does what is next. `now` is the number of ticks since the load began.
    pub fn step(&mut self, now: u64) {
        if !self.is_added && now > u64::from(arch::NMI_HERTZ) {
            self.is_added = true;
            add_kept_back();
        }
        match self.offline.take() {
            Some((range, until)) if now < until => self.offline = Some((range, until)),
            Some((range, _)) => {
                give_back(range);
                self.rounds += 1;
            }
            None => self.take_offline(now),
        }
    }

    /// Takes a range offline that nobody holds at this moment. A kernel would first move its contents elsewhere.
    fn take_offline(&mut self, now: u64) {
        let order = SMALLEST + self.random.below(u64::from(LARGEST - SMALLEST) + 1) as u32;
        let start = self.random.below(memory().buddy().units() >> order) << order;
        let range = start..start + (1 << order);
        match cpus::this().operation(|| memory().buddy().reserve(range)) {
            Ok(()) => {
                let held = Held::of(start, order, Holder::here(Context::Offline));
                held.note_taken();
                self.offline = Some((held, now + TICKS_OFFLINE));
            }
            Err(_) => self.refused += 1,
        }
    }

    /// Ends it: gives back what is offline.
    pub fn end(&mut self) {
        if let Some((range, _)) = self.offline.take() {
            give_back(range);
        }
    }
}

/// Adds the memory that was kept back at boot: first the direct map has it, then the arena.
fn add_kept_back() {
    let frames = memory().kept_back();
    arch::map_memory(frames.start * FRAME_SIZE..frames.end * FRAME_SIZE);
    cpus::this()
        .operation(|| memory().buddy().release(frames.clone()))
        .expect("nobody has had these frames");
    report::added(frames.end - frames.start);
}

fn give_back(range: Held) {
    let frames = range.frames();
    range.note_given();
    cpus::this()
        .operation(|| memory().buddy().release(frames))
        .expect("the frames are offline, and ours");
}
