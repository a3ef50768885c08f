//! The life of one system: one or two processes throughout, and others that come and are killed.

use std::fmt;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hardware::{Shared, Stake, random};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::End;
use crate::aftermath;
use crate::member::{Fate, alone};

/// The number of operations that each survivor has to complete between two deaths.
const GO_ON: u64 = 30;

/// The time that a process may take for its first operation before it is killed, if that takes steps without an end.
const BIRTH: Duration = Duration::from_secs(1);

/// Steps are drawn below a power of two with an exponent of up to this: as many as an operation or two take, or a
/// hundred.
const STEPS_LOG2: u64 = 12;

/// The figures of what was run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// The number of systems.
    pub lives: u64,
    /// The number of processes that were killed.
    pub killed: u64,
    /// The number of those that were killed in the middle of a call.
    pub cut_short: u64,
    /// The number of those that another process killed, at any moment.
    pub at_once: u64,
    /// The number of processes that were stopped before.
    pub stopped: u64,
    /// The number of units that were lost, and of those that were at stake.
    pub lost: u64,
    at_stake: u64,
    /// The number of operations of the survivors.
    operations: u64,
}

impl Figures {
    /// Adds up both.
    pub fn and(self, other: Self) -> Self {
        Self {
            lives: self.lives + other.lives,
            killed: self.killed + other.killed,
            cut_short: self.cut_short + other.cut_short,
            at_once: self.at_once + other.at_once,
            stopped: self.stopped + other.stopped,
            lost: self.lost + other.lost,
            at_stake: self.at_stake + other.at_stake,
            operations: self.operations + other.operations,
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lives, killed, cut_short, at_once, stopped, lost, at_stake, operations } = self;
        write!(
            f,
            "{killed} processes killed in {lives} arenas, {cut_short} in a call, {at_once} of them by others; {stopped} \
             stopped; {lost} of {at_stake} units at stake lost; {operations} operations of survivors"
        )
    }
}

/// A system and the processes on it. The remaining processes are killed when it is dropped.
pub struct Life<'a> {
    system: &'a str,
    units: u64,
    file: File,
    shared: Shared,
    /// The processes, the survivors first.
    members: Vec<Child>,
    survivors: usize,
    figures: Figures,
    stakes: Vec<Stake>,
}

impl Drop for Life<'_> {
    fn drop(&mut self) {
        for member in &mut self.members {
            // A process that has ended cannot be killed.
            let _ = member.kill();
            let _ = member.wait();
        }
    }
}

impl<'a> Life<'a> {
    /// Starts a fresh system of `units` units, with `survivors` survivors at work.
    pub fn begin(system: &'a str, units: u64, survivors: usize) -> Result<Self, End> {
        let (file, shared) = Shared::create(units);
        let (members, stakes, figures) = (Vec::new(), Vec::new(), Figures::default());
        let mut life = Self { system, units, file, shared, members, survivors, figures, stakes };
        for _ in 0..survivors {
            life.join(Fate::Survives)?;
        }
        life.go_on()?;
        Ok(life)
    }

    /// Runs the given number of deaths, and checks what is left.
    pub fn live(mut self, deaths: u64) -> Result<Figures, End> {
        for number in 0..deaths {
            let step = random() % (1 << (1 + random() % STEPS_LOG2));
            self.one_more(match (number + deaths) % 4 {
                0 => Fate::IsKilled,
                1 => Fate::Stops(step),
                2 if self.system == "nbbs" => Fate::DiesAtMark(1 + random() % 16),
                _ => Fate::Dies(step),
            })?;
        }
        self.shared.stop();
        for who in 0..self.survivors {
            let status = self.members[who].wait().map_err(not_run)?;
            if !status.success() {
                return Err(ended(status));
            }
            self.figures.operations += self.done(who);
        }
        self.figures.lost = aftermath::check(self.system, &self.shared, &self.stakes)?;
        self.figures.lives = 1;
        Ok(self.figures)
    }

    /// Starts another process, which attaches, acts and dies.
    fn one_more(&mut self, fate: Fate) -> Result<(), End> {
        let who = self.join(fate)?;
        match fate {
            Fate::IsKilled => {
                let begun = Instant::now();
                let is_born = |life: &Self| life.done(who) > 0 || begun.elapsed() > BIRTH;
                while !is_born(self) && self.is_there(who)? {
                    sleep(Duration::from_micros(100));
                }
                sleep(Duration::from_micros(random() % 500));
                self.members[who].kill().map_err(not_run)?;
            }
            Fate::Stops(_) => self.stand_still(who)?,
            Fate::Dies(_) | Fate::DiesAtMark(_) | Fate::Survives => {}
        }
        let status = self.members[who].wait().map_err(not_run)?;
        if status.signal() != Some(Signal::SIGKILL as i32) {
            return Err(ended(status));
        }
        self.bury(who, fate)
    }

    /// Waits until the process is stopped, and lets the survivors go on; then kills it, or continues it.
    fn stand_still(&mut self, who: usize) -> Result<(), End> {
        let process = self.process(who);
        match waitpid(process, Some(WaitPidFlag::WUNTRACED)).map_err(not_run)? {
            WaitStatus::Stopped(..) => {}
            WaitStatus::Exited(_, status) => return Err(ended(ExitStatus::from_raw(status << 8))),
            other => return Err(not_run(format!("{other:?}"))),
        }
        self.go_on()?;
        self.figures.stopped += 1;
        let signal = if random().is_multiple_of(2) { Signal::SIGKILL } else { Signal::SIGCONT };
        kill(process, signal).map_err(not_run)
    }

    /// Waits for the survivors to go on, and frees what the dead process held; its call may have cost what was at
    /// stake.
    fn bury(&mut self, who: usize, fate: Fate) -> Result<(), End> {
        self.go_on()?;
        let stake = Stake::of(self.shared.member(who).stake.load(Ordering::Relaxed));
        self.stakes.extend(stake);
        self.figures.killed += 1;
        self.figures.cut_short += u64::from(stake.is_some());
        self.figures.at_once += u64::from(stake.is_some() && fate == Fate::IsKilled);
        self.figures.at_stake += stake.map_or(0, |stake| stake.units);
        alone(self.system, || {
            self.shared.lend(self.system, who, true, &mut |actor| actor.give_back())
        })?;
        self.go_on()
    }

    /// Waits until every survivor has completed something, however long its share of the processor takes.
    fn go_on(&mut self) -> Result<(), End> {
        let before: Vec<u64> = (0..self.survivors).map(|who| self.done(who)).collect();
        let begun = Instant::now();
        for (who, before) in before.into_iter().enumerate() {
            while self.done(who) < before + GO_ON {
                if !self.is_there(who)? {
                    return Err(not_run("a survivor is gone"));
                }
                if begun.elapsed() > Duration::from_secs(60) {
                    return Err(not_run("a survivor neither goes on nor takes steps"));
                }
                sleep(Duration::from_micros(100));
            }
        }
        Ok(())
    }

    fn join(&mut self, fate: Fate) -> Result<usize, End> {
        let who = self.members.len();
        let file = self.file.try_clone().map_err(not_run)?;
        let program = std::env::current_exe().map_err(not_run)?;
        let member = Command::new(program)
            .args(["member", self.system, &self.units.to_string(), &who.to_string()])
            .arg(fate.encode())
            .stdin(Stdio::from(file))
            .spawn();
        self.members.push(member.map_err(not_run)?);
        Ok(who)
    }

    fn done(&self, who: usize) -> u64 {
        self.shared.member(who).operations.load(Ordering::Relaxed)
    }

    fn process(&self, who: usize) -> Pid {
        Pid::from_raw(self.members[who].id() as i32)
    }

    /// Returns whether a member has not ended; if it has, it has found something.
    fn is_there(&mut self, who: usize) -> Result<bool, End> {
        match self.members[who].try_wait().map_err(not_run)? {
            None => Ok(true),
            Some(status) => Err(ended(status)),
        }
    }
}

/// Returns why a member ended, which has printed more by itself.
fn ended(status: ExitStatus) -> End {
    match status.code() {
        Some(3) => End::Found,
        Some(4) => End::Other,
        _ => not_run(format!("a member ended: {status}")),
    }
}

fn not_run(reason: impl ToString) -> End {
    End::NotRun(reason.to_string())
}
