//! Members: the public interface.

use std::alloc::Layout;
use std::fmt;
use std::fs::File;
use std::ptr::NonNull;

use crate::error::{AllocError, OffsetError};
use crate::heap::Heap;
use crate::layout::PAGE;
use crate::ledger::{Fate, MAX_SEATS, NotHeld, Owner, Recovery, Seat};
use crate::offset::Offset;
use crate::pool::Pool;
use crate::process::Process;
use crate::segment::{Locks, Segment};
use crate::slabs::Cursors;

/// A registered user of a segment: a thread, as long as this value lives.
///
/// It can be sent to another thread, and only one thread can use it at a time. A signal handler that interrupts one of
/// its calls must not use it. When it is dropped, or dies, others recover what it holds.
///
/// Blocks have a power of two of units, so that allocating and freeing each take one step that counts.
///
/// ```
/// use nbbs_shared::{Geometry, Segment};
/// use std::alloc::Layout;
///
/// let segment = Segment::memfd("member", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
/// let member = segment.join()?;
/// let block = member.alloc(Layout::from_size_align(1000, 16)?)?;
/// assert_eq!(member.block(block)?.len(), 1024);
/// assert_eq!(member.free(block)?, 1024);
/// assert!(member.free(block).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Member {
    segment: Segment,
    pub(crate) seat: Seat,
    pub(crate) cursors: Cursors,
    /// An open file description with a lock on the seat's byte, which the kernel releases when the last copy of this is
    /// closed: children of this process have one, too.
    lock: File,
    /// The process that joined.
    process: Process,
}

/// The identity of a member among all that a segment has or had. An identity recurs after 16,383 other members on its
/// seat.
///
/// ```
/// use nbbs_shared::MemberId;
///
/// let id = MemberId { seat: 3, generation: 7 };
/// assert_eq!(id.to_string(), "member 3.7");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberId {
    /// Its position in the table of members.
    pub seat: usize,
    /// Its generation on that seat.
    pub generation: u64,
}

/// A block, or a slot of the heap, that is being recovered.
///
/// ```
/// use nbbs_shared::{Fate, Geometry, Segment};
///
/// let segment = Segment::memfd("of the dead", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
/// let (alice, bob) = (segment.join()?, segment.join()?);
/// let offset = bob.alloc_for::<u64>()?.cast();
/// drop(bob);
/// alice.recover(|found| {
///     assert_eq!((found.offset, found.bytes), (offset, 64));
///     Fate::Free
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Block {
    /// Its offset.
    pub offset: Offset<u8>,
    /// Its size.
    pub bytes: u64,
}

impl Member {
    pub(crate) fn new(segment: Segment, seat: Seat, lock: File) -> Self {
        let (cursors, process) = (Cursors::default(), Process::this());
        Self { segment, seat, cursors, lock, process }
    }

    /// Returns the identity of this member.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("id", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let block = member.alloc_for::<u64>()?;
    /// assert_eq!(segment.owner(block)?, Some(member.id()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> MemberId {
        let (seat, generation) = self.seat.owner.seat().unwrap_or((self.seat.number, 0));
        MemberId { seat, generation }
    }

    /// Returns the segment.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("segment", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// assert_eq!(member.segment().geometry(), segment.geometry());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Allocates a block of at least this size and alignment, which is not cleared.
    ///
    /// Cost: that of [`nbbs::Lane::alloc`], one read-modify-write in the steady state, plus three stores and a load.
    /// Before it refuses, it [trims](Heap::trim) the heap, whose empty slabs may be in the way, which takes memory of the
    /// process. Waits for nobody.
    ///
    /// # Errors
    /// [`AllocError`]. After [`Exhausted`](AllocError::Exhausted), [`recover`](Self::recover) may find memory of the
    /// dead.
    ///
    /// # Panics
    /// If a member has written into the bookkeeping, where it must not.
    ///
    /// ```
    /// # use nbbs_shared::{AllocError, Geometry, Segment};
    /// # use std::alloc::Layout;
    /// # let segment = Segment::memfd("alloc", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let block = member.alloc(Layout::from_size_align(300, 8)?)?;
    /// assert_eq!(member.block(block)?.len(), 512);
    /// let refused = member.alloc(Layout::from_size_align(300, 8192)?);
    /// assert!(matches!(refused, Err(AllocError::Alignment { max: 4096, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc(&self, layout: Layout) -> Result<Offset<u8>, AllocError> {
        match self.alloc_block(layout) {
            Err(AllocError::Exhausted { .. }) => self.alloc_trimmed(layout),
            answer => answer,
        }
    }

    /// Allocates a block, without a trim.
    #[inline(always)]
    pub(crate) fn alloc_block(&self, layout: Layout) -> Result<Offset<u8>, AllocError> {
        if layout.align() as u64 > PAGE {
            return Err(AllocError::Alignment { layout, max: PAGE });
        }
        match self.segment.ledger().alloc(&self.seat, self.order_for(layout)) {
            Some(Ok(index)) => self.segment.offset_of(index).ok_or(AllocError::Damaged),
            Some(Err(nbbs::AllocError::OrderTooLarge { max, .. })) => {
                let max = self.bytes(1 << max);
                let is_large = layout.size() as u64 > max;
                Err(if is_large {
                    AllocError::TooLarge { layout, max }
                } else {
                    AllocError::Alignment { layout, max }
                })
            }
            Some(Err(_)) => Err(AllocError::Exhausted { layout }),
            None => Err(AllocError::Damaged),
        }
    }

    /// Returns the order of the block that [`alloc`](Self::alloc) takes for a layout: at least as large as its alignment.
    #[inline(always)]
    pub(crate) fn order_for(&self, layout: Layout) -> u32 {
        // Both are below 2^63, and so is the next power of two.
        let bytes = (layout.size().max(layout.align()) as u64).next_power_of_two();
        bytes.trailing_zeros().saturating_sub(self.segment.layout().unit_log2())
    }

    /// A block, after one was refused, if empty slabs of the heap were in its place.
    #[cold]
    fn alloc_trimmed(&self, layout: Layout) -> Result<Offset<u8>, AllocError> {
        if self.heap().trim() == 0 {
            return Err(AllocError::Exhausted { layout });
        }
        self.alloc_block(layout)
    }

    /// Allocates a block for a `T`, as [`alloc`](Self::alloc) does.
    ///
    /// # Errors
    /// Those of [`alloc`](Self::alloc).
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("alloc_for", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let number = member.alloc_for::<u64>()?;
    /// // SAFETY: the block is this member's.
    /// unsafe { segment.at(number)?.write(42) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_for<T>(&self) -> Result<Offset<T>, AllocError> {
        self.alloc(Layout::new::<T>()).map(Offset::cast)
    }

    /// Frees the member's block at `offset`, and returns its bytes.
    ///
    /// Cost: that of [`nbbs::Lane::free`], one read-modify-write in the steady state, plus three stores and a load.
    /// Waits for nobody.
    ///
    /// # Errors
    /// [`OffsetError`]: no block of this member begins there. Nothing has changed.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, OffsetError, Segment};
    /// # let segment = Segment::memfd("free", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let number = member.alloc_for::<u64>()?;
    /// assert_eq!(member.free(number), Ok(64));
    /// assert!(matches!(member.free(number), Err(OffsetError::NotYours { owner: None, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free<T: ?Sized>(&self, offset: Offset<T>) -> Result<u64, OffsetError> {
        let index = self.segment.index_of(offset.bytes())?;
        let freed = self.segment.ledger().free(&self.seat, index);
        freed
            .map(|units| self.bytes(units))
            .map_err(|error| self.segment.refusal(offset.bytes(), error))
    }

    /// Makes the block at `offset` this member's, and returns its former owner. That owner must have handed the block
    /// over, in whatever way, and neither use nor free it any more.
    ///
    /// Whoever has the block by now must still mean it for this member. If the former owner may have died, and another
    /// member recovers and frees what is not needed, the block may be a third member's by now: use
    /// [`take_from`](Self::take_from) then.
    ///
    /// Cost: a read-modify-write.
    ///
    /// # Errors
    /// [`OffsetError`]: it is nobody's, or no block begins there.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("take", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let (alice, bob) = (segment.join()?, segment.join()?);
    /// let number = alice.alloc_for::<u64>()?;
    /// assert_eq!(bob.take(number), Ok(alice.id())); // Alice has sent him the offset
    /// assert_eq!(segment.owner(number), Ok(Some(bob.id())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take<T: ?Sized>(&self, offset: Offset<T>) -> Result<MemberId, OffsetError> {
        self.take_of(offset, None)
    }

    /// Makes the block at `offset` this member's if it is `from`'s, or this member's already, and returns whose it was.
    /// `from` must have handed the block over, in whatever way, and neither use nor free it any more.
    ///
    /// If it was this member's already, it may be another block than the one that was sent: this member may have
    /// recovered and freed that one, and allocated this one in its place.
    ///
    /// If `from` has died in the meantime and another member recovers, one of the two gets the block. The other one may
    /// use or free it as any of its blocks, as long as those to which it was sent call this method, not
    /// [`take`](Self::take).
    ///
    /// Cost: a read-modify-write.
    ///
    /// # Errors
    /// [`OffsetError`]: it is neither `from`'s nor this member's, or no block begins there. Nothing has changed.
    ///
    /// ```
    /// # use nbbs_shared::{Fate, Geometry, OffsetError, Segment};
    /// # let segment = Segment::memfd("from", Geometry { units: 64, unit_bytes: 64, members: 3 })?;
    /// let (alice, bob, carol) = (segment.join()?, segment.join()?, segment.join()?);
    /// let (number, from) = (alice.alloc_for::<u64>()?, alice.id());
    /// drop(alice); // she has sent Bob the offset
    /// carol.recover(|_block| Fate::Keep);
    /// let late = bob.take_from(number, from);
    /// assert!(matches!(late, Err(OffsetError::NotYours { owner: Some(id), .. }) if id == carol.id()));
    /// assert_eq!(carol.take_from(number, from), Ok(carol.id())); // she has it already
    /// carol.free(number)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_from<T: ?Sized>(
        &self,
        offset: Offset<T>,
        from: MemberId,
    ) -> Result<MemberId, OffsetError> {
        self.take_of(offset, Some(from))
    }

    pub(crate) fn take_of<T: ?Sized>(
        &self,
        offset: Offset<T>,
        from: Option<MemberId>,
    ) -> Result<MemberId, OffsetError> {
        let index = self.segment.index_of(offset.bytes())?;
        let taken = self.segment.ledger().take(&self.seat, index, from.map(MemberId::owner));
        self.taken(offset, taken)
    }

    /// Returns what the public interface says of something that was taken, or not.
    pub(crate) fn taken<T: ?Sized>(
        &self,
        offset: Offset<T>,
        taken: Result<Owner, NotHeld>,
    ) -> Result<MemberId, OffsetError> {
        taken
            .map(|owner| MemberId::of(owner).unwrap_or(self.id()))
            .map_err(|error| self.segment.refusal(offset.bytes(), error))
    }

    /// Returns all bytes of the member's block at `offset`. They stay in place as long as the segment is attached.
    ///
    /// # Errors
    /// [`OffsetError`]: no block of this member begins there.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("block", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let (alice, bob) = (segment.join()?, segment.join()?);
    /// let number = alice.alloc_for::<u64>()?;
    /// assert_eq!(alice.block(number)?.len(), 64); // a unit
    /// assert!(bob.block(number).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn block<T: ?Sized>(&self, offset: Offset<T>) -> Result<NonNull<[u8]>, OffsetError> {
        let index = self.segment.index_of(offset.bytes())?;
        let units = self.segment.ledger().len(&self.seat, index);
        let bytes = self.bytes(units.map_err(|error| self.segment.refusal(offset.bytes(), error))?);
        let start = self.segment.start_of(offset.bytes(), bytes)?;
        Ok(NonNull::slice_from_raw_parts(start, bytes as usize))
    }

    /// Returns how many members have died and have not been recovered, or only in part, as something of theirs may be
    /// [pending](Recovery::pending): they count until a recovery finds nothing pending, or what was pending when this
    /// member first found them dead is told. Those whose seats others have by now count as one for each seat. Cost: a
    /// system call for each seat that is taken.
    ///
    /// ```
    /// # use nbbs_shared::{Fate, Geometry, Segment};
    /// # use nix::{sys::signal::{raise, Signal::SIGKILL}, sys::wait::wait, unistd::{ForkResult, fork}};
    /// # use std::os::fd::AsFd;
    /// # let segment = Segment::memfd("dead", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let alice = segment.join()?;
    /// // SAFETY: the child attaches for itself.
    /// if let ForkResult::Child = unsafe { fork() }? {
    ///     let bob = Segment::attach_fd(segment.as_fd().try_clone_to_owned()?)?.join()?;
    ///     raise(SIGKILL)?;
    /// }
    /// wait()?;
    /// assert_eq!(alice.dead(), 1);
    /// alice.recover(|_block| Fate::Free);
    /// assert_eq!(alice.dead(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn dead(&self) -> usize {
        self.segment.ledger().count_dead(&self.seat, &self.locks())
    }

    /// Recovers what members held that have died or left. Each block becomes this member's, and `decide` says whether
    /// it is freed at once or kept. Blocks that a dead member was allocating or freeing when it died are included.
    ///
    /// Several members may call this at the same time; each block goes to one of them, and a member that dies in it is
    /// recovered by the next. `decide` must know what is still needed, such as the [root](Segment::root), or messages
    /// that were sent and not yet received; it may use this member. Waits for nobody: where a member stands still in
    /// the middle of an operation, blocks that could be its own are [pending](Recovery::pending), and this member
    /// remembers what it saw for its next call.
    ///
    /// A block or slot that was sent to another member may be [taken](Self::take_from) by it after `recover` has looked
    /// and before `decide` has answered. Then the answer has no effect, though [`kept`](Recovery::kept) counts a
    /// [`Fate::Keep`]. A member that keeps what may have been sent [asks](Heap::owner) whose it is. If it is its own, no
    /// other member that names the dead sender can take it any more, and to itself `take_from` says that it had it
    /// already; who takes it by [`take`](Self::take) still can, and then this member must not free it.
    ///
    /// A claim that died below a larger block than its own, or below a larger claim, is found by the first recovery that
    /// begins after that block was freed, and that claim taken back. Until then it is not pending, and its member no
    /// longer counts as dead: a program in which members die recovers now and then, too, when [`dead`](Self::dead) says
    /// that it need not.
    ///
    /// Cost: a walk over the bookkeeping, a system call or two for each seat, a few more for each whose member is in
    /// the middle of an operation, and memory of the process, which ends if it has none: a few words for each block in
    /// use, and for each slot of the dead. A few words for each block that is pending, and for each seat, stay until
    /// the next call. If `decide` panics, the blocks about which it was not asked are this member's, and are recovered
    /// when it is gone.
    ///
    /// # Panics
    /// If `decide` does, or if a member has written into the bookkeeping, where it must not.
    ///
    /// ```
    /// # use nbbs_shared::{Fate, Geometry, Segment};
    /// # let segment = Segment::memfd("recover", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let (alice, bob) = (segment.join()?, segment.join()?);
    /// bob.alloc_for::<u64>()?;
    /// drop(bob);
    /// assert_eq!(alice.recover(|_block| Fate::Free).freed, 1);
    /// assert_eq!(segment.count_free_bytes(), 64 * 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recover(&self, mut decide: impl FnMut(Block) -> Fate) -> Recovery {
        let decide = |at, bytes| match self.segment.offset_within(at) {
            Some(offset) => decide(Block { offset, bytes }),
            None => Fate::Keep,
        };
        self.segment.slabs().recover(&self.seat, &self.locks(), decide)
    }

    /// Returns the heap of the segment, as this member uses it: memory of any size, also less than a unit.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # use std::alloc::Layout;
    /// # let segment = Segment::memfd("heap", Geometry { units: 64, unit_bytes: 4096, members: 2 })?;
    /// let member = segment.join()?;
    /// let slot = member.heap().alloc(Layout::new::<u64>())?;
    /// assert_eq!(member.heap().block(slot)?.len(), 16); // of a unit's 4096
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn heap(&self) -> Heap<'_> {
        Heap::new(self)
    }

    /// Returns the pool of the segment for this type, as this member uses it.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("pool", Geometry { units: 1024, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let pairs = member.pool::<(u64, u64)>();
    /// let pair = pairs.alloc()?;
    /// assert!(pairs.get(pair).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn pool<T>(&self) -> Pool<'_, T> {
        Pool::new(self)
    }

    /// Returns the kernel's information on which members are alive.
    pub(crate) fn locks(&self) -> Locks<'_> {
        Locks(&self.lock)
    }

    pub(crate) fn bytes(&self, units: u64) -> u64 {
        units * self.segment.geometry().unit_bytes
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // A child of the process that joined has its memory, but not the segment.
        if self.process.is_this() {
            self.segment.slabs().unpin_all(self.seat.number);
            self.segment.ledger().leave(&self.seat);
            self.locks().give_up(self.seat.number);
        }
    }
}

impl MemberId {
    pub(crate) fn of(owner: Owner) -> Option<Self> {
        owner.seat().map(|(seat, generation)| Self { seat, generation })
    }

    /// Returns this member as an owner: nobody if there can be no such seat.
    pub(crate) fn owner(self) -> Owner {
        if self.seat < MAX_SEATS { Owner::new(self.seat, self.generation) } else { Owner::NOBODY }
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "member {}.{}", self.seat, self.generation)
    }
}
