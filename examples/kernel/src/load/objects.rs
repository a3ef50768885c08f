//! Objects of one type: from the pool, whose chunks are blocks of the arena. CPUs hand them to each other.

use core::alloc::Layout;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};

use arrayvec::ArrayVec;
use nbbs_adapters::FRAME_SIZE;
use nbbs_pool::{ChunkSource, Config, Local, Pages, Pool, PoolBox};
use spin::Once;

use crate::memory::{Context, Held, Holder, memory};
use crate::random::Random;
use crate::{arch, cpus};

/// An object of which a kernel has many.
pub struct Task {
    number: u64,
    from: usize,
    /// The place of the rest of a task, written to when it is created.
    state: [u64; 14],
}

type Tasks = Pool<Task, Chunks>;

static TASKS: Once<Tasks> = Once::new();
/// The places where one CPU leaves a task for another to take.
static MAILBOXES: [AtomicPtr<Task>; 16] = [const { AtomicPtr::new(ptr::null_mut()) }; 16];

/// The pool.
pub fn tasks() -> &'static Tasks {
    TASKS.call_once(|| {
        let start = NonNull::new(arch::direct(0)).expect("the direct map does not begin at 0");
        // SAFETY: the direct map has frame `n` at `n * FRAME_SIZE`, for as long as the kernel runs. A frame belongs to
        // the holder to whom the arena has given it.
        let pages = unsafe { Pages::new(memory().buddy(), start, FRAME_SIZE as usize) };
        Pool::with_source(Chunks(pages), Config::new().chunk_size(512))
    })
}

/// Blocks of the arena, judged by the owner map.
pub struct Chunks(Pages<'static>);

/// Returns the frames of a chunk, which any CPU may give back: the pool holds them, whichever CPU asked for them.
fn held(block: NonNull<u8>, layout: Layout) -> Held {
    let frame = (block.as_ptr().addr() - arch::direct(0).addr()) as u64 / FRAME_SIZE;
    let frames = (layout.size() as u64).div_ceil(FRAME_SIZE).next_power_of_two();
    Held::of(frame, frames.trailing_zeros(), Holder { cpu: 0, context: Context::Chunks })
}

// SAFETY: the blocks are those of `Pages`.
unsafe impl ChunkSource for Chunks {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        let block = cpus::this().operation(|| self.0.alloc(layout))?;
        held(block, layout).note_taken();
        Some(block)
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        held(block, layout).note_given();
        // SAFETY: passed on from the caller.
        cpus::this().operation(|| unsafe { self.0.free(block, layout) });
    }
}

/// The most tasks that a CPU keeps.
const MOST: usize = 512;

/// The tasks of a CPU.
pub struct Objects {
    cpu: usize,
    made: u64,
    kept: ArrayVec<PoolBox<'static, Task>, MOST>,
    local: Local<'static, Task, Chunks>,
}

impl Objects {
    pub fn new(cpu: usize) -> Self {
        Self { cpu, made: 0, kept: ArrayVec::new(), local: tasks().local() }
    }

    /// Creates a few tasks to keep, or ends some of those. Hands another one to any CPU that takes it, and ends one
    /// that it was handed.
    pub fn step(&mut self, random: &mut Random) {
        for _ in 0..16 {
            if random.below(MOST as u64) < self.kept.len() as u64 {
                let which = random.below(self.kept.len() as u64) as usize;
                let task = self.kept.swap_remove(which);
                self.end(task);
            } else {
                let task = self.make();
                self.kept.extend(task);
            }
        }
        if let Some(task) = self.make() {
            self.hand_over(task, random);
        }
    }

    /// Creates a task. Returns `None` if there is no memory.
    fn make(&mut self) -> Option<PoolBox<'static, Task>> {
        self.made += 1;
        let (number, from) = (self.made, self.cpu);
        let state = core::array::from_fn(|at| number + at as u64);
        self.local.alloc(Task { number, from, state }).ok()
    }

    /// Leaves a task in a mailbox, and ends the one that lay there.
    fn hand_over(&mut self, task: PoolBox<'static, Task>, random: &mut Random) {
        let mailbox = &MAILBOXES[random.below(MAILBOXES.len() as u64) as usize];
        // Release: pairs with the Acquire of the CPU that takes the task. Acquire: with the Release of the CPU that has
        // left one.
        let found = mailbox.swap(PoolBox::into_raw(task).as_ptr(), Ordering::AcqRel);
        self.end_handed(found);
    }

    /// Ends a task that was in a mailbox.
    fn end_handed(&mut self, task: *mut Task) {
        let Some(task) = NonNull::new(task) else { return };
        // SAFETY: it was a box of this pool that became a pointer in `hand_over`; taking the pointer out of the mailbox
        // has made it ours alone.
        let task = unsafe { tasks().from_raw(task) };
        self.end(task);
    }

    fn end(&mut self, task: PoolBox<'static, Task>) {
        let is_whole = (0..).zip(task.state).all(|(at, word)| word == task.number + at);
        assert!(is_whole, "task {} of CPU {} is not as it was made", task.number, task.from);
        self.local.free(task);
    }

    /// Ends all tasks that the CPU keeps, and those in mailboxes.
    pub fn free_all(&mut self) {
        while let Some(task) = self.kept.pop() {
            self.end(task);
        }
        for mailbox in &MAILBOXES {
            // Acquire: pairs with the Release in `hand_over`.
            let found = mailbox.swap(ptr::null_mut(), Ordering::Acquire);
            self.end_handed(found);
        }
        self.local.flush();
    }
}
