//! The life of one segment: those who live on, and those who come and are killed.

use std::fmt;
use std::os::fd::AsRawFd;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::member::{Actor, number_of};
use crate::stage::{SURVIVORS, Stage, said};

/// What each survivor has to do after a death, and beside everyone who is stopped.
const GO_ON: u64 = 30;

/// How long that may take a process that is given the processor at all.
const LONG: Duration = Duration::from_secs(30);

/// What was run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub killed: u64,
    /// Of these, in the middle of a call.
    pub cut_short: u64,
    stopped: u64,
    recovered: u64,
    operations: u64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { killed, cut_short, stopped, recovered, operations } = self;
        write!(
            f,
            "{killed} processes killed, {cut_short} in a call; {stopped} stopped; {recovered} blocks recovered; {operations} \
             operations of survivors"
        )
    }
}

/// Processes that are killed, if they have not ended, when this is dropped.
struct Crew(Vec<Child>);

impl Drop for Crew {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Whoever has ended cannot be killed.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// So many deaths in a fresh segment.
pub fn live(life: u64, deaths: u64, figures: &mut Figures) -> Result<(), String> {
    let stage = Stage::create(life)?;
    let mut own = Actor::new(&stage, 0)?;
    let mut survivors = Crew(Vec::new());
    for who in 1..SURVIVORS {
        survivors.0.push(start(&stage, who)?);
    }
    go_on(&stage, &mut survivors)?;
    for death in 0..deaths {
        one_more(&stage, number_of(life * 50 + death), &mut survivors, figures)?;
        // Together with the other survivors, which do so now and then.
        own.recover()?;
        own.act()?;
    }
    stage.board().stop.store(1, Ordering::Relaxed);
    for survivor in &mut survivors.0 {
        if !survivor.wait().map_err(said)?.success() {
            return Err("a survivor found something".to_string());
        }
    }
    own.end()?;
    own.assert_whole()?;
    for who in 0..SURVIVORS {
        figures.recovered += stage.says(who).recovered.load(Ordering::Relaxed);
        figures.operations += stage.says(who).done.load(Ordering::Relaxed);
    }
    Ok(())
}

/// Another process, which works and is killed.
fn one_more(
    stage: &Stage,
    who: usize,
    survivors: &mut Crew,
    figures: &mut Figures,
) -> Result<(), String> {
    let says = stage.says(who);
    says.done.store(0, Ordering::Relaxed);
    says.acts.store(0, Ordering::Relaxed);
    let mut victim = Crew(vec![start(stage, who)?]);
    let begun = Instant::now();
    while says.done.load(Ordering::Relaxed) < fastrand::u64(0..100) {
        still_there(&mut victim)?;
        if begun.elapsed() > LONG {
            return Err(format!("member {who} does nothing: somebody is waited for"));
        }
    }
    spin(fastrand::u64(0..20_000));
    let process = Pid::from_raw(victim.0[0].id() as i32);
    // Half of them as they are met; the others after they were stopped in a call, and the rest has gone on.
    if fastrand::bool() {
        stop_in_a_call(process, &says.acts)?;
        go_on(stage, survivors)?;
        figures.stopped += 1;
        if fastrand::u32(0..4) == 0 {
            kill(process, Signal::SIGCONT).map_err(said)?;
        }
    } else {
        still_there(&mut victim)?;
    }
    kill(process, Signal::SIGKILL).map_err(said)?;
    victim.0[0].wait().map_err(said)?;
    figures.killed += 1;
    figures.cut_short += says.acts.load(Ordering::Relaxed);
    go_on(stage, survivors)
}

/// Stops a process until that was in a call, or a hundred times.
fn stop_in_a_call(process: Pid, acts: &AtomicU64) -> Result<(), String> {
    for _ in 0..100 {
        kill(process, Signal::SIGSTOP).map_err(said)?;
        match waitpid(process, Some(WaitPidFlag::WUNTRACED)).map_err(said)? {
            WaitStatus::Stopped(..) if acts.load(Ordering::Relaxed) == 1 => break,
            WaitStatus::Stopped(..) => {}
            other => return Err(format!("a member ended by itself: {other:?}")),
        }
        kill(process, Signal::SIGCONT).map_err(said)?;
        spin(fastrand::u64(0..5_000));
    }
    Ok(())
}

/// Waits until every survivor has done something.
fn go_on(stage: &Stage, survivors: &mut Crew) -> Result<(), String> {
    let done = |who| stage.says(who).done.load(Ordering::Relaxed);
    let before: Vec<u64> = (1..SURVIVORS).map(done).collect();
    let begun = Instant::now();
    for (who, before) in (1..SURVIVORS).zip(before) {
        while done(who) < before + GO_ON {
            still_there(survivors)?;
            if begun.elapsed() > LONG {
                return Err(format!("survivor {who} does not go on: somebody is waited for"));
            }
            sleep(Duration::from_micros(50));
        }
    }
    Ok(())
}

/// That none has ended by itself.
fn still_there(crew: &mut Crew) -> Result<(), String> {
    for child in &mut crew.0 {
        if let Some(status) = child.try_wait().map_err(said)? {
            return Err(format!("a member ended by itself: {status}"));
        }
    }
    Ok(())
}

fn start(stage: &Stage, who: usize) -> Result<Child, String> {
    let descriptors = stage.descriptors()?;
    for descriptor in &descriptors {
        // For this child; the originals stay closed to it.
        fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty())).map_err(said)?;
    }
    let [segment, board] = descriptors.each_ref().map(|fd| fd.as_raw_fd().to_string());
    let program = std::env::current_exe().map_err(said)?;
    Command::new(program).args(["member", &who.to_string(), &segment, &board]).spawn().map_err(said)
}

/// So many turns of a loop, at any of which the victim may be anywhere.
fn spin(turns: u64) {
    (0..turns).for_each(|_| std::hint::spin_loop());
}
