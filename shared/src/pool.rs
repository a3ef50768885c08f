//! The pool of a segment for one type: slots of its class, by typed offsets.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::error::{AllocError, OffsetError};
use crate::heap::Heap;
use crate::member::{Member, MemberId};
use crate::offset::Offset;
use crate::slabs::class;

/// Memory for values of one type, as one member uses it: slots of the [heap](Heap) that have the class of `T`, or
/// blocks if `T` is large.
///
/// The segment does not know what two programs call `T`. It is only checked that a slot has the bytes of the class of
/// `T`, and that it is the member's.
///
/// ```
/// use nbbs_shared::{Geometry, Segment};
///
/// let segment = Segment::memfd("pool", Geometry { units: 1024, unit_bytes: 64, members: 2 })?;
/// let member = segment.join()?;
/// let pairs = member.pool::<(u64, u64)>();
/// let pair = pairs.alloc()?;
/// // SAFETY: the slot is this member's, and nobody else knows of it.
/// unsafe { pairs.get(pair)?.write((1, 2)) };
/// assert!(member.pool::<[u64; 3]>().free(pair.cast()).is_err());
/// pairs.free(pair)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Pool<'m, T>(Heap<'m>, PhantomData<fn() -> *mut T>);

impl<T> Clone for Pool<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Pool<'_, T> {}

impl<'m, T> Pool<'m, T> {
    pub(crate) fn new(member: &'m Member) -> Self {
        Self(member.heap(), PhantomData)
    }

    /// Allocates memory for a `T`, which is not cleared.
    ///
    /// Cost: that of [`Heap::alloc`].
    ///
    /// # Errors
    /// Those of [`Heap::alloc`].
    ///
    /// ```
    /// # use nbbs_shared::{AllocError, Geometry, Segment};
    /// # let segment = Segment::memfd("alloc", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let number = member.pool::<u64>().alloc()?;
    /// assert!(number.bytes().is_multiple_of(8));
    /// let refused = member.pool::<[u64; 1000]>().alloc();
    /// assert!(matches!(refused, Err(AllocError::TooLarge { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc(&self) -> Result<Offset<T>, AllocError> {
        self.0.alloc(Layout::new::<T>()).map(Offset::cast)
    }

    /// Frees the member's memory at `offset`. The value in it is not dropped.
    ///
    /// Cost: that of [`Heap::free`], and of [`get`](Self::get).
    ///
    /// # Errors
    /// Those of [`get`](Self::get). Nothing has changed.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("free", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let numbers = member.pool::<u64>();
    /// let number = numbers.alloc()?;
    /// assert_eq!(numbers.free(number), Ok(()));
    /// assert!(numbers.free(number).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free(&self, offset: Offset<T>) -> Result<(), OffsetError> {
        self.get(offset)?;
        self.0.free(offset).map(drop)
    }

    /// Makes the memory at `offset` this member's, and returns its former owner, as [`Member::take`] does.
    ///
    /// # Errors
    /// Those of [`Heap::take`].
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("take", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let (alice, bob) = (segment.join()?, segment.join()?);
    /// let number = alice.pool::<u64>().alloc()?;
    /// assert_eq!(bob.pool().take(number), Ok(alice.id())); // Alice has sent him the offset
    /// assert!(bob.pool().get(number).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take(&self, offset: Offset<T>) -> Result<MemberId, OffsetError> {
        self.0.take(offset)
    }

    /// Makes the memory at `offset` this member's if it is `from`'s, or this member's already, and returns whose it was,
    /// as [`Member::take_from`] does.
    ///
    /// # Errors
    /// Those of [`Heap::take_from`].
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("from", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let (alice, bob) = (segment.join()?, segment.join()?);
    /// let number = alice.pool::<u64>().alloc()?;
    /// assert!(bob.pool().take_from(number, bob.id()).is_err());
    /// assert_eq!(bob.pool().take_from(number, alice.id()), Ok(alice.id()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_from(&self, offset: Offset<T>, from: MemberId) -> Result<MemberId, OffsetError> {
        self.0.take_from(offset, from)
    }

    /// Returns the address of the member's `T` at `offset` in this process, valid as long as the segment is attached.
    ///
    /// Cost: six loads; for a block, that of [`Member::block`].
    ///
    /// # Errors
    /// [`OffsetError`]: nothing of this member begins there, it has the bytes of another class, or its address in this
    /// process is not aligned for a `T`.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, OffsetError, Segment};
    /// # let segment = Segment::memfd("get", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let number = member.pool::<u64>().alloc()?;
    /// // SAFETY: the slot is this member's.
    /// unsafe { member.pool::<u64>().get(number)?.write(42) };
    /// let refused = member.pool::<[u64; 3]>().get(number.cast());
    /// assert!(matches!(refused, Err(OffsetError::NoSlot { bytes: 16, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get(&self, offset: Offset<T>) -> Result<NonNull<T>, OffsetError> {
        let (found, is_slot) = self.0.found(offset)?;
        let (bytes, layout) = (found.len() as u64, Layout::new::<T>());
        let meant = match self.0.class_of(layout) {
            Some(class) if is_slot => bytes == class::size(class) as u64,
            // What the heap gives if it has no slot.
            Some(_) => bytes == self.0.block_bytes(layout),
            None => bytes >= layout.size() as u64,
        };
        if meant {
            self.0.segment().at(offset)
        } else {
            Err(OffsetError::NoSlot { offset: offset.bytes(), bytes })
        }
    }
}
