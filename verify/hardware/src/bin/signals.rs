//! `signals SYSTEM SIGNALS`: this many handlers call the allocator on the lane whose calls they interrupt. They make
//! every call of nbbs; of the other systems they allocate and free blocks.
//!
//! Timers send one in ten, which may come anywhere; for `thread-caches` they send all. The interrupted thread raises
//! the others itself before an atomic step, at random: every place between two steps is met, and handlers are
//! interrupted by handlers in the same way.
//!
//! Ends with 3 if something was found: a unit handed out twice, memory lost, or a thread that never goes on, because
//! its handler waits for what it has interrupted; in a patient, if that is what the patient is known for. Ends with 0
//! if nothing was found, with 4 if a patient that is known for something else waits.

use std::process::{ExitCode, exit};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hardware::{Actor, find, random, with_hook};
use nix::sys::signal::{SigEvent, SigSet, SigevNotify, Signal, raise};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use testkit::{Symptom, Violation};

/// The signals. The others may interrupt a handler of one of them.
const SIGNALS: [Signal; 3] = [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGWINCH];

/// The number of handlers that have not returned.
static DEPTH: AtomicUsize = AtomicUsize::new(0);

/// The number of handlers that have returned.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// The number of operations of the thread and its handlers.
static OPERATIONS: AtomicU64 = AtomicU64::new(0);

/// What the handlers work on; null outside a run.
static STAGE: AtomicPtr<Stage<'static>> = AtomicPtr::new(std::ptr::null_mut());

struct Stage<'a> {
    actor: &'a dyn Actor,
    wrong: AtomicBool,
    /// The first thing that was found wrong.
    first: Mutex<Option<Violation>>,
}

fn main() -> ExitCode {
    let arguments = testkit::arguments();
    let parsed = match &arguments[..] {
        [name, signals] => find(name).zip(signals.parse::<u64>().ok()),
        _ => None,
    };
    let Some((system, signals)) = parsed else {
        eprintln!("usage: signals SYSTEM SIGNALS");
        return ExitCode::from(2);
    };
    for signal in SIGNALS {
        // SAFETY: the handler calls the allocator, which has to allow it (this is what is tested), and uses atomics, an
        // initialised thread-local and nothing else while all is well.
        let registered = unsafe { signal_hook_registry::register(signal as i32, handle) };
        registered.expect("these signals can be handled");
    }
    // The signals are for the working thread: the watching thread begins with them blocked.
    let ours = SIGNALS.into_iter().collect::<SigSet>();
    ours.thread_block().expect("signals can be blocked");
    thread::spawn(|| watch(system.under_signals));
    ours.thread_unblock().expect("signals can be unblocked");
    let arenas: &[u64] = match system.name {
        _ if system.pool => &[3, 8],
        "nbbs" => &[4, 32, 33, 64, 100, 600, 9000],
        "caches" | "thread-caches" => &[32, 64, 600, 9000],
        "nb4" => &[32],
        // The longer the path, the more places there are to be interrupted.
        _ => &[16, 64],
    };
    let rounds = 200;
    for number in 0..rounds {
        let units = arenas[number as usize / 2 % arenas.len()];
        let sent = system.unhooked || number % 2 == 0;
        let share = match system.unhooked {
            true => signals / rounds,
            false => signals / rounds * if sent { 1 } else { 9 } / 5,
        };
        let until = HANDLED.load(Ordering::Relaxed) + share + 1;
        let result = system.lend_actor(units, !sent, &mut |actor| run(actor, until, sent));
        if let Err(violation) = result {
            eprintln!("{}: {violation}", system.name);
            if system.under_signals.is_none_or(|symptom| symptom.is_shown_by(&violation)) {
                return ExitCode::from(3);
            }
        }
    }
    let [handled, operations] = [&HANDLED, &OPERATIONS].map(|count| count.load(Ordering::Relaxed));
    println!("{handled} signals, {operations} operations");
    ExitCode::SUCCESS
}

/// Acts until `until` signals have been handled.
fn run(actor: &dyn Actor, until: u64, sent: bool) -> Result<(), Violation> {
    let stage = Stage { actor, wrong: AtomicBool::new(false), first: Mutex::new(None) };
    STAGE.store((&raw const stage).cast_mut().cast(), Ordering::Release);
    let done = || HANDLED.load(Ordering::Relaxed) >= until || stage.wrong.load(Ordering::Relaxed);
    let work = || {
        while !done() {
            stage.act();
        }
    };
    if sent {
        let _timers = timers();
        work();
    } else {
        with_hook(raise_sometimes, work);
    }
    // A signal that is still under way finds no stage.
    STAGE.store(std::ptr::null_mut(), Ordering::Release);
    let first = stage.first.into_inner().unwrap_or_else(PoisonError::into_inner);
    first.map_or(Ok(()), Err)
}

/// Creates timers that send the signals periodically, so that their handlers interrupt each other, too.
fn timers() -> [Timer; SIGNALS.len()] {
    let mut interval = Duration::from_micros(25);
    SIGNALS.map(|signal| {
        let event = SigEvent::new(SigevNotify::SigevSignal { signal, si_value: 0 });
        let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, event).expect("there are timers");
        interval += Duration::from_micros(14);
        let every = Expiration::IntervalDelayed(interval.into(), interval.into());
        timer.set(every, TimerSetTimeFlags::empty()).expect("the interval is in order");
        timer
    })
}

fn handle() {
    // SAFETY: the stage outlives the run, and the only interrupted thread takes it away: `watch` is not interrupted.
    if let Some(stage) = unsafe { STAGE.load(Ordering::Acquire).as_ref() } {
        DEPTH.fetch_add(1, Ordering::Relaxed);
        for _ in 0..1 + random() % 4 {
            stage.act();
        }
        DEPTH.fetch_sub(1, Ordering::Relaxed);
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Raises one of the signals before one access in a few; more often in a handler, so that handlers pile up.
fn raise_sometimes() {
    let drawn = random();
    let one_in = [48, 12, 12, u64::MAX][DEPTH.load(Ordering::Relaxed).min(3)];
    if drawn.is_multiple_of(one_in) {
        raise(SIGNALS[(drawn >> 8) as usize % SIGNALS.len()]).expect("the signal exists");
    }
}

impl Stage<'_> {
    fn act(&self) {
        OPERATIONS.fetch_add(1, Ordering::Relaxed);
        if let Err(violation) = self.actor.act() {
            self.wrong.store(true, Ordering::Relaxed);
            // It never waits: the interrupted code may be recording another violation.
            if let Ok(mut first) = self.first.try_lock() {
                first.get_or_insert(violation);
            }
        }
    }
}

/// Ends the process if nothing moves, since the main thread cannot say so itself.
fn watch(known_for: Option<Symptom>) {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        thread::sleep(Duration::from_millis(100));
        let operations = OPERATIONS.load(Ordering::Relaxed);
        if operations != last {
            (last, since) = (operations, Instant::now());
        } else if since.elapsed() > Duration::from_secs(3) {
            eprintln!("a handler waits for what it has interrupted");
            exit(if known_for.is_none_or(|symptom| symptom == Symptom::Wait) { 3 } else { 4 });
        }
    }
}
