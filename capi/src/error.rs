//! What can be refused, as numbers and as text.

use core::ffi::{c_char, c_void};
use core::fmt::{self, Write};

use crate::function::Told;
use crate::pointer;

/// How a call went. 0 is success; every other code is a refusal that has changed nothing, unless the function
/// says so.
///
/// Each code says what `value`, `limit`, `other` and `detail` of an `nbbs_error` are; fields that are not named
/// are 0.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Done.
    Ok,
    /// A pointer that has to lead somewhere is null. `value`: which argument, from 1; `detail`: 1 if it is not that
    /// argument, but the function that it has to name; `other`: a number of the function that was called, by which
    /// `nbbs_message` names it.
    Null,
    /// A pointer is not aligned. `value`: the address; `limit`: the alignment; `other`: as for `NBBS_CODE_NULL`.
    PointerMisaligned,
    /// The handle was never made. `value`: its address; 0: `nb_init` was not called; `other`: as for `NBBS_CODE_NULL`.
    NoArena,
    /// An array, or the name of a memfd, cannot be so long. `value`: its length; `limit`: the most.
    TooLong,
    /// An arena cannot have so many units. `value`: units; `limit`: the most.
    Units,
    /// The memory is too small for what is to live there. `value`: bytes given; `limit`: bytes needed.
    TooShort,
    /// The metadata is in use, but not by an arena of so many units. `value`: units; `limit`: the word that
    /// says otherwise.
    ForeignMetadata,
    /// The order is above the arena's largest. `value`: order; `limit`: the largest.
    OrderTooLarge,
    /// There are not so many free units in one piece, at that place or anywhere: an ordinary answer. `value`: units.
    Exhausted,
    /// The units are not in the arena. `value`: the first; `other`: the one after the last; `limit`: units of
    /// the arena.
    OutOfRange,
    /// No block of that order begins there. `value`: index; `other`: order.
    Misaligned,
    /// The unit is free: never allocated, or freed before. `value`: index; `other`: the address, if one was given.
    NotAllocated,
    /// The unit is in use, but no block or run begins there. `value`: index; `other`: the address, if one was given.
    NotABlock,
    /// The unit is reserved. `value`: index; `other`: the address, if one was given.
    Reserved,
    /// A block of another order begins there. `value`: index; `other`: order given; `limit`: its order.
    WrongOrder,
    /// A run of another length begins there. `value`: index; `other`: units given; `limit`: its units.
    WrongLength,
    /// A run cannot have so many units, or be shrunk, grown or split to them. `value`: units; `limit`: the most or,
    /// where `detail` is 1, those of the run; `other`: index of the run then.
    Length,
    /// The units are not a part of the run: empty, backwards, or not within it. `value`: the first; `other`: the one
    /// after the last; `limit`: the first unit after the run or, where `detail` is 1, the first of the run.
    OutsideRun,
    /// A unit at the place asked for is in use: an ordinary answer. `value`: the unit.
    InUse,
    /// A unit to be released is not reserved. `value`: the first such unit.
    NotReserved,
    /// Another thread's claim, which it is about to take back, stands below what the change has to split: an ordinary
    /// answer, try again. If that thread has died, the answer stays until those units are free and `nbbs_mend` has been
    /// called; what was to be changed can still be freed. `value`: a unit.
    Contended,
    /// An audit found an invariant broken. `value`: unit; `limit`: number of the word; `other`: level;
    /// `detail`: slot, and above its 16 bits the invariant.
    Broken,
    /// The arena knows indices only: `nbbs_set_memory` has not told it where its memory is.
    NoMemory,
    /// The address is not in the memory of the arena or pool. `value`: the address; `limit`: where the memory
    /// begins, or chunks in which it is not; `other`: where the memory ends.
    ForeignAddress,
    /// The address lies inside a unit, object or block. `value`: the address; `limit`: where that begins; 0 if it begins
    /// before the heap's unit that contains the address.
    InsideUnit,
    /// The size of a unit, block or object is not possible. `value`: bytes; `limit`: the most; `other`: 1 if it must be
    /// a power of two.
    Size,
    /// The alignment is no power of two, or more than can be had. `value`: bytes; `limit`: the most.
    Alignment,
    /// No object is allocated at that address of the pool: freed before, or never allocated. `value`: the
    /// address.
    NoObject,
    /// All the objects that the pool may have are allocated, or their memory is in the hands of calls that add or give
    /// back chunks: an ordinary answer. `value`: objects.
    Full,
    /// The source has no memory: an ordinary answer. `value`: bytes asked for; `limit`: the alignment asked for.
    SourceEmpty,
    /// A setting cannot have that value. `detail`: which, an `nbbs_setting`, and above its 16 bits the place in an
    /// array; `value`: the value; `limit`: the most; `other`: the least.
    Setting,
    /// An audit found a block in a CPU's cache that is not its own. `value`: index; `other`: order; `limit`: the CPU.
    CacheBroken,
    /// The heap has no memory for a block: an ordinary answer. `value`: bytes; `limit`: the alignment asked for.
    HeapFull,
    /// The address is in no memory that the heap hands out. `value`: the address; `limit`: regions of the heap.
    NotOfHeap,
    /// No block of the heap is allocated at that address: freed before, or never allocated. `value`: the address.
    NoBlock,
    /// The heap has as many regions as it can have. `value`: how many.
    Regions,
    /// An audit found a heap's slabs or caches not in order. `value`: the address of the slab or slot; or, where
    /// `other` is 1, the bytes of a slot, for the stack of slabs with such slots; `other`: 0 a slab, 2 what a cache
    /// keeps.
    HeapBroken,
    /// The operating system refused. `value`: its `errno`.
    System,
    /// The file is no segment of shared memory.
    NoSegment,
    /// The segment was made by other code. `value`: version of its layout; `limit`: the version that this code knows.
    SegmentVersion,
    /// The segment's header or bookkeeping has changed since it was made. `value`: what was found; `other`: 0 a field
    /// of the header, 1 its checksum, which is to be `limit`, 2 a word of the bookkeeping, and `value` is which, 3 a byte
    /// that is not zero, though the segment is not whole by its header, and `value` is its position in the file.
    SegmentCorrupt,
    /// The segment is not made yet: somebody is making it at this moment, or the file is empty, as it is just before.
    /// An ordinary answer.
    SegmentMaking,
    /// Whoever made the segment died before it was whole: `nbbs_shared_create` takes it over.
    SegmentHalfMade,
    /// There is a whole segment already, which is not made again: an ordinary answer.
    SegmentExists,
    /// A segment cannot have such units. `value`: bytes of one; `limit`: the most.
    UnitBytes,
    /// A segment cannot have so many members. `value`: members; `limit`: the most.
    Members,
    /// No seat of the segment is free: an ordinary answer. `value`: how many there are; `limit`: how many of them others
    /// are just taking or leaving, so that another attempt may succeed, 0 if all have living members.
    SeatsTaken,
    /// The segment has no memory for a block: an ordinary answer. `value`: bytes; `limit`: their alignment.
    SegmentFull,
    /// What is at the offset is not, or not all, in the memory that the segment hands out. `value`: the offset;
    /// `detail`: how many bytes it has at least, or the most that `detail` can be; `limit`: where the memory begins;
    /// `other`: where it ends.
    OutsideSegment,
    /// No block or slot of the segment can begin there, or none of that type. `value`: the offset; `limit`: the bytes
    /// to which it should be aligned, or, where `other` is 1, those of a slot.
    OffsetMisaligned,
    /// The member has no block there: it was freed before, never allocated, or is another member's. To a member that
    /// takes it from whoever has sent it, an ordinary answer. `value`: the offset; `limit`: the seat of the member that
    /// has it, from 1 on, or 0; `other`: that member's generation.
    NotYours,
    /// The segment's bookkeeping was overwritten by a stray write. `value`: the offset of the block, or 0.
    SegmentDamaged,
    /// A pool can never have so many objects. `value`: the objects that there were to be; `limit`: the most.
    Objects,
    /// The memory overlaps that of a region which the heap already has. `value`: the first address that was given;
    /// `limit`: where that region begins; `other`: where it ends.
    Overlap,
    /// The range has no place for so many units at that alignment, whatever is free. `value`: the units; `detail`: the
    /// order of the alignment; `limit`: the first unit of the range; `other`: the unit after the last.
    NoPlace,
    /// The segment has other dimensions than the caller expects: an ordinary answer. `value`: its own; `limit`: the
    /// expected; `other`: the first that differs, 0 the number of units, 1 the bytes of a unit, 2 the members.
    SegmentGeometry,
    /// Refused for a reason that this version of the interface has no code for.
    Other,
}

/// A refusal: the code, and the values that it names.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// An `nbbs_code`.
    pub code: u32,
    /// See the code.
    pub detail: u32,
    /// The value that was refused.
    pub value: u64,
    /// The limit that it broke.
    pub limit: u64,
    /// See the code.
    pub other: u64,
}

impl Error {
    /// A refusal with a value and the limit that it broke.
    #[inline]
    pub(crate) const fn of(code: Code, value: u64, limit: u64) -> Self {
        Self { code: code as u32, detail: 0, value, limit, other: 0 }
    }

    /// Adds a third value.
    #[inline]
    pub(crate) const fn and(self, other: u64) -> Self {
        Self { other, ..self }
    }

    /// Adds the address, if the unit was named by its address.
    pub(crate) fn at(self, address: *const c_void) -> Self {
        match self.code() {
            Some(Code::NotAllocated | Code::NotABlock | Code::Reserved) => {
                self.and(address.addr() as u64)
            }
            _ => self,
        }
    }

    /// Adds the function, if what was refused is a pointer to whatever it works on.
    fn by(self, function: u32) -> Self {
        match self.code() {
            Some(Code::Null | Code::PointerMisaligned | Code::NoArena) => self.and(function.into()),
            _ => self,
        }
    }

    /// The code, unless the number is none.
    pub(crate) fn code(&self) -> Option<Code> {
        NAMES.get(self.code as usize).map(|&(code, _)| code)
    }

    /// Whether somebody made a mistake: the others are ordinary answers.
    fn is_misuse(&self) -> bool {
        use Code::*;
        let ordinary = [
            Exhausted,
            InUse,
            Contended,
            Broken,
            CacheBroken,
            Full,
            SourceEmpty,
            HeapFull,
            HeapBroken,
            System,
            SegmentMaking,
            SegmentExists,
            SegmentGeometry,
            SeatsTaken,
            SegmentFull,
        ];
        self.code().is_none_or(|code| !ordinary.contains(&code))
    }
}

/// Whom to tell of misuse.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reporter {
    pub hook: Hook,
    pub context: *mut c_void,
}

impl Reporter {
    pub(crate) const NOBODY: Self = Self { hook: None, context: core::ptr::null_mut() };

    /// Returns the code of an outcome; tells of a refusal, as [`refuse`](Self::refuse) does.
    ///
    /// # Safety
    /// Those of [`refuse`](Self::refuse).
    #[inline(always)]
    pub(crate) unsafe fn answer(self, outcome: Result<(), Error>, told: Told) -> Code {
        match outcome {
            Ok(()) => Code::Ok,
            // SAFETY: by the contract.
            Err(refused) => unsafe { self.refuse(refused, told) },
        }
    }

    /// Tells the hook of misuse, and the caller of any refusal. Returns the code.
    ///
    /// # Safety
    /// The place is null, misaligned, or leads to memory for an error; the hook is what `Hook` says.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn refuse(self, error: Error, told: Told) -> Code {
        let error = error.by(told.function);
        // SAFETY: by the contract.
        unsafe { pointer::write_if_given(told.place, error) };
        if let Some(hook) = self.hook.filter(|_| error.is_misuse()) {
            // SAFETY: the caller promised that the hook may be called with its context.
            unsafe { hook(self.context, &raw const error) };
        }
        error.code().unwrap_or(Code::Other)
    }
}

/// Is told of misuse: frees of what is not allocated, pointers that lead nowhere, numbers that no arena has.
/// Ordinary answers, such as "no block is free", are not reported.
///
/// The thread that made the mistake calls the hook inside the function that refuses it. If that thread is in a signal
/// handler, so is the hook, and the same restrictions apply. The hook may return, or stop the program.
pub type Hook = Option<unsafe extern "C" fn(context: *mut c_void, error: *const Error)>;

/// Writes an error as a sentence that names the value and the limit, cut off after `bytes - 1` characters, with a
/// 0 behind it. Returns the length of the whole sentence, like `snprintf`.
///
/// `error` may be null: "no error". `text` may be null if `bytes` is 0. Callable from anywhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_message(
    error: *const Error,
    text: *mut c_char,
    bytes: usize,
) -> usize {
    let none = Error::of(Code::Ok, 0, 0);
    // SAFETY: an error, by the contract.
    let error = pointer::checked(error, 1).map_or(none, |error| unsafe { error.read() });
    // SAFETY: the caller's buffer; characters have no invalid values.
    let text = unsafe { pointer::array_mut(text.cast::<u8>(), bytes, 2) }.unwrap_or(&mut []);
    let mut cut = Cut::new(text);
    // Writing to a `Cut` never fails.
    _ = write!(cut, "{error}");
    cut.end()
}

/// Returns the name of a code, for logs: `"NBBS_CODE_EXHAUSTED"`; `"unknown"` for a number that is no code.
#[unsafe(no_mangle)]
pub extern "C" fn nbbs_code_name(code: u32) -> *const c_char {
    NAMES.get(code as usize).map_or(c"unknown", |(_, name)| name).as_ptr()
}

macro_rules! names {
    ($($code:ident $name:literal),* $(,)?) => {
        /// Every code with its name in C, in order.
        const NAMES: &[(Code, &core::ffi::CStr)] = &[$((Code::$code, $name)),*];
    };
}

names! {
    Ok c"NBBS_CODE_OK",
    Null c"NBBS_CODE_NULL",
    PointerMisaligned c"NBBS_CODE_POINTER_MISALIGNED",
    NoArena c"NBBS_CODE_NO_ARENA",
    TooLong c"NBBS_CODE_TOO_LONG",
    Units c"NBBS_CODE_UNITS",
    TooShort c"NBBS_CODE_TOO_SHORT",
    ForeignMetadata c"NBBS_CODE_FOREIGN_METADATA",
    OrderTooLarge c"NBBS_CODE_ORDER_TOO_LARGE",
    Exhausted c"NBBS_CODE_EXHAUSTED",
    OutOfRange c"NBBS_CODE_OUT_OF_RANGE",
    Misaligned c"NBBS_CODE_MISALIGNED",
    NotAllocated c"NBBS_CODE_NOT_ALLOCATED",
    NotABlock c"NBBS_CODE_NOT_A_BLOCK",
    Reserved c"NBBS_CODE_RESERVED",
    WrongOrder c"NBBS_CODE_WRONG_ORDER",
    WrongLength c"NBBS_CODE_WRONG_LENGTH",
    Length c"NBBS_CODE_LENGTH",
    OutsideRun c"NBBS_CODE_OUTSIDE_RUN",
    InUse c"NBBS_CODE_IN_USE",
    NotReserved c"NBBS_CODE_NOT_RESERVED",
    Contended c"NBBS_CODE_CONTENDED",
    Broken c"NBBS_CODE_BROKEN",
    NoMemory c"NBBS_CODE_NO_MEMORY",
    ForeignAddress c"NBBS_CODE_FOREIGN_ADDRESS",
    InsideUnit c"NBBS_CODE_INSIDE_UNIT",
    Size c"NBBS_CODE_SIZE",
    Alignment c"NBBS_CODE_ALIGNMENT",
    NoObject c"NBBS_CODE_NO_OBJECT",
    Full c"NBBS_CODE_FULL",
    SourceEmpty c"NBBS_CODE_SOURCE_EMPTY",
    Setting c"NBBS_CODE_SETTING",
    CacheBroken c"NBBS_CODE_CACHE_BROKEN",
    HeapFull c"NBBS_CODE_HEAP_FULL",
    NotOfHeap c"NBBS_CODE_NOT_OF_HEAP",
    NoBlock c"NBBS_CODE_NO_BLOCK",
    Regions c"NBBS_CODE_REGIONS",
    HeapBroken c"NBBS_CODE_HEAP_BROKEN",
    System c"NBBS_CODE_SYSTEM",
    NoSegment c"NBBS_CODE_NO_SEGMENT",
    SegmentVersion c"NBBS_CODE_SEGMENT_VERSION",
    SegmentCorrupt c"NBBS_CODE_SEGMENT_CORRUPT",
    SegmentMaking c"NBBS_CODE_SEGMENT_MAKING",
    SegmentHalfMade c"NBBS_CODE_SEGMENT_HALF_MADE",
    SegmentExists c"NBBS_CODE_SEGMENT_EXISTS",
    UnitBytes c"NBBS_CODE_UNIT_BYTES",
    Members c"NBBS_CODE_MEMBERS",
    SeatsTaken c"NBBS_CODE_SEATS_TAKEN",
    SegmentFull c"NBBS_CODE_SEGMENT_FULL",
    OutsideSegment c"NBBS_CODE_OUTSIDE_SEGMENT",
    OffsetMisaligned c"NBBS_CODE_OFFSET_MISALIGNED",
    NotYours c"NBBS_CODE_NOT_YOURS",
    SegmentDamaged c"NBBS_CODE_SEGMENT_DAMAGED",
    Objects c"NBBS_CODE_OBJECTS",
    Overlap c"NBBS_CODE_OVERLAP",
    NoPlace c"NBBS_CODE_NO_PLACE",
    SegmentGeometry c"NBBS_CODE_SEGMENT_GEOMETRY",
    Other c"NBBS_CODE_OTHER",
}

/// A buffer that takes what fits and counts the rest.
pub(crate) struct Cut<'t> {
    text: &'t mut [u8],
    len: usize,
}

impl Write for Cut<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.text.len().saturating_sub(self.len + 1).min(part.len());
        if let Some(place) = self.text.get_mut(self.len..self.len + room) {
            place.copy_from_slice(&part.as_bytes()[..room]);
        }
        self.len += part.len();
        Ok(())
    }
}

impl<'t> Cut<'t> {
    pub(crate) fn new(text: &'t mut [u8]) -> Self {
        Self { text, len: 0 }
    }

    /// Puts the 0 behind the text; returns the length of all that was written.
    pub(crate) fn end(self) -> usize {
        let last = self.len.min(self.text.len().saturating_sub(1));
        if let Some(end) = self.text.get_mut(last) {
            *end = 0;
        }
        self.len
    }
}
