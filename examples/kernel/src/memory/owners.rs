//! The owner map: who holds which frame, written by the code that allocates or frees it. It shares nothing with the
//! allocator. It does the same as the oracle of `testkit`, which needs an operating system.

use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::arch;

/// The part of the kernel that holds a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The program, which interrupts interrupt.
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

const CONTEXTS: [Context; 7] = [
    Context::Program,
    Context::Timer,
    Context::Nmi,
    Context::Tables,
    Context::Chunks,
    Context::Offline,
    Context::Kernel,
];

/// The holder of a frame: its CPU, and the part of the kernel.
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
        let context = *CONTEXTS.get((tag >> 16 & 7) as usize)?;
        (tag != NOBODY).then_some(Self { cpu: (tag & 0xffff) as usize, context })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU {} ({:?})", self.cpu, self.context)
    }
}

/// A finding: something that must not happen to a held frame.
#[derive(Clone, Copy, Debug)]
pub struct Finding {
    frame: u64,
    holder: Holder,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// The owner map says that another holds it, or nobody.
    Owner(u32),
    /// Its mark was overwritten.
    Mark,
    /// The allocator did not take it back.
    Refused,
}

impl Finding {
    /// The mark of a frame was overwritten.
    pub const fn mark(frame: u64, holder: Holder) -> Self {
        Self { frame, holder, what: What::Mark }
    }

    /// The allocator did not take a frame back.
    pub const fn refused(frame: u64, holder: Holder) -> Self {
        Self { frame, holder, what: What::Refused }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {:#x} of {} ", self.frame, self.holder)?;
        match self.what {
            What::Owner(tag) => match Holder::of(tag) {
                Some(other) => write!(f, "is held by {other}"),
                None => write!(f, "is held by nobody"),
            },
            What::Mark => write!(f, "was written to by somebody else"),
            What::Refused => write!(f, "was not taken back"),
        }
    }
}

/// A word for each frame.
///
/// All accesses are `Relaxed`: the map adds no ordering of its own, which could hide one that the allocator lacks.
pub struct Owners {
    words: &'static [AtomicU32],
}

impl Owners {
    /// A map in zeroed words, one for each frame: nobody holds any.
    pub const fn new(words: &'static [AtomicU32]) -> Self {
        Self { words }
    }

    /// Bytes of the map.
    pub fn size(&self) -> usize {
        size_of_val(self.words)
    }

    /// Notes that the holder was given the frames, which nobody may have had.
    pub fn take(&self, frames: Range<u64>, holder: Holder) -> Result<(), Finding> {
        self.change(frames, holder, NOBODY, holder.tag())
    }

    /// Notes that the holder, who must have had the frames, is about to give them back.
    pub fn give(&self, frames: Range<u64>, holder: Holder) -> Result<(), Finding> {
        self.change(frames, holder, holder.tag(), NOBODY)
    }

    fn change(
        &self,
        frames: Range<u64>,
        holder: Holder,
        from: u32,
        to: u32,
    ) -> Result<(), Finding> {
        for frame in frames {
            self.words[frame as usize]
                .compare_exchange(from, to, Relaxed, Relaxed)
                .map_err(|found| Finding { frame, holder, what: What::Owner(found) })?;
        }
        Ok(())
    }

    /// Returns how many frames are held.
    pub fn held(&self) -> usize {
        self.words.iter().filter(|word| word.load(Relaxed) != NOBODY).count()
    }
}
