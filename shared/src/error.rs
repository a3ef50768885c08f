//! Errors. Every error names the value and the limit that it broke.

use std::alloc::Layout;
use std::path::{Path, PathBuf};
use std::{error, fmt, io};

use nix::errno::Errno;

use crate::header::HEADER_BYTES;
use crate::layout::Geometry;
use crate::member::MemberId;

/// Why a geometry is that of no segment, or not that of this one.
///
/// ```
/// use nbbs_shared::Geometry;
///
/// let refused = Geometry { units: 64, unit_bytes: 100, members: 8 }.file_bytes().unwrap_err();
/// assert_eq!(refused.to_string(), "units of 100 bytes: a power of two from 64 to 1073741824");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GeometryError {
    /// The number of units is out of range.
    Units {
        /// Units given.
        units: u64,
        /// The most.
        max: u64,
    },
    /// The size of a unit is out of range, or not a power of two.
    UnitBytes {
        /// Bytes given.
        unit_bytes: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// The number of seats is out of range.
    Members {
        /// Seats given.
        members: u64,
        /// The most.
        max: u64,
    },
    /// The segment would be too large.
    Bytes {
        /// Units given.
        units: u64,
        /// Bytes of a unit.
        unit_bytes: u64,
        /// Bytes of such a segment, with its bookkeeping, or `u64::MAX` if they are more.
        bytes: u64,
        /// The most bytes of a segment.
        max: u64,
    },
    /// The segment has other dimensions than its user expects.
    Unexpected {
        /// Those of the segment.
        found: Geometry,
        /// Those that are expected.
        expected: Geometry,
    },
}

/// Why a file was not attached. Nothing of it has changed.
///
/// ```
/// use nbbs_shared::{AttachError, Segment};
///
/// let script = std::fs::File::open("/bin/sh")?;
/// let refused = Segment::attach_fd(script.into()).unwrap_err();
/// assert_eq!(refused, AttachError::Foreign);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttachError {
    /// The system refused.
    System {
        /// What the system was asked to do.
        what: &'static str,
        /// Why not: `errno`.
        errno: i32,
    },
    /// The file does not begin like a segment.
    Foreign,
    /// The file is shorter than its header says, or than a header.
    Short {
        /// Bytes of the file.
        bytes: u64,
        /// Bytes that it must have.
        least: u64,
    },
    /// The segment was made by other code.
    Version {
        /// Version of the layout.
        version: u64,
        /// The version that this code knows.
        known: u64,
    },
    /// The header has changed since it was written.
    Checksum {
        /// Checksum in the header.
        found: u64,
        /// Checksum of the header.
        computed: u64,
    },
    /// A field of the header has no meaning, or cannot be right: the segment has members, and is not whole by its state.
    Corrupt {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: u64,
    },
    /// The buddy allocator's words are not those of an arena of this size: a word that is never written is not zero.
    Bookkeeping {
        /// Position of the word.
        word: usize,
    },
    /// The name of a memfd is too long.
    Name {
        /// Bytes of the name.
        bytes: usize,
        /// The most.
        max: usize,
    },
    /// A segment as it is asked for, or as the header describes it, cannot exist.
    Geometry(GeometryError),
    /// The segment is not made yet: somebody is making it at this moment, or the file is empty, as it is just before.
    /// It stays so if the creator dies before it has written anything, or while a child lives that it has forked in the
    /// middle: [`create`](crate::Segment::create) makes it, in the latter case after the child has ended.
    Making,
    /// The creator died while it was making the segment: [`create`](crate::Segment::create) takes it over.
    HalfMade,
    /// The segment is not whole by its header, but was used since it was made: somebody has written over its state.
    /// Whoever does not need what is in it removes the file.
    Used {
        /// Position of a byte that is not zero, in the file.
        at: u64,
    },
    /// There is a whole segment already, which is not overwritten.
    Exists,
}

/// Why a segment was not made in the file at a path, or not attached to there.
///
/// ```
/// use nbbs_shared::{AttachError, Segment};
///
/// let refused = Segment::attach("/dev/shm/no segment").unwrap_err();
/// assert!(matches!(refused.error, AttachError::System { .. }));
/// assert!(refused.to_string().starts_with("\"/dev/shm/no segment\": "));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathError {
    /// The path.
    pub path: PathBuf,
    /// Why not.
    pub error: AttachError,
}

/// Why a member was not registered.
///
/// ```
/// use nbbs_shared::{Geometry, JoinError, Segment};
///
/// let segment = Segment::memfd("seat", Geometry { units: 64, unit_bytes: 64, members: 1 })?;
/// let member = segment.join()?;
/// assert_eq!(segment.join().unwrap_err(), JoinError::Full { members: 1 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// All seats are taken by live members.
    Full {
        /// Seats.
        members: usize,
    },
    /// No seat is free, but not all are taken by live members: at this moment others are taking or leaving the rest.
    /// Another attempt may succeed; not as long as whoever does so has been stopped in the middle.
    Changing {
        /// Seats.
        members: usize,
        /// How many of them are being taken or left.
        changing: usize,
    },
    /// The system refused.
    System {
        /// What the system was asked to do.
        what: &'static str,
        /// Why not: `errno`.
        errno: i32,
    },
}

/// Why an allocation was refused.
///
/// ```
/// use nbbs_shared::{AllocError, Geometry, Segment};
///
/// let segment = Segment::memfd("full", Geometry { units: 64, unit_bytes: 64, members: 1 })?;
/// let member = segment.join()?;
/// let refused = member.alloc_for::<[u8; 5000]>();
/// assert!(matches!(refused, Err(AllocError::TooLarge { max: 4096, .. })));
/// assert!(member.alloc_for::<[u8; 4096]>().is_ok());
/// assert!(matches!(member.alloc_for::<u64>(), Err(AllocError::Exhausted { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocError {
    /// The segment has no block that large, however empty it is.
    TooLarge {
        /// The request.
        layout: Layout,
        /// Bytes of the largest block.
        max: u64,
    },
    /// No such block is free now. Recovery may free what the dead hold.
    Exhausted {
        /// The request.
        layout: Layout,
    },
    /// Blocks are not aligned that much, wherever the segment is mapped.
    Alignment {
        /// The request.
        layout: Layout,
        /// The most: a page, or the bytes of the largest block.
        max: u64,
    },
    /// A member has written where it must not: the bookkeeping names a unit that does not exist.
    Damaged,
}

/// Why an offset was refused.
///
/// ```
/// use nbbs_shared::{Geometry, OffsetError, Segment};
///
/// let segment = Segment::memfd("theirs", Geometry { units: 64, unit_bytes: 64, members: 2 })?;
/// let (alice, bob) = (segment.join()?, segment.join()?);
/// let block = alice.alloc_for::<u64>()?;
/// let refused = OffsetError::NotYours { offset: block.bytes(), owner: Some(alice.id()) };
/// assert_eq!(bob.free(block), Err(refused));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffsetError {
    /// It is not within the memory that is handed out.
    Outside {
        /// Offset given.
        offset: u64,
        /// Number of bytes needed from there on.
        bytes: u64,
        /// Where that memory begins.
        start: u64,
        /// The byte behind its end.
        end: u64,
    },
    /// It is not aligned for what should be there.
    Misaligned {
        /// Offset given.
        offset: u64,
        /// Alignment in bytes.
        align: u64,
    },
    /// No block of the member begins there.
    NotYours {
        /// Offset given.
        offset: u64,
        /// The owner. `None`: nobody.
        owner: Option<MemberId>,
    },
    /// It is within a slab of the heap, and no slot begins there, or a slot of another size than that of a pool.
    NoSlot {
        /// Offset given.
        offset: u64,
        /// Bytes of the slots there.
        bytes: u64,
    },
    /// A member has written where it must not: the block is the member's by its tag, but is not allocated.
    Damaged {
        /// Offset given.
        offset: u64,
    },
}

impl AttachError {
    pub(crate) fn system(what: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::System { what, errno: errno as i32 }
    }

    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::System { what, errno: errno_of(&error) }
    }
}

impl PathError {
    pub(crate) fn at(path: &Path) -> impl Fn(AttachError) -> Self {
        move |error| Self { path: path.to_owned(), error }
    }
}

/// Returns the number of the system's error. An error without a number failed half-way.
pub(crate) fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::EIO as i32)
}

fn refused(what: &str, errno: i32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "cannot {what}: {}", io::Error::from_raw_os_error(errno))
}

impl From<GeometryError> for AttachError {
    fn from(error: GeometryError) -> Self {
        Self::Geometry(error)
    }
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Units { units, max } => write!(f, "{units} units: a segment has 1 to {max}"),
            Self::UnitBytes { unit_bytes, min, max } => {
                write!(f, "units of {unit_bytes} bytes: a power of two from {min} to {max}")
            }
            Self::Members { members, max } => {
                write!(f, "{members} members: a segment has seats for 1 to {max}")
            }
            Self::Bytes { units, unit_bytes, bytes, max } => write!(
                f,
                "{units} units of {unit_bytes} bytes take {bytes} bytes: a segment has at most {max}"
            ),
            Self::Unexpected { found, expected } => {
                dimensions("the segment has", found, f)?;
                dimensions(": expected were", expected, f)
            }
        }
    }
}

fn dimensions(of: &str, geometry: Geometry, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Geometry { units, unit_bytes, members } = geometry;
    write!(f, "{of} {units} units of {unit_bytes} bytes, and seats for {members} members")
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System { what, errno } => refused(what, *errno, f),
            Self::Foreign => {
                write!(f, "the file is no segment: it does not begin with \"nbbs-seg\"")
            }
            Self::Short { bytes, least } => {
                let header = HEADER_BYTES as u64;
                if *least == header {
                    return write!(
                        f,
                        "the file has {bytes} bytes: a segment's header has {header}"
                    );
                }
                write!(f, "the file has {bytes} bytes: by its header the segment has {least}")
            }
            Self::Version { version, known } => {
                write!(f, "the segment has layout version {version}: this code knows {known}")
            }
            Self::Checksum { found, computed } => {
                write!(f, "the header says checksum {found:#x}, and has {computed:#x}")
            }
            Self::Corrupt { field, value } => write!(f, "{value} is no {field} of a segment"),
            Self::Bookkeeping { word } => {
                write!(f, "word {word} of the bookkeeping is not zero, and nobody writes there")
            }
            Self::Name { bytes, max } => {
                write!(f, "a name of {bytes} bytes: that of a memfd has at most {max}")
            }
            Self::Geometry(error) => error.fmt(f),
            Self::Making => write!(f, "the segment is not made yet"),
            Self::Used { at } => write!(
                f,
                "the segment is not whole by its header, but was used: byte {at} is not 0"
            ),
            Self::HalfMade => write!(f, "whoever made the segment died before it was whole"),
            Self::Exists => write!(f, "there is a whole segment already"),
        }
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.path, self.error)
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { members } => write!(f, "all {members} seats are taken by living members"),
            Self::Changing { members, changing } => {
                write!(
                    f,
                    "none of {members} seats is free: {changing} are just being taken or left"
                )
            }
            Self::System { what, errno } => refused(what, *errno, f),
        }
    }
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { layout, max } => {
                write!(f, "{} bytes: the largest block has {max}", layout.size())
            }
            Self::Exhausted { layout } => write!(f, "no block of {} bytes is free", layout.size()),
            Self::Alignment { layout, max } => {
                write!(
                    f,
                    "alignment to {} bytes: blocks are aligned to {max} at most",
                    layout.align()
                )
            }
            Self::Damaged => write!(f, "the bookkeeping names a unit that there is not"),
        }
    }
}

impl fmt::Display for OffsetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside { offset, bytes, start, end } => {
                write!(f, "{bytes} bytes at {offset:#x} are not within {start:#x}..{end:#x}")
            }
            Self::Misaligned { offset, align } => {
                write!(f, "offset {offset:#x} is not aligned to {align} bytes")
            }
            Self::NotYours { offset, owner: Some(owner) } => {
                write!(f, "the block at {offset:#x} is {owner}'s")
            }
            Self::NotYours { offset, owner: None } => {
                write!(f, "nobody has a block that begins at {offset:#x}")
            }
            Self::NoSlot { offset, bytes } => {
                write!(
                    f,
                    "{offset:#x} is within slots of {bytes} bytes, and none that is meant begins there"
                )
            }
            Self::Damaged { offset } => {
                write!(f, "the block at {offset:#x} is not allocated, though its tag says so")
            }
        }
    }
}

impl error::Error for GeometryError {}
impl error::Error for AttachError {}
impl error::Error for PathError {}
impl error::Error for JoinError {}
impl error::Error for AllocError {}
impl error::Error for OffsetError {}
