//! Segments: made, attached, looked at.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::Ordering;
use std::boxed::Box;
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nbbs_shared::{Geometry, Offset, Segment};

use crate::error::{Code, Error, Hook, Reporter};
use crate::function::{Told, told};
use crate::handle::{self, Reporting, ask, run};
use crate::pointer;

/// A segment in this process: memory that several processes allocate from. Made by `nbbs_shared_create` and its kin. A
/// child of `fork` does not inherit the memory: it attaches for itself, and ends this one at most.
#[derive(Debug)]
pub struct Shared {
    pub(super) segment: Segment,
    reporter: Reporter,
}

/// What a segment is made for.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedGeometry {
    /// Units that are handed out, from 1 to 2^40.
    pub units: u64,
    /// Bytes of a unit, the least that is handed out: a power of two from 64 to 2^30.
    pub unit_bytes: u64,
    /// The most members that may live at a time, from 1 to 1022.
    pub members: u64,
}

/// Which member, of all that a segment has or had.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedId {
    /// Its place in the table of members, from 1 on. 0: nobody.
    pub seat: u64,
    /// Which of those that had it.
    pub generation: u64,
}

impl Reporting for Shared {
    fn reporter(&self) -> Reporter {
        self.reporter
    }
}

impl From<SharedGeometry> for Geometry {
    fn from(given: SharedGeometry) -> Self {
        let SharedGeometry { units, unit_bytes, members } = given;
        Self { units, unit_bytes, members }
    }
}

/// Writes a handle of the segment that `make` makes to `place`, which is argument number `argument`.
///
/// # Safety
/// Both pointers are null, misaligned, or lead to memory for what they say.
unsafe fn hand_out(
    place: *mut *mut Shared,
    argument: u64,
    error: Told,
    make: impl FnOnce() -> Result<Segment, Error>,
) -> Code {
    let made = pointer::checked(place, argument).and_then(|place| {
        let shared = Shared { segment: make()?, reporter: Reporter::NOBODY };
        // SAFETY: memory for a pointer, by the contract.
        unsafe { place.write(Box::into_raw(Box::new(shared))) };
        Ok(())
    });
    // SAFETY: by the contract.
    unsafe { Reporter::NOBODY.answer(made, error) }
}

/// A text of the caller's, as argument number `argument`.
///
/// # Safety
/// If the pointer is not null, it leads to a text that ends with a 0, and stays as it is for `'a`.
unsafe fn text<'a>(text: *const c_char, argument: u64) -> Result<&'a CStr, Error> {
    // SAFETY: by the contract.
    pointer::checked(text, argument).map(|text| unsafe { CStr::from_ptr(text.as_ptr()) })
}

fn path(text: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(text.to_bytes()))
}

/// # Safety
/// The pointer is null, misaligned, or leads to a geometry.
unsafe fn geometry(geometry: *const SharedGeometry) -> Result<Geometry, Error> {
    // SAFETY: by the contract.
    pointer::checked(geometry, 2).map(|geometry| unsafe { geometry.read() }.into())
}

/// Returns the bytes that a segment takes: its units; for each unit, 64 bits for its owner and 2.3 for the buddy
/// allocator; 320 bytes for each member, in two parts; each of these parts in whole pages of 4 KiB, and two pages more. 0
/// if there can be no such segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_bytes(geometry: *const SharedGeometry) -> u64 {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(geometry, |geometry| Geometry::from(*geometry).file_bytes().unwrap_or(0)) }
}

/// Makes a segment in the file at `path`, such as `/dev/shm/name`, and attaches to it. `mode` are its permissions, less
/// the process's umask if the file is new; 0 is taken for 0600: only its owner may open it.
///
/// All of its memory is reserved now. A file of the caller that is empty, or holds a segment whose creator died before
/// it was whole, is taken over, and whoever may not open the segment may not open the file either from then on. Another
/// user's file is refused, and so is one whose segment has or had members, or a root, whatever its header says: a
/// damaged segment stays as it is until somebody removes the file. Through a symbolic link to nothing no file is created.
/// Refuses with `NULL`, `UNITS`, `UNIT_BYTES`, `MEMBERS`, `SIZE`, `SEGMENT_EXISTS`, `SEGMENT_MAKING` if another is just
/// making it, `NO_SEGMENT`, `SEGMENT_CORRUPT` and others if the file holds something else, `SYSTEM`. What cannot be made
/// leaves no file behind; one that was there may be empty then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_create(
    path: *const c_char,
    geometry: *const SharedGeometry,
    mode: u32,
    segment: *mut *mut Shared,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_create, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        hand_out(segment, 4, error, || {
            let path = self::path(text(path, 1)?);
            let mode = if mode == 0 { 0o600 } else { mode };
            Ok(Segment::create_for(path, self::geometry(geometry)?, mode)?)
        })
    }
}

/// Makes a segment in memory without a name, which others attach to by its descriptor: `nbbs_shared_fd`. It can be
/// neither shortened nor made longer. `name` is for debuggers.
///
/// Refuses with `NULL`, `TOO_LONG` a name of more than 249 bytes, `UNITS`, `UNIT_BYTES`, `MEMBERS`, `SIZE`, `SYSTEM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_create_memfd(
    name: *const c_char,
    geometry: *const SharedGeometry,
    segment: *mut *mut Shared,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_create_memfd, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        hand_out(segment, 3, error, || {
            let name = OsStr::from_bytes(text(name, 1)?.to_bytes());
            Ok(Segment::memfd(name, self::geometry(geometry)?)?)
        })
    }
}

/// Attaches to the segment in the file at `path`, whatever its dimensions are (`nbbs_shared_check_geometry`). All of its
/// header is checked before any of it is mapped.
///
/// Refuses with `NULL`, `NO_SEGMENT`, `TOO_SHORT`, `SEGMENT_VERSION`, `SEGMENT_CORRUPT`, `SEGMENT_MAKING` also of an
/// empty file, `SEGMENT_HALF_MADE` if its creator died before it was whole, `SYSTEM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_attach(
    path: *const c_char,
    segment: *mut *mut Shared,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_attach, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { hand_out(segment, 2, error, || Ok(Segment::attach(self::path(text(path, 1)?))?)) }
}

/// Attaches to a segment by its descriptor, which was inherited, or received over a socket. The descriptor is
/// duplicated, and stays the caller's.
///
/// Refuses as `nbbs_shared_attach` does; `SYSTEM` if it is no descriptor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_attach_fd(
    fd: c_int,
    segment: *mut *mut Shared,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_attach_fd, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        hand_out(segment, 2, error, || {
            if fd < 0 {
                return Err(Error::of(Code::System, super::refusal::EBADF as u64, 0));
            }
            // SAFETY: not -1; whether it is open the system says.
            let fd = BorrowedFd::borrow_raw(fd)
                .try_clone_to_owned()
                .map_err(super::refusal::of_system)?;
            Ok(Segment::attach_fd(fd)?)
        })
    }
}

/// Detaches from a segment. Nobody may use the handle any more; the memory stays mapped until the last member that
/// joined by it has left. The segment's file stays. Null: does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_detach(segment: *mut Shared) {
    if let Ok(segment) = pointer::checked(segment, 1) {
        // SAFETY: made by `hand_out`, and nobody else uses it, by the contract.
        drop(unsafe { Box::from_raw(segment.as_ptr()) });
    }
}

/// Has `hook` told of misuse of the segment, and of members that join from now on; null: nobody. While nobody else is
/// using the handle. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_set_hook(
    segment: *mut Shared,
    hook: Hook,
    context: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_set_hook, error);
    // SAFETY: a segment whose handle nobody else is using, by the contract.
    let place = |segment: *mut Shared| unsafe { &raw mut (*segment).reporter };
    // SAFETY: as above, and the caller's promise about pointers.
    unsafe { handle::set_hook(segment, (hook, context), error, place) }
}

/// The descriptor of a segment, to be handed to another process; open until `nbbs_shared_detach`. Null: -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_fd(segment: *const Shared) -> c_int {
    // SAFETY: the caller's promise about pointers.
    pointer::checked(segment, 1)
        .map_or(-1, |segment| unsafe { segment.as_ref() }.segment.as_fd().as_raw_fd())
}

/// Writes to `geometry` what a segment was made for. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_geometry_of(
    segment: *const Shared,
    geometry: *mut SharedGeometry,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_geometry_of, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(segment, error, |shared| {
            let Geometry { units, unit_bytes, members } = shared.segment.geometry();
            pointer::checked(geometry, 2)?.write(SharedGeometry { units, unit_bytes, members });
            Ok(())
        })
    }
}

/// Refuses a segment of other dimensions than the caller expects, which attaching does not: the creator chooses them. The
/// segment stays attached.
///
/// Refuses with `NULL`, `SEGMENT_GEOMETRY`, an ordinary answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_check_geometry(
    segment: *const Shared,
    expected: *const SharedGeometry,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_check_geometry, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { run(segment, error, |shared| Ok(shared.segment.check_geometry(geometry(expected)?)?)) }
}

/// Returns how many bytes nobody holds. Two loads for each 512 units; exact when nothing else runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_count_free_bytes(segment: *const Shared) -> u64 {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(segment, |shared| shared.segment.count_free_bytes()) }
}

/// Writes to `address` where in this process the `bytes` bytes at an offset are. The caller must know whose they are,
/// and who may touch them. Refuses with `NULL`, `OUTSIDE_SEGMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_at(
    segment: *const Shared,
    offset: u64,
    bytes: usize,
    address: *mut *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_at, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(segment, error, |shared| {
            let place = pointer::checked(address, 4)?;
            place.write(shared.segment.bytes_at(offset, bytes)?.as_ptr().cast());
            Ok(())
        })
    }
}

/// The offset of an address in this process; 0 if it is not in the memory that the segment hands out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_offset(segment: *const Shared, address: *const c_void) -> u64 {
    // SAFETY: the caller's promise about pointers.
    unsafe {
        ask(segment, |shared| {
            shared.segment.offset_at(address.cast::<u8>()).map_or(0, Offset::bytes)
        })
    }
}

/// Writes to `owner` whose block, or slot of the heap, begins at an offset, at this moment. Refuses with `NULL`,
/// `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_owner(
    segment: *const Shared,
    offset: u64,
    owner: *mut SharedId,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_owner, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(segment, error, |shared| {
            let place = pointer::checked(owner, 3)?;
            let owner = shared.segment.owner(super::refusal::offset(&shared.segment, offset)?)?;
            place.write(owner.map_or(SharedId::default(), SharedId::from));
            Ok(())
        })
    }
}

/// Returns the root, an offset for whatever the members agree on, by which a newcomer finds the rest; 0: none, as at
/// first.
/// Acquires what `nbbs_shared_set_root` or `nbbs_shared_swap_root` released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_root(segment: *const Shared) -> u64 {
    // SAFETY: the caller's promise about pointers.
    unsafe {
        // Acquire: pairs with the Release of who published it.
        ask(segment, |shared| {
            shared.segment.root::<u8>().load(Ordering::Acquire).map_or(0, Offset::bytes)
        })
    }
}

/// Publishes the root; 0: none. Releases what was written before. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_set_root(
    segment: *const Shared,
    offset: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_set_root, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(segment, error, |shared| {
            // Release: pairs with the Acquire in `nbbs_shared_root`.
            shared.segment.root::<u8>().store(Offset::new(offset), Ordering::Release);
            Ok(())
        })
    }
}

/// Publishes `offset` as the root if the root still is `*expected`, and returns whether it was. If not, writes what it
/// is to `*expected`. 0: none. Acquires and releases. Null: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_swap_root(
    segment: *const Shared,
    expected: *mut u64,
    offset: u64,
) -> bool {
    let Ok(place) = pointer::checked(expected, 2) else { return false };
    // SAFETY: the caller's promise about pointers.
    unsafe {
        ask(segment, |shared| {
            let (current, new) = (Offset::new(place.read()), Offset::new(offset));
            // Both pair with the Acquire and Release of the others' calls.
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            let swapped =
                shared.segment.root::<u8>().compare_exchange(current, new, success, failure);
            if let Err(found) = swapped {
                place.write(found.map_or(0, Offset::bytes));
            }
            swapped.is_ok()
        })
    }
}
