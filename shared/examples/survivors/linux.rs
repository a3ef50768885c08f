//! What the processes do: one starts the others, each of which has its part.

use std::alloc::Layout;
use std::error::Error;
use std::io::{self, ErrorKind, Write, stdin, stdout};
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};
use std::{env, hint};

use nbbs_shared::{AllocError, Fate, Geometry, Member, Offset, Segment};

const GEOMETRY: Geometry = Geometry { units: 1 << 15, unit_bytes: 256, members: 16 };
/// Bytes of a message.
const MOST: usize = 64 << 10;
/// How long the third process has each time, in milliseconds at most.
const LIFE: u64 = 20;

/// What all of them have in common: the segment's root. Zero at first.
#[repr(C)]
struct Common {
    stop: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    bytes: AtomicU64,
    /// Offsets of the messages from `received` to `sent`.
    ring: [AtomicU64; 256],
}

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

pub fn main() -> Outcome {
    match run() {
        // Whoever reads what it says has seen enough.
        Err(error) if is_broken_pipe(&*error) => Ok(()),
        result => result,
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

fn run() -> Outcome {
    let argument = env::args_os().nth(1).unwrap_or_else(|| "5".into());
    match &*argument.to_string_lossy() {
        "producer" => attached(produce),
        "consumer" => attached(consume),
        "victim" => attached(churn),
        seconds => match seconds.parse() {
            Ok(seconds) => survive(Duration::from_secs(seconds)),
            Err(_) => {
                Err(format!("{seconds} is not a number of seconds from 0 to {}", u64::MAX).into())
            }
        },
    }
}

/// Starts the others, disturbs them until the time is over, and looks whether all is there.
fn survive(time: Duration) -> Outcome {
    let segment = Segment::memfd("survivors", GEOMETRY)?;
    let member = segment.join()?;
    let root = member.alloc_for::<Common>()?;
    // SAFETY: the block is this member's, and nobody knows of it.
    unsafe { member.block(root)?.as_ptr().cast::<u8>().write_bytes(0, size_of::<Common>()) };
    segment.root().store(Some(root), Ordering::Release);
    let common = common(&segment)?;
    let whole = segment.count_free_bytes();

    let mut workers = [start(&segment, "producer")?, start(&segment, "consumer")?];
    let disturbed = disturb(&segment, &member, time);
    // Whatever happened: nobody else ends them.
    common.stop.store(1, Ordering::Release);
    for worker in &mut workers {
        if !worker.wait()?.success() {
            return Err("a survivor found something wrong".into());
        }
    }
    let (killed, recovered) = disturbed?;
    // What the survivors left, they had freed.
    let recovered = recovered + member.recover(|_| Fate::Free).freed;
    say(common, killed, recovered)?;
    let (sent, received) =
        (common.sent.load(Ordering::Acquire), common.received.load(Ordering::Acquire));
    let missing = whole - segment.count_free_bytes();
    writeln!(stdout(), "{} messages lost, {missing} bytes lost", sent - received)?;
    if sent == received && missing == 0 { Ok(()) } else { Err("something is lost".into()) }
}

/// Kills the victim until the time is over. Returns how often, and how many blocks were recovered.
fn disturb(segment: &Segment, member: &Member, time: Duration) -> Outcome<(u64, usize)> {
    let common = common(segment)?;
    let (begun, mut said, mut killed, mut recovered) = (Instant::now(), Instant::now(), 0, 0);
    while begun.elapsed() < time {
        let mut victim = start(segment, "victim")?;
        sleep(Duration::from_millis(fastrand::u64(1..=LIFE)));
        victim.kill()?;
        victim.wait()?;
        killed += 1;
        recovered += member.recover(|_| Fate::Free).freed;
        if said.elapsed() > Duration::from_millis(500) {
            said = Instant::now();
            say(common, killed, recovered)?;
        }
    }
    Ok((killed, recovered))
}

fn say(common: &Common, killed: u64, recovered: usize) -> io::Result<()> {
    let messages = common.received.load(Ordering::Relaxed);
    let bytes = common.bytes.load(Ordering::Relaxed) >> 20;
    // Not `println!`, which panics if standard output is closed.
    writeln!(
        stdout(),
        "{messages} messages, {bytes} MiB; {killed} kills, {recovered} blocks recovered"
    )
}

/// Another process of this program, which has the segment as its standard input.
fn start(segment: &Segment, role: &str) -> Outcome<Child> {
    let file = segment.as_fd().try_clone_to_owned()?;
    Ok(Command::new(env::current_exe()?).arg(role).stdin(Stdio::from(file)).spawn()?)
}

/// Attaches to the segment that is this process's standard input, and works there.
fn attached(work: impl Fn(&Member, &Common) -> Outcome) -> Outcome {
    let segment = Segment::attach_fd(stdin().as_fd().try_clone_to_owned()?)?;
    let member = segment.join()?;
    work(&member, common(&segment)?)
}

fn common(segment: &Segment) -> Outcome<&Common> {
    let root = segment.root().load(Ordering::Acquire).ok_or("the segment has no root")?;
    // SAFETY: it was zeroed before it was published, stays as long as any process here, and is accessed by atomics.
    Ok(unsafe { segment.at::<Common>(root)?.as_ref() })
}

/// Sends messages until it is told to stop: numbered, of any size, all bytes made of the number.
fn produce(member: &Member, common: &Common) -> Outcome {
    for number in 0.. {
        while number - common.received.load(Ordering::Acquire) == common.ring.len() as u64 {
            yield_now();
        }
        if common.stop.load(Ordering::Acquire) != 0 {
            common.stop.store(2, Ordering::Release);
            break;
        }
        let message = alloc(member, size())?;
        let block = member.block(message)?;
        // SAFETY: the block is this member's until the offset is sent.
        unsafe { &mut *block.as_ptr() }.fill(number as u8);
        common.ring[number as usize % common.ring.len()].store(message.bytes(), Ordering::Relaxed);
        common.sent.store(number + 1, Ordering::Release);
    }
    Ok(())
}

/// Receives messages, checks them, and frees them, until all are received.
fn consume(member: &Member, common: &Common) -> Outcome {
    for number in 0.. {
        while common.sent.load(Ordering::Acquire) == number {
            if common.stop.load(Ordering::Acquire) == 2
                && common.sent.load(Ordering::Acquire) == number
            {
                return Ok(());
            }
            yield_now();
        }
        let slot = common.ring[number as usize % common.ring.len()].load(Ordering::Relaxed);
        let message = Offset::<u8>::new(slot).ok_or("no message was sent")?;
        member.take(message)?;
        let block = member.block(message)?;
        // SAFETY: the block is this member's since it was taken, and the producer has done with it.
        let bytes = unsafe { &*block.as_ptr() };
        if bytes.iter().any(|&byte| byte != number as u8) {
            return Err(format!("message {number} did not arrive as it was sent").into());
        }
        common.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        member.free(message)?;
        common.received.store(number + 1, Ordering::Release);
    }
    Ok(())
}

/// Allocates, writes and frees until it is killed.
fn churn(member: &Member, _: &Common) -> Outcome {
    let mut held = Vec::new();
    loop {
        if held.len() == 40 || !held.is_empty() && fastrand::bool() {
            member.free(held.swap_remove(fastrand::usize(..held.len())))?;
        } else {
            let block = alloc(member, size())?;
            // SAFETY: the block is this member's, and has a unit at least.
            unsafe { member.block(block)?.as_ptr().cast::<u8>().write_bytes(0xdd, 8) };
            held.push(block);
        }
        hint::spin_loop();
    }
}

/// Small ones more often than large ones.
fn size() -> usize {
    fastrand::usize(1..=MOST >> fastrand::u32(0..10))
}

/// A block, once there is room.
fn alloc(member: &Member, bytes: usize) -> Outcome<Offset<u8>> {
    loop {
        match member.alloc(Layout::from_size_align(bytes, 8)?) {
            Err(AllocError::Exhausted { .. }) => yield_now(),
            other => return Ok(other?),
        }
    }
}

/// Processes of one program agree on it in any case.
const _: () = assert!(offset_of!(Common, ring) == 32);
