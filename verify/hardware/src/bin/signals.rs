//! `signals SYSTEM SIGNALS`: handlers that allocate and free on the lane whose allocations and frees they
//! interrupt, so many times.
//!
//! One in fifty is sent by a second thread and comes wherever it comes. The others the interrupted thread raises
//! itself before an atomic step, at random: every place between two steps is met, and handlers are interrupted
//! by handlers in the same way.
//!
//! Ends with 0 if nothing was found, with 3 if something was: a unit handed out twice, or a thread that
//! never goes on, because what its handler waits for is what it has interrupted.

use std::process::{ExitCode, exit};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hardware::{find, random, with_hook};
use nix::sys::pthread::{pthread_kill, pthread_self};
use nix::sys::signal::{Signal, raise};
use testkit::{BackEnd, Block, Oracle, Violation, check_whole};

/// A handler of one of them may be interrupted by the others.
const SIGNALS: [Signal; 3] = [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGWINCH];

/// Blocks on their way between the thread and its handlers; 0 is none.
static SLOTS: [AtomicU64; 24] = [const { AtomicU64::new(0) }; 24];

/// Handlers that have not.
static DEPTH: AtomicUsize = AtomicUsize::new(0);

/// Handlers that have returned.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Operations of anybody.
static OPERATIONS: AtomicU64 = AtomicU64::new(0);

/// What the handlers work on; null outside a run.
static STAGE: AtomicPtr<Stage<'static>> = AtomicPtr::new(std::ptr::null_mut());

struct Stage<'a> {
    back_end: &'a dyn BackEnd,
    oracle: &'a Oracle,
    /// So few that what is in use comes and goes.
    slots: &'static [AtomicU64],
    wrong: AtomicBool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match &arguments[..] {
        [name, signals] => find(name).zip(signals.parse::<u64>().ok()),
        _ => None,
    };
    let Some((system, signals)) = parsed else {
        eprintln!("usage: signals SYSTEM SIGNALS");
        return ExitCode::from(2);
    };
    for signal in SIGNALS {
        // SAFETY: the handler calls the back-end, which has to bear it (that is the question), and uses
        // atomics, an initialised thread-local and nothing else while all is well.
        let registered = unsafe { signal_hook_registry::register(signal as i32, handle) };
        registered.expect("these signals can be handled");
    }
    thread::spawn(watch);
    let arenas: &[u64] = match system.name {
        _ if system.pool => &[3, 8],
        "nbbs" => &[4, 32, 33, 64, 100, 600, 9000],
        "nb4" => &[32],
        // The longer the way up, the more places to be interrupted at.
        _ => &[16, 64],
    };
    let rounds = 200;
    for number in 0..rounds {
        let units = arenas[number as usize / 2 % arenas.len()];
        let sent = number % 2 == 0;
        let share = signals / rounds * if sent { 1 } else { 49 } / 25;
        let until = HANDLED.load(Ordering::Relaxed) + share + 1;
        let result = system.lend(units, !sent, &mut |back_end| run(back_end, until, sent));
        if let Err(violation) = result {
            eprintln!("{}: {violation}", system.name);
            return ExitCode::from(3);
        }
    }
    let [handled, operations] = [&HANDLED, &OPERATIONS].map(|count| count.load(Ordering::Relaxed));
    println!("{handled} signals, {operations} operations");
    ExitCode::SUCCESS
}

/// Works on one arena until so many signals have been handled.
fn run(back_end: &dyn BackEnd, until: u64, sent: bool) -> Result<(), Violation> {
    let oracle = Oracle::of(back_end);
    let slots = &SLOTS[..(back_end.units() as usize * 3 / 4).clamp(3, SLOTS.len())];
    let stage = Stage { back_end, oracle: &oracle, slots, wrong: AtomicBool::new(false) };
    STAGE.store((&raw const stage).cast_mut().cast(), Ordering::Release);
    let done = || HANDLED.load(Ordering::Relaxed) >= until || stage.wrong.load(Ordering::Relaxed);
    let main = pthread_self();
    thread::scope(|scope| {
        if sent {
            scope.spawn(|| {
                while !done() {
                    let signal = SIGNALS[random() as usize % SIGNALS.len()];
                    pthread_kill(main, signal).expect("the main thread lives");
                    // Long enough, now and then, for a handler to be interrupted in its middle.
                    (0..random() & 255).for_each(|_| std::hint::spin_loop());
                }
            });
        }
        let work = || {
            while !done() {
                stage.operate();
            }
        };
        if sent { work() } else { with_hook(raise_sometimes, work) }
    });
    // A signal that is still on its way finds no stage.
    STAGE.store(std::ptr::null_mut(), Ordering::Release);
    let end = || {
        for slot in &SLOTS {
            free(back_end, &oracle, slot.swap(0, Ordering::Relaxed))?;
        }
        oracle.check_empty()?;
        check_whole(back_end, &oracle)
    };
    if stage.wrong.load(Ordering::Relaxed) {
        SLOTS.iter().for_each(|slot| slot.store(0, Ordering::Relaxed));
        return Err(Violation::Audit("a handler or the thread met a violation".to_string()));
    }
    end()
}

fn handle() {
    // SAFETY: the stage outlives the run, and is taken away by the only thread that is interrupted.
    if let Some(stage) = unsafe { STAGE.load(Ordering::Acquire).as_ref() } {
        DEPTH.fetch_add(1, Ordering::Relaxed);
        for _ in 0..1 + random() % 4 {
            stage.operate();
        }
        DEPTH.fetch_sub(1, Ordering::Relaxed);
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Before one access in a few, one of the signals; sooner in a handler, so that handlers pile up.
fn raise_sometimes() {
    let drawn = random();
    let one_in = [48, 12, 12, u64::MAX][DEPTH.load(Ordering::Relaxed).min(3)];
    if drawn.is_multiple_of(one_in) {
        raise(SIGNALS[(drawn >> 8) as usize % SIGNALS.len()]).expect("the signal exists");
    }
}

impl Stage<'_> {
    /// Allocates a block into a slot, or frees what is there.
    fn operate(&self) {
        OPERATIONS.fetch_add(1, Ordering::Relaxed);
        let drawn = random();
        let slot = &self.slots[drawn as usize % self.slots.len()];
        let orders = u64::from(self.back_end.max_order()) + 1;
        // Small ones mostly, the largest now and then.
        let order = if drawn & 0x300 == 0 { orders - 1 } else { (drawn >> 16) % orders / 2 } as u32;
        let result = match slot.swap(0, Ordering::Relaxed) {
            0 => match self.back_end.alloc(0, order) {
                Some(index) => self.oracle.take(0, index, order).map(|block| {
                    let other = slot.swap(encode(block), Ordering::Relaxed);
                    // A handler has filled the slot meanwhile.
                    free(self.back_end, self.oracle, other)
                }),
                None => Ok(Ok(())),
            },
            block => Ok(free(self.back_end, self.oracle, block)),
        };
        if !matches!(result, Ok(Ok(()))) {
            self.wrong.store(true, Ordering::Relaxed);
        }
    }
}

fn free(back_end: &dyn BackEnd, oracle: &Oracle, word: u64) -> Result<(), Violation> {
    if word == 0 {
        return Ok(());
    }
    let block = Block { index: word >> 8, order: (word & 127) as u32 };
    oracle.give(block)?;
    back_end.free(0, block.index, block.order).map_err(|_| Violation::FreeAccepted { block })
}

/// Not 0, whatever the block.
fn encode(block: Block) -> u64 {
    block.index << 8 | 128 | u64::from(block.order)
}

/// Ends the process if nothing moves: the main thread cannot say so itself.
fn watch() {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        thread::sleep(Duration::from_millis(100));
        let operations = OPERATIONS.load(Ordering::Relaxed);
        if operations != last {
            (last, since) = (operations, Instant::now());
        } else if since.elapsed() > Duration::from_secs(3) {
            eprintln!("a handler waits for what it has interrupted");
            exit(3);
        }
    }
}
