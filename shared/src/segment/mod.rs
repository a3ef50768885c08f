//! Segments: created, attached, and shared by the members of this process.
//!
//! ```text
//! file    creates files      look    tells what is in them      lock    tells which members are alive
//! map     maps memory        join      makes members
//! ```

mod file;
mod join;
mod lock;
mod look;
mod map;

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use nbbs::{Buddy, MetadataError};

use crate::error::{AttachError, GeometryError, OffsetError, PathError};
use crate::header::ROOT_AT;
use crate::layout::{Geometry, Layout};
use crate::ledger::{Ledger, NotHeld, Owner, TURN_STRIDE};
use crate::member::MemberId;
use crate::offset::{AtomicOffset, Offset};
use crate::slabs::class::Shape;
use crate::slabs::{HINTS, PIN_STRIDE, Slabs};
pub(crate) use lock::Locks;
use map::{Arena, Map};

/// Memory from which several processes allocate. This is a handle: clones are the same segment.
///
/// A child of `fork` inherits neither the mapping nor any member: it must not use what its parent made, and attaches
/// for itself. Until a child has ended, or executed another program, members of its parent that die count as alive, as
/// the child has their locks, too. Those that leave do not.
///
/// ```
/// use nbbs_shared::{Geometry, Segment};
///
/// let segment = Segment::memfd("handle", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
/// let same = segment.clone();
/// let member = std::thread::spawn(move || same.join()).join().unwrap()?;
/// member.alloc_for::<u64>()?;
/// assert_eq!(segment.count_free_bytes(), 63 * 64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Segment(Arc<Attached>);

/// A segment in this process.
struct Attached {
    /// It borrows from the mapping, hence it is private, and comes before it.
    slabs: Slabs<'static, AtomicU64, Arena>,
    map: Arc<Map>,
    layout: Layout,
    file: File,
    /// The file's device and number.
    id: (u64, u64),
}

impl Segment {
    /// Makes a segment in the file at `path`, such as `/dev/shm/name`, and attaches to it. Only its owner may open it.
    ///
    /// All of its memory is reserved now. A file of the caller that is empty, or holds a segment whose creator died
    /// before it was whole, is taken over (one that is empty and has the sticky bit counts as a creator's that died),
    /// and whoever may not open the segment may not open the file either from then on. Another user's file is refused,
    /// and so is one whose segment has or had members, or a root, whatever its header says: a damaged segment stays as
    /// it is until somebody removes the file. A symbolic link leads to a file that is there; through one to nothing no
    /// file is created. Whoever is attached to what is taken over, without a member, should attach again.
    ///
    /// # Errors
    /// [`PathError`], which names the path and why: [`AttachError::Geometry`]; [`AttachError::Exists`];
    /// [`AttachError::Making`] if another process is just making it; [`AttachError::Foreign`] and others if the file
    /// holds something else, [`AttachError::Used`] and others if it holds a damaged segment; [`AttachError::System`].
    /// In none of these cases has an existing file changed, except in the last, when its mode may have, and it may be
    /// empty. A file that was created is removed.
    ///
    /// ```
    /// use nbbs_shared::{AttachError, Geometry, Segment};
    ///
    /// let path = std::env::temp_dir().join(format!("nbbs-create-{}", std::process::id()));
    /// let geometry = Geometry { units: 256, unit_bytes: 4096, members: 8 };
    /// let made = Segment::create(&path, geometry)?;
    /// let refused = Segment::create(&path, geometry).unwrap_err();
    /// assert_eq!((refused.error, refused.path), (AttachError::Exists, path.clone()));
    /// assert_eq!(Segment::attach(&path)?.geometry(), geometry);
    /// std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create(path: impl AsRef<Path>, geometry: Geometry) -> Result<Self, PathError> {
        Self::create_for(path, geometry, 0o600)
    }

    /// Makes a segment as [`create`](Self::create) does, with the caller's permissions: `0o660` for a group. The
    /// process's umask is taken off if the file is new.
    ///
    /// # Errors
    /// Those of [`create`](Self::create).
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # use std::os::unix::fs::MetadataExt;
    /// let path = std::env::temp_dir().join(format!("nbbs-create-for-{}", std::process::id()));
    /// Segment::create_for(&path, Geometry { units: 64, unit_bytes: 64, members: 2 }, 0o400)?;
    /// assert_eq!(std::fs::metadata(&path)?.mode() & 0o777, 0o400);
    /// std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_for(
        path: impl AsRef<Path>,
        geometry: Geometry,
        mode: u32,
    ) -> Result<Self, PathError> {
        let path = path.as_ref();
        let create = || {
            let layout = Layout::new(geometry)?;
            file::create(path, &layout, mode, |file| Self::map(file, layout))
        };
        create().map_err(PathError::at(path))
    }

    /// Makes a segment in memory without a name, to which others attach by its descriptor: [`as_fd`](Self::as_fd).
    /// `name` is for debuggers.
    ///
    /// # Errors
    /// [`AttachError::Geometry`], [`AttachError::Name`] and [`AttachError::System`].
    ///
    /// ```
    /// # use nbbs_shared::{AttachError, Geometry, Segment};
    /// let geometry = Geometry { units: 64, unit_bytes: 64, members: 2 };
    /// assert_eq!(Segment::memfd("memory", geometry)?.count_free_bytes(), 64 * 64);
    /// let refused = Segment::memfd("none", Geometry { units: 0, ..geometry });
    /// assert!(matches!(refused, Err(AttachError::Geometry(_))));
    /// # Ok::<(), AttachError>(())
    /// ```
    pub fn memfd(name: impl AsRef<OsStr>, geometry: Geometry) -> Result<Self, AttachError> {
        let layout = Layout::new(geometry)?;
        Self::map(file::create_unnamed(name.as_ref(), &layout)?, layout)
    }

    /// Attaches to the segment in the file at `path`, whatever its dimensions are:
    /// [`check_geometry`](Self::check_geometry) refuses others than the caller expects.
    ///
    /// # Errors
    /// [`PathError`], which names the path and why: any [`AttachError`] except [`Exists`](AttachError::Exists);
    /// [`Making`](AttachError::Making) also of an empty file. Nothing was changed, and nothing was mapped except with
    /// [`Bookkeeping`](AttachError::Bookkeeping).
    ///
    /// ```
    /// use nbbs_shared::{AttachError, Segment};
    ///
    /// assert_eq!(Segment::attach("/bin/sh").unwrap_err().error, AttachError::Foreign);
    /// ```
    pub fn attach(path: impl AsRef<Path>) -> Result<Self, PathError> {
        Self::attach_at(path.as_ref()).map_err(PathError::at(path.as_ref()))
    }

    fn attach_at(path: &Path) -> Result<Self, AttachError> {
        file::check_path(path)?;
        let opened = file::opening().write(true).open(path);
        // Distinguishes a file that may only be read from one that is not a segment.
        let readable = || file::opening().open(path).ok();
        match opened {
            Ok(file) => Self::attach_file(file),
            Err(error) => {
                readable().map_or(Ok(()), |file| look::check(&file).map(drop))?;
                Err(AttachError::io("open the file for writing")(error))
            }
        }
    }

    /// Attaches to the segment of a descriptor, which was inherited, or received over a socket.
    ///
    /// # Errors
    /// Those of [`attach`](Self::attach), without a path.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # use std::os::fd::AsFd;
    /// let segment = Segment::memfd("sent", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let received = segment.as_fd().try_clone_to_owned()?; // as by a socket
    /// let attached = Segment::attach_fd(received)?;
    /// assert_eq!(attached.geometry(), segment.geometry());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attach_fd(fd: OwnedFd) -> Result<Self, AttachError> {
        Self::attach_file(File::from(fd))
    }

    fn attach_file(file: File) -> Result<Self, AttachError> {
        let layout = look::check(&file)?;
        Self::map(file, layout)
    }

    /// Maps a file that was found to be in order.
    fn map(file: File, layout: Layout) -> Result<Self, AttachError> {
        let Geometry { units, unit_bytes, members } = layout.geometry;
        let corrupt = |field, value| AttachError::Corrupt { field, value };
        let bytes = usize::try_from(layout.bytes).ok().and_then(NonZeroUsize::new);
        let id = lock::id(&file).map_err(AttachError::io("look at the file"))?;
        let map = Map::new(&file, bytes.ok_or(corrupt("bytes in all", layout.bytes))?)?;
        let words = |at, count: u64| {
            let words = usize::try_from(count).ok().and_then(|count| map.words(at, count));
            // SAFETY: the words live as long as the mapping, which is in the same `Attached` as everything that uses
            // them, and is dropped after it.
            words.map(|words| unsafe { slice::from_raw_parts(words.as_ptr(), words.len()) })
        };
        let parts = || {
            let buddy = words(layout.words, nbbs::metadata_words(units) as u64)?;
            Some((
                buddy,
                words(layout.tags, units)?,
                words(layout.turns, members * TURN_STRIDE as u64)?,
                words(layout.pins, members * PIN_STRIDE as u64)?,
                words(layout.hints, HINTS as u64)?,
            ))
        };
        let (buddy, tags, turns, pins, hints) =
            parts().ok_or(corrupt("bytes in all", layout.bytes))?;
        let buddy = Buddy::attach(buddy, units).map_err(|error| match error {
            MetadataError::Foreign { word, .. } => AttachError::Bookkeeping { word },
            _ => corrupt("number of units", units),
        })?;
        let map = Arc::new(map);
        let arena = Arena::new(Arc::clone(&map), layout.arena, layout.end());
        let ledger = Ledger::new(buddy, tags, turns);
        let slabs = Slabs::new(ledger, arena, pins, hints, Shape::new(units, unit_bytes));
        Ok(Self(Arc::new(Attached { slabs, map, layout, file, id })))
    }

    /// Returns the dimensions of the segment. Callable from interrupt and signal handlers; costs no access to the
    /// segment.
    ///
    /// ```
    /// # use nbbs_shared::{AttachError, Geometry, Segment};
    /// let geometry = Geometry { units: 64, unit_bytes: 64, members: 2 };
    /// assert_eq!(Segment::memfd("geometry", geometry)?.geometry(), geometry);
    /// # Ok::<(), AttachError>(())
    /// ```
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.0.layout.geometry
    }

    /// Refuses a segment of other dimensions than its user expects. Attaching does not: the creator chooses them. Callable
    /// from interrupt and signal handlers; costs no access to the segment.
    ///
    /// # Errors
    /// [`GeometryError::Unexpected`], which names both. The segment stays attached.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// let geometry = Geometry { units: 64, unit_bytes: 64, members: 2 };
    /// # let segment = Segment::memfd("expected", geometry)?;
    /// segment.check_geometry(geometry)?;
    /// let refused = segment.check_geometry(Geometry { units: 128, ..geometry }).unwrap_err();
    /// let said = "the segment has 64 units of 64 bytes, and seats for 2 members: \
    ///     expected were 128 units of 64 bytes, and seats for 2 members";
    /// assert_eq!(refused.to_string(), said);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_geometry(&self, expected: Geometry) -> Result<(), GeometryError> {
        let found = self.geometry();
        if found == expected { Ok(()) } else { Err(GeometryError::Unexpected { found, expected }) }
    }

    /// Returns the bytes that nobody holds, counted as [`nbbs::Buddy::count_free`] does, at the same cost.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("free", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// member.alloc_for::<[u8; 100]>()?;
    /// assert_eq!(segment.count_free_bytes(), (64 - 2) * 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count_free_bytes(&self) -> u64 {
        self.ledger().buddy.count_free() * self.geometry().unit_bytes
    }

    /// Returns an offset for whatever the members agree on, by which a newcomer finds everything else. It is none at
    /// first.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # use std::sync::atomic::Ordering::{Acquire, Release};
    /// # let segment = Segment::memfd("root", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let table = member.alloc_for::<[u64; 100]>()?;
    /// segment.root().store(Some(table), Release);
    /// assert_eq!(segment.root::<[u64; 100]>().load(Acquire), Some(table));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[expect(clippy::missing_panics_doc)]
    pub fn root<T>(&self) -> &AtomicOffset<T> {
        let at = self.0.map.words(ROOT_AT as u64, 1).expect("the header has a page");
        // SAFETY: an `AtomicOffset` is an `AtomicU64`, and lives as long.
        unsafe { &*at.as_ptr().cast() }
    }

    /// Returns the address of a `T` in this process. Its memory may be any member's, or nobody's: the caller must know
    /// what is there, and who may touch it. Callable from interrupt and signal handlers; costs no access to the
    /// segment.
    ///
    /// # Errors
    /// [`OffsetError::Outside`] and [`OffsetError::Misaligned`].
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Offset, OffsetError, Segment};
    /// # let segment = Segment::memfd("at", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let number = member.alloc_for::<u64>()?;
    /// let at = segment.at(number)?;
    /// // SAFETY: the block is this member's.
    /// unsafe { at.write(7) };
    /// assert!(matches!(segment.at(Offset::<u64>::new(8).unwrap()), Err(OffsetError::Outside { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at<T>(&self, offset: Offset<T>) -> Result<NonNull<T>, OffsetError> {
        let (offset, align) = (offset.bytes(), align_of::<T>() as u64);
        let start = self.bytes_at(offset, size_of::<T>())?.cast::<T>();
        if start.is_aligned() { Ok(start) } else { Err(OffsetError::Misaligned { offset, align }) }
    }

    /// Returns the address in this process of `bytes` bytes that begin at an offset, as [`at`](Self::at) does, for
    /// untyped memory, at the same cost.
    ///
    /// # Errors
    /// [`OffsetError::Outside`].
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("bytes", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let block = member.alloc_for::<[u8; 64]>()?;
    /// assert_eq!(segment.bytes_at(block.bytes(), 64)?, segment.at(block)?.cast());
    /// assert!(segment.bytes_at(block.bytes(), 1 << 20).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bytes_at(&self, offset: u64, bytes: usize) -> Result<NonNull<u8>, OffsetError> {
        self.start_of(offset, bytes as u64)
    }

    /// Returns the offset of an address in this process, if that is in the memory that is handed out. Callable from
    /// interrupt and signal handlers; costs no access to the segment.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("address", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let number = member.alloc_for::<u64>()?;
    /// let at = segment.at(number)?;
    /// assert_eq!(segment.offset_at(at.as_ptr()), Some(number));
    /// assert_eq!(segment.offset_at(&raw const segment), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn offset_at<T>(&self, address: *const T) -> Option<Offset<T>> {
        let offset = address.addr().checked_sub(self.0.map.address())? as u64;
        self.check(offset, size_of::<T>() as u64).ok()?;
        Offset::new(offset)
    }

    /// Returns the member whose block, or slot of the heap, begins at an offset, at this moment. Callable from interrupt
    /// and signal handlers. Cost: a few loads.
    ///
    /// # Errors
    /// [`OffsetError::Outside`], [`OffsetError::Misaligned`] and [`OffsetError::NoSlot`].
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, Segment};
    /// # let segment = Segment::memfd("owner", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
    /// let member = segment.join()?;
    /// let block = member.alloc_for::<u64>()?;
    /// assert_eq!(segment.owner(block), Ok(Some(member.id())));
    /// member.free(block)?;
    /// assert_eq!(segment.owner(block), Ok(None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn owner<T: ?Sized>(&self, offset: Offset<T>) -> Result<Option<MemberId>, OffsetError> {
        if let Some(slot) = self.slabs().owner_at(self.within(offset.bytes())?) {
            let owner = slot.map_err(|error| self.refusal(offset.bytes(), error))?.1;
            return Ok(MemberId::of(owner));
        }
        let index = self.index_of(offset.bytes())?;
        let owner = self.ledger().owner_at(index).unwrap_or(Owner::NOBODY);
        Ok(MemberId::of(owner))
    }

    /// What is said of something at an offset that is not a member's.
    #[cold]
    pub(crate) fn refusal(&self, offset: u64, error: NotHeld) -> OffsetError {
        match error {
            NotHeld::NoSlot(bytes) => OffsetError::NoSlot { offset, bytes },
            NotHeld::By(owner) => OffsetError::NotYours { offset, owner: MemberId::of(owner) },
            NotHeld::Damaged => OffsetError::Damaged { offset },
            NotHeld::Outside => {
                let (start, end) = (self.layout().arena, self.layout().end());
                OffsetError::Outside { offset, bytes: self.geometry().unit_bytes, start, end }
            }
        }
    }

    pub(crate) fn ledger(&self) -> &Ledger<'static, AtomicU64> {
        &self.0.slabs.ledger
    }

    #[inline(always)]
    pub(crate) fn slabs(&self) -> &Slabs<'static, AtomicU64, Arena> {
        &self.0.slabs
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// Returns the unit that begins at an offset.
    #[inline]
    pub(crate) fn index_of(&self, offset: u64) -> Result<u64, OffsetError> {
        let align = self.geometry().unit_bytes;
        // By its first byte: behind an offset inside the last unit there is less than a unit.
        let within = self.within(offset).map_err(|_| self.outside(offset, align))?;
        if within & (align - 1) == 0 {
            Ok(within >> self.layout().unit_log2())
        } else {
            Err(OffsetError::Misaligned { offset, align })
        }
    }

    /// Returns the offset of a unit.
    #[inline]
    pub(crate) fn offset_of<T: ?Sized>(&self, index: u64) -> Option<Offset<T>> {
        Offset::new(self.layout().arena + (index << self.layout().unit_log2()))
    }

    /// Returns how far from the first unit an offset is.
    #[inline]
    pub(crate) fn within(&self, offset: u64) -> Result<u64, OffsetError> {
        self.check(offset, 1).map(|()| offset - self.layout().arena)
    }

    /// Returns the offset of the place this many bytes from the first unit.
    #[inline]
    pub(crate) fn offset_within<T: ?Sized>(&self, at: u64) -> Option<Offset<T>> {
        Offset::new(self.layout().arena + at)
    }

    /// Returns the address of this many bytes, all of them units.
    pub(crate) fn start_of(&self, offset: u64, bytes: u64) -> Result<NonNull<u8>, OffsetError> {
        self.check(offset, bytes)?;
        let within = usize::try_from(bytes).ok().and_then(|bytes| self.0.map.bytes(offset, bytes));
        within.ok_or_else(|| self.outside(offset, bytes))
    }

    #[inline]
    fn check(&self, offset: u64, bytes: u64) -> Result<(), OffsetError> {
        let end = offset.checked_add(bytes);
        if offset >= self.layout().arena && end.is_some_and(|end| end <= self.layout().end()) {
            return Ok(());
        }
        Err(self.outside(offset, bytes))
    }

    #[cold]
    fn outside(&self, offset: u64, bytes: u64) -> OffsetError {
        let (start, end) = (self.layout().arena, self.layout().end());
        OffsetError::Outside { offset, bytes, start, end }
    }
}

impl AsFd for Segment {
    /// Returns the file's descriptor, to be handed to another process.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

// Not what is in it: there are thousands of words.
impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("geometry", &self.geometry()).finish_non_exhaustive()
    }
}
