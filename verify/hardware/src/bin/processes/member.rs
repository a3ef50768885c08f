//! Runs a process that acts on the system until it is told to stop, or dies.

use std::cell::Cell;
use std::io::stdin;
use std::os::fd::AsFd;
use std::process::exit;
use std::sync::atomic::Ordering;

use hardware::{Shared, marks, with_hook};
use nix::sys::signal::{Signal, raise};
use testkit::Violation;

use crate::End;

/// How a member ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It ends when it is told to.
    Survives,
    /// Another process kills it.
    IsKilled,
    /// It kills itself before this step.
    Dies(u64),
    /// It kills itself when it has marked this many words, before it does anything else.
    DiesAtMark(u64),
    /// It stops before this step; if it is continued, it kills itself after as many more steps.
    Stops(u64),
}

impl Fate {
    /// Encodes it as an argument of a command.
    pub fn encode(self) -> String {
        match self {
            Self::Survives => "survives".to_string(),
            Self::IsKilled => "killed".to_string(),
            Self::Dies(step) => format!("dies:{step}"),
            Self::DiesAtMark(marks) => format!("marks:{marks}"),
            Self::Stops(step) => format!("stops:{step}"),
        }
    }

    fn decode(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None if text == "survives" => Some(Self::Survives),
            None if text == "killed" => Some(Self::IsKilled),
            Some(("dies", step)) => step.parse().ok().map(Self::Dies),
            Some(("marks", marks)) => marks.parse().ok().map(Self::DiesAtMark),
            Some(("stops", step)) => step.parse().ok().map(Self::Stops),
            _ => None,
        }
    }
}

/// More steps than any operation takes beside others that go on: a process that takes more waits for one that does not.
const MANY: u64 = 20_000_000;

thread_local! {
    static FATE: Cell<Fate> = const { Cell::new(Fate::Survives) };
    /// The steps of the current operation for a survivor, and of the whole life for others.
    static STEPS: Cell<u64> = const { Cell::new(0) };
    static SYSTEM: Cell<&'static str> = const { Cell::new("") };
}

/// Acts on the system in the memory that is this process's standard input.
pub fn run(system: &str, units: &str, who: &str, fate: &str) -> Result<(), End> {
    let parsed = (|| Some((units.parse().ok()?, who.parse().ok()?, Fate::decode(fate)?)))();
    let (units, who, fate) = parsed.ok_or_else(|| End::NotRun("no such member".to_string()))?;
    let file = stdin().as_fd().try_clone_to_owned();
    let file = file.map_err(|error| End::NotRun(error.to_string()))?;
    let shared = Shared::open(&file.into(), units);
    let member = shared.member(who);
    let hooked = fate != Fate::IsKilled;
    FATE.set(fate);
    alone(system, || {
        shared.lend(system, who, hooked, &mut |actor| {
            while !shared.is_stopped() {
                if fate == Fate::Survives {
                    STEPS.set(0);
                }
                actor.act()?;
                // Relaxed: it is only a count.
                member.operations.fetch_add(1, Ordering::Relaxed);
            }
            actor.give_back()
        })
    })
}

/// Calls `body` with the steps of each operation counted.
pub fn alone(system: &str, body: impl FnOnce() -> Result<(), Violation>) -> Result<(), End> {
    SYSTEM.set(system.to_string().leak());
    STEPS.set(0);
    with_hook(count, body).map_err(|violation| End::of(system, &violation))
}

/// Called before a step.
fn count() {
    let steps = STEPS.get();
    STEPS.set(steps + 1);
    match FATE.get() {
        Fate::Survives | Fate::IsKilled if steps < MANY => {}
        Fate::Survives | Fate::IsKilled => {
            let end = End::of(SYSTEM.get(), &Violation::Stuck { lane: 0, steps });
            exit(i32::from(end.status()));
        }
        Fate::Dies(step) if steps == step => die(Signal::SIGKILL),
        Fate::DiesAtMark(words) if marks() == words => die(Signal::SIGKILL),
        Fate::Stops(step) if steps == step => die(Signal::SIGSTOP),
        Fate::Stops(step) if steps == 2 * step + 1 => die(Signal::SIGKILL),
        _ => {}
    }
}

fn die(signal: Signal) {
    raise(signal).expect("the signal exists");
}
