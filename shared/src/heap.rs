//! The heap of a segment: memory of any size, in slots if it is small, otherwise in blocks.

use std::alloc::Layout;
use std::ptr::NonNull;

use crate::error::{AllocError, OffsetError};
use crate::ledger::NotHeld;
use crate::member::{Member, MemberId};
use crate::offset::Offset;
use crate::segment::Segment;

/// The heap of a segment, as one member uses it. All members share its memory: one can allocate what another takes and
/// frees.
///
/// Small memory is a *slot*, of 16 bytes to 4 KiB, in steps of 16 bytes up to 128 and of a quarter at most above, with
/// 64 bits for its owner beside it. Slots are cut from *slabs*, blocks that belong to the segment: a 32nd of it, from
/// 256 bytes to 32 KiB, or a unit; never more than the largest block. Larger memory is a block. A slot is owned as a
/// block is: by its member, until that frees it, another takes it, or [recovers](Member::recover) it.
///
/// ```
/// use nbbs_shared::{Geometry, Segment};
/// use std::alloc::Layout;
///
/// let segment = Segment::memfd("heap", Geometry { units: 1024, unit_bytes: 4096, members: 2 })?;
/// let (alice, bob) = (segment.join()?, segment.join()?);
/// let small = alice.heap().alloc(Layout::from_size_align(100, 8)?)?;
/// let large = alice.heap().alloc(Layout::from_size_align(100_000, 8)?)?;
/// assert_eq!(alice.heap().block(small)?.len(), 112);
///
/// bob.heap().take(small)?; // Alice has sent him the offset
/// assert_eq!(bob.heap().free(small)?, 112);
/// assert!(bob.heap().free(small).is_err());
/// assert_eq!(alice.heap().free(large)?, 1 << 17);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Heap<'m>(&'m Member);

impl<'m> Heap<'m> {
    pub(crate) fn new(member: &'m Member) -> Self {
        Self(member)
    }

    pub(crate) fn segment(&self) -> &'m Segment {
        self.0.segment()
    }

    /// Allocates memory of at least this size and alignment, which is not cleared.
    ///
    /// Cost: a slot takes one read-modify-write if the slab that the member used last has a free one, and a load for
    /// each slot of it in use on the way. Otherwise a few places are searched for another slab, or one is made. A block
    /// costs what [`Member::alloc`] does. Before it refuses, it searches the whole segment, [trims](Self::trim) it, which
    /// takes memory of the process, and takes a block instead of a slot if there is one. Waits for nobody.
    ///
    /// # Errors
    /// [`AllocError`]. After [`Exhausted`](AllocError::Exhausted), [`Member::recover`] may find memory of the dead. It
    /// does not find an empty slab that another member is just [trimming](Self::trim).
    ///
    /// # Panics
    /// If a member has written into the bookkeeping, where it must not.
    ///
    /// ```
    /// # use nbbs_shared::{AllocError, Geometry, Segment};
    /// # use std::alloc::Layout;
    /// let segment = Segment::memfd("alloc", Geometry { units: 1024, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let slot = member.heap().alloc(Layout::new::<u64>())?;
    /// assert_eq!(member.heap().block(slot)?.len(), 16);
    /// let refused = member.heap().alloc(Layout::new::<[u8; 1 << 20]>());
    /// assert!(matches!(refused, Err(AllocError::TooLarge { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc(&self, layout: Layout) -> Result<Offset<u8>, AllocError> {
        let Self(member) = self;
        let Some(class) = self.class_of(layout) else { return member.alloc(layout) };
        match self.alloc_slot(class) {
            Some(slot) => Ok(slot),
            None => self.alloc_at_last(class, layout),
        }
    }

    /// Allocates a slot after a trim, or a block if there is none for a slab.
    #[cold]
    fn alloc_at_last(&self, class: usize, layout: Layout) -> Result<Offset<u8>, AllocError> {
        let slot = if self.trim() > 0 { self.alloc_slot(class) } else { None };
        slot.map_or_else(|| self.0.alloc_block(layout), Ok)
    }

    /// Returns the class of the slots for a layout. `None`: it takes a block.
    #[inline(always)]
    pub(crate) fn class_of(&self, layout: Layout) -> Option<usize> {
        self.0.segment().slabs().shape.class_of(layout)
    }

    /// Returns the bytes of the block that a layout takes.
    pub(crate) fn block_bytes(&self, layout: Layout) -> u64 {
        self.0.bytes(1 << self.0.order_for(layout))
    }

    #[inline(always)]
    fn alloc_slot(&self, class: usize) -> Option<Offset<u8>> {
        let Self(member) = self;
        let at = member.segment().slabs().alloc(&member.seat, &member.cursors, class)?;
        member.segment().offset_within(at)
    }

    /// Frees the member's slot or block at `offset`, and returns its bytes.
    ///
    /// Cost: for a slot, a read-modify-write, four loads, and sometimes a store; for a block, one load more than
    /// [`Member::free`]. Waits for nobody.
    ///
    /// # Errors
    /// [`OffsetError`]: nothing of this member begins there. Nothing has changed.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, OffsetError, Segment};
    /// # use std::alloc::Layout;
    /// # let segment = Segment::memfd("free", Geometry { units: 1024, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let slot = member.heap().alloc(Layout::new::<u64>())?;
    /// assert_eq!(member.heap().free(slot), Ok(16));
    /// assert!(matches!(member.heap().free(slot), Err(OffsetError::NotYours { owner: None, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free<T: ?Sized>(&self, offset: Offset<T>) -> Result<u64, OffsetError> {
        let Self(member) = self;
        let at = member.segment().within(offset.bytes())?;
        match member.segment().slabs().free(&member.seat, &member.cursors, at) {
            Some(freed) => freed.map_err(|error| member.segment().refusal(offset.bytes(), error)),
            None => member.free(offset),
        }
    }

    /// Makes the slot or block at `offset` this member's, and returns its former owner, as [`Member::take`] does.
    ///
    /// Cost: a read-modify-write; for a slot, also two stores and a fence.
    ///
    /// # Errors
    /// [`OffsetError`]: it is nobody's, or nothing begins there.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # use std::alloc::Layout;
    /// # let segment = Segment::memfd("take", Geometry { units: 1024, unit_bytes: 64, members: 2 })?;
    /// let (alice, bob) = (segment.join()?, segment.join()?);
    /// let slot = alice.heap().alloc(Layout::new::<u64>())?;
    /// assert_eq!(bob.heap().take(slot), Ok(alice.id())); // Alice has sent him the offset
    /// assert!(alice.heap().free(slot).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take<T: ?Sized>(&self, offset: Offset<T>) -> Result<MemberId, OffsetError> {
        self.take_of(offset, None)
    }

    /// Makes the slot or block at `offset` this member's if it is `from`'s, or this member's already, and returns whose
    /// it was, as [`Member::take_from`] does.
    ///
    /// # Errors
    /// [`OffsetError`]: it is neither `from`'s nor this member's, or nothing begins there.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, OffsetError, Segment};
    /// # use std::alloc::Layout;
    /// # let segment = Segment::memfd("from", Geometry { units: 1024, unit_bytes: 64, members: 3 })?;
    /// let (alice, bob, carol) = (segment.join()?, segment.join()?, segment.join()?);
    /// let slot = alice.heap().alloc(Layout::new::<u64>())?;
    /// assert_eq!(bob.heap().take_from(slot, alice.id()), Ok(alice.id())); // Alice has sent him the offset
    /// assert_eq!(bob.heap().take_from(slot, alice.id()), Ok(bob.id())); // and once more
    /// let late = carol.heap().take_from(slot, alice.id());
    /// assert!(matches!(late, Err(OffsetError::NotYours { owner: Some(id), .. }) if id == bob.id()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_from<T: ?Sized>(
        &self,
        offset: Offset<T>,
        from: MemberId,
    ) -> Result<MemberId, OffsetError> {
        self.take_of(offset, Some(from))
    }

    fn take_of<T: ?Sized>(
        &self,
        offset: Offset<T>,
        from: Option<MemberId>,
    ) -> Result<MemberId, OffsetError> {
        let Self(member) = self;
        let at = member.segment().within(offset.bytes())?;
        match member.segment().slabs().take(&member.seat, at, from.map(MemberId::owner)) {
            Some(taken) => member.taken(offset, taken),
            None => member.take_of(offset, from),
        }
    }

    /// Returns all bytes of the member's slot or block at `offset`. They stay in place as long as the segment is
    /// attached.
    ///
    /// # Errors
    /// [`OffsetError`]: nothing of this member begins there.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # use std::alloc::Layout;
    /// # let segment = Segment::memfd("block", Geometry { units: 1024, unit_bytes: 64, members: 2 })?;
    /// let (alice, bob) = (segment.join()?, segment.join()?);
    /// let slot = alice.heap().alloc(Layout::new::<[u8; 100]>())?;
    /// assert_eq!(alice.heap().block(slot)?.len(), 112);
    /// assert!(bob.heap().block(slot).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn block<T: ?Sized>(&self, offset: Offset<T>) -> Result<NonNull<[u8]>, OffsetError> {
        self.found(offset).map(|(block, _)| block)
    }

    /// Returns all bytes of the member's slot or block at `offset`, and whether it is a slot.
    #[inline]
    pub(crate) fn found<T: ?Sized>(
        &self,
        offset: Offset<T>,
    ) -> Result<(NonNull<[u8]>, bool), OffsetError> {
        let Self(member) = self;
        let at = member.segment().within(offset.bytes())?;
        let Some(found) = member.segment().slabs().owner_at(at) else {
            return member.block(offset).map(|block| (block, false));
        };
        let held = found.and_then(|(bytes, owner)| {
            if owner == member.seat.owner { Ok(bytes) } else { Err(NotHeld::By(owner)) }
        });
        let bytes = held.map_err(|error| member.segment().refusal(offset.bytes(), error))?;
        let start = member.segment().start_of(offset.bytes(), bytes)?;
        Ok((NonNull::slice_from_raw_parts(start, bytes as usize), true))
    }

    /// Returns the member whose slot or block begins at an offset, at this moment, as [`Segment::owner`] does.
    ///
    /// # Errors
    /// Those of [`Segment::owner`].
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # use std::alloc::Layout;
    /// # let segment = Segment::memfd("owner", Geometry { units: 1024, unit_bytes: 64, members: 2 })?;
    /// let (alice, bob) = (segment.join()?, segment.join()?);
    /// let slot = alice.heap().alloc(Layout::new::<u64>())?;
    /// assert_eq!(bob.heap().owner(slot), Ok(Some(alice.id())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn owner<T: ?Sized>(&self, offset: Offset<T>) -> Result<Option<MemberId>, OffsetError> {
        self.0.segment().owner(offset)
    }

    /// Makes empty slabs blocks again, for any use, and returns how many.
    ///
    /// A slab stays if another live member used it last for its class: at most one for each class and member. So does a
    /// slab that another member trims at the same time; the next trim finds it.
    ///
    /// Cost: a walk over the bookkeeping, two read-modify-writes for each slot of an empty slab, a system call for each
    /// other member that uses the heap, and memory of the process, which ends if it has none: a few words for each block
    /// in use, and for each slab that a member used last.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # use std::alloc::Layout;
    /// let segment = Segment::memfd("trim", Geometry { units: 1024, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let slot = member.heap().alloc(Layout::new::<u64>())?;
    /// member.heap().free(slot)?;
    /// assert_eq!(segment.count_free_bytes(), (1024 - 32) * 64);
    /// assert_eq!(member.heap().trim(), 1);
    /// assert_eq!(segment.count_free_bytes(), 1024 * 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&self) -> usize {
        let Self(member) = self;
        member.segment().slabs().trim(&member.seat, &member.cursors, &member.locks())
    }
}
