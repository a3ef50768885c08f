//! Prints what the kernel says on the serial port, and ends it.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nbbs::{Stats, cache_words};
use nbbs_adapters::FRAME_SIZE;
use spin::Mutex;

use crate::Boot;
use crate::arch::{self, Serial};
use crate::collections::heap;
use crate::cpus::{self, Cpu, Interrupts};
use crate::load::{Plug, tasks};
use crate::memory::{Finding, memory};

/// How a run can end. The script reads the numbers.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// Everything was as it should be.
    Passed = 16,
    /// A CPU has waited for itself.
    #[cfg_attr(not(feature = "locked"), expect(dead_code))]
    Deadlock = 17,
    /// Two holders had the same frame.
    Overlap = 18,
    /// Anything else that must not happen.
    Panic = 19,
}

/// Prints formatted text.
macro_rules! print {
    ($($text:tt)*) => { write(format_args!($($text)*)) };
}

static SERIAL: Mutex<Serial> = Mutex::new(Serial);
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Writes text: in one piece, unless this writer has interrupted another.
fn write(text: fmt::Arguments) {
    let _held = (0..1_000_000).find_map(|_| SERIAL.try_lock());
    let _ = Serial.write_fmt(text);
}

/// Ends the run, and says why. Only the first CPU that does so prints; the others wait for the end.
pub fn end(outcome: Outcome, why: fmt::Arguments) -> ! {
    // Relaxed: nothing is handed over with it.
    if HAS_ENDED.swap(true, Relaxed) {
        arch::halt();
    }
    print!("{why}\nkernel: {outcome:?}\n");
    arch::exit(outcome as u32)
}

/// Says what the machine has.
pub fn machine(boot: &Boot) {
    print!("{} CPUs; the memory map:\n", boot.cpus);
    for stretch in &boot.map {
        let kind = if stretch.is_usable { "usable" } else { "-" };
        print!("  {:#014x}..{:#014x} {kind}\n", stretch.addresses.start, stretch.addresses.end);
    }
    print!("  {:#014x}..{:#014x} kernel\n", boot.image.start, boot.image.end);
}

/// Says what the arena is.
pub fn arena() {
    let (memory, stats) = (memory(), memory().stats());
    let (start, size) = memory.metadata();
    let kept_back = memory.kept_back();
    print!("arena: {} frames, of which {} may be given out\n", stats.units, usable(&stats));
    print!("  {} frames are added later\n", kept_back.end - kept_back.start);
    print!(
        "  metadata: {size} bytes at {start:#x}, {} bits for 10 frames\n",
        size as u64 * 80 / stats.units
    );
    print!(
        "  caches: {} bytes, owner map: {} bytes\n",
        cache_words(memory.caches().cpus()) * size_of::<u64>(),
        memory.owners().size()
    );
}

/// Says that memory was added.
pub fn added(frames: u64) {
    print!("added {frames} frames: {} may be given out\n", usable(&memory().stats()));
}

/// Ends the run, as this CPU has been in one operation for too long.
pub fn stuck(cpu: &Cpu) -> ! {
    let (number, depth) = (arch::cpu_number(), cpu.depth());
    let why = format_args!("watchdog: CPU {number} does not get on, {depth} operations deep");
    end(Outcome::Panic, why)
}

/// Ends the run, as this CPU waits for itself.
#[cfg(feature = "locked")]
pub fn deadlock() -> ! {
    let number = arch::cpu_number();
    let why = "waits in a handler for the lock that it held when it was interrupted";
    end(Outcome::Deadlock, format_args!("watchdog: CPU {number} {why}"))
}

/// Ends the run, as a frame has more than one holder.
pub fn overlap(found: Finding) -> ! {
    end(Outcome::Overlap, format_args!("owner map: {found}"))
}

/// Says how things stand under load.
pub fn during() {
    let stats = memory().stats();
    let (used, cached, free) = (stats.used_units, stats.cached_units, stats.free_units);
    print!("under load: {used} frames in use, {cached} cached, {free} free\n");
    occupancy();
}

/// Prints the results, and ends the run.
pub fn after(boot: &Boot, plug: &Plug) -> ! {
    for (number, cpu) in cpus::first(boot.cpus).iter().enumerate() {
        print!(
            "CPU {number}: {} operations, {} found no block",
            cpu.operations.get(),
            cpu.refusals.get()
        );
        interrupts("timer", &cpu.timer);
        interrupts("NMI", &cpu.nmi);
        print!("\n");
    }
    print!(
        "offline and back: {} ranges; {} were refused, as not all of them was free\n",
        plug.rounds, plug.refused
    );
    let (left, room) = (tasks().len(), tasks().capacity());
    print!(
        "pool: {left} objects left, room for {room}, of which it gave back {}\n",
        tasks().shrink()
    );
    heap().trim();
    let stats = heap().stats();
    print!(
        "heap: {} of {} KiB in use or cached, {} frees refused\n",
        (stats.runs + stats.slots) >> 10,
        stats.bytes >> 10,
        stats.refused
    );
    occupancy();
    judge(boot)
}

fn interrupts(name: &str, of: &Interrupts) {
    let (count, inside, blocks) = (of.count.get(), of.inside.get(), of.allocations.get());
    print!("; {name}: {count}, {inside} inside an operation, {blocks} blocks");
}

/// Returns the number of frames that are or could be in use.
fn usable(stats: &Stats) -> u64 {
    stats.units - stats.reserved_units
}

/// Prints how full the arena is, a character for each stretch, from the first that is not full.
fn occupancy() {
    const SHADES: &[u8; 10] = b" .:-=+*%@#";
    let (buddy, stats) = (memory().buddy(), memory().stats());
    let order = usable(&stats).div_ceil(64).next_power_of_two().trailing_zeros();
    let mut map = [0; 4096];
    let filled = buddy.occupancy_map(order, &mut map).expect("the order is below the arena's");
    let first = map[..filled].iter().position(|&share| share < 255).unwrap_or(0);
    let (start, step) = ((first as u64 * FRAME_SIZE) << order, (FRAME_SIZE << order) >> 10);
    print!("in use from {start:#x}, {step} KiB a character: |");
    for &share in &map[first..filled] {
        print!("{}", char::from(SHADES[usize::from(share).div_ceil(28).min(9)]));
    }
    print!("|\n");
}

/// Compares what the allocator says with what the owner map says.
fn judge(boot: &Boot) -> ! {
    let (memory, stats) = (memory(), memory().stats());
    let inside: u64 = cpus::first(boot.cpus).iter().map(Cpu::inside).sum();
    print!("{inside} interrupts came in the middle of an operation\n");
    print!("{} frames in use, {} held by their owners\n", stats.used_units, memory.owners().held());
    print!("owner map: no frame was held twice\n");
    assert!(tasks().is_empty(), "objects are left");
    assert!(stats.cached_units == 0, "{} frames are cached", stats.cached_units);
    assert!(stats.used_units == memory.owners().held() as u64, "frames are lost");
    let audit = memory.buddy().audit().expect("the arena's words are in order");
    end(Outcome::Passed, format_args!("audit: in order, {} merges wait", audit.waiting_merges))
}
