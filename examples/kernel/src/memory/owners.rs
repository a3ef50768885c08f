//! The owner map: who holds which frame, written by whoever allocates or frees it. It shares nothing with the allocator.

use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::Held;
use crate::arch;

/// In what part of the kernel a block is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The program that interrupts interrupt.
    Program,
    /// The handler of the timer's interrupt.
    Timer,
    /// The handler of interrupts that cannot be masked.
    Nmi,
    /// Page tables of address spaces.
    Tables,
    /// Chunks of the pool.
    Chunks,
    /// Nobody: the frames are offline.
    Offline,
    /// What the kernel keeps for ever: its stacks and page tables.
    Kernel,
}

const CONTEXTS: [Context; 8] = [
    Context::Program,
    Context::Timer,
    Context::Nmi,
    Context::Tables,
    Context::Chunks,
    Context::Offline,
    Context::Kernel,
    Context::Kernel,
];

/// Who holds a frame: its CPU, and in what part of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// The CPU's number.
    pub cpu: usize,
    /// The part.
    pub context: Context,
}

/// Nobody holds the frame.
const NOBODY: u32 = 0;

impl Holder {
    /// This CPU, in some part of the kernel.
    pub fn here(context: Context) -> Self {
        Self { cpu: arch::cpu_number(), context }
    }

    /// A number for each holder.
    pub fn tag(self) -> u32 {
        1 << 31 | (self.context as u32) << 16 | self.cpu as u32
    }

    fn of(tag: u32) -> Option<Self> {
        let context = CONTEXTS[(tag >> 16 & 7) as usize];
        (tag != NOBODY).then_some(Self { cpu: (tag & 0xffff) as usize, context })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU {} ({:?})", self.cpu, self.context)
    }
}

/// A word for each frame.
///
/// All accesses are `Relaxed`: the map adds no ordering of its own, which could hide one that the allocator lacks.
pub struct Owners {
    words: &'static [AtomicU32],
    findings: AtomicU64,
    first: [AtomicU64; 3],
}

impl Owners {
    /// A map in zeroed words, one for each frame: nobody holds any.
    pub const fn new(words: &'static [AtomicU32]) -> Self {
        let first = [const { AtomicU64::new(0) }; 3];
        Self { words, findings: AtomicU64::new(0), first }
    }

    /// Bytes of the map.
    pub fn size(&self) -> usize {
        size_of_val(self.words)
    }

    /// Notes that the holder was given the frames.
    pub fn take(&self, held: &Held, holder: Holder) {
        self.change(held, NOBODY, holder.tag());
    }

    /// Notes that the holder is about to give the frames back.
    pub fn give(&self, held: &Held, holder: Holder) {
        self.change(held, holder.tag(), NOBODY);
    }

    fn change(&self, held: &Held, from: u32, to: u32) {
        for frame in held.frames() {
            if let Err(found) =
                self.words[frame as usize].compare_exchange(from, to, Relaxed, Relaxed)
            {
                self.note(frame, found, from | to);
            }
        }
    }

    /// Notes that a frame of a holder was another's.
    fn note(&self, frame: u64, found: u32, holder: u32) {
        if self.findings.fetch_add(1, Relaxed) == 0 {
            for (word, value) in self.first.iter().zip([frame, found.into(), holder.into()]) {
                word.store(value, Relaxed);
            }
        }
    }

    /// Notes a frame that the holder has, and whose content somebody else has changed, or that was not taken back.
    pub fn note_lost(&self, frame: u64, holder: Holder) {
        self.note(frame, self.words[frame as usize].load(Relaxed), holder.tag());
    }

    /// How often a frame was not its holder's.
    pub fn findings(&self) -> u64 {
        self.findings.load(Relaxed)
    }

    /// How many frames somebody holds.
    pub fn held(&self) -> usize {
        self.words.iter().filter(|word| word.load(Relaxed) != NOBODY).count()
    }
}

impl fmt::Display for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "owner map: {} findings", self.findings())?;
        if self.findings() > 0 {
            let [frame, found, holder] = self.first.each_ref().map(|word| word.load(Relaxed));
            write!(f, "; the first: frame {frame:#x} of ")?;
            name(f, holder as u32)?;
            write!(f, " is held by ")?;
            name(f, found as u32)?;
        }
        Ok(())
    }
}

fn name(f: &mut fmt::Formatter<'_>, tag: u32) -> fmt::Result {
    match Holder::of(tag) {
        Some(holder) => write!(f, "{holder}"),
        None => write!(f, "nobody"),
    }
}
