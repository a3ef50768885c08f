//! Members: what users of a segment call.

use core::alloc::Layout;
use core::ffi::c_void;
use std::boxed::Box;

use nbbs_shared::{Fate, Member, MemberId, Offset};

use super::{Shared, SharedId, refusal};
use crate::error::{Code, Error, Reporter};
use crate::function::told;
use crate::handle::{Reporting, ask, run, run_but};
use crate::pointer;

/// A registered user of a segment, for one thread at a time. Made by `nbbs_shared_join`.
#[derive(Debug)]
pub struct SharedMember {
    pub(super) member: Member,
    reporter: Reporter,
}

/// Returns whether the recoverer keeps a recovered block, or slot of the heap; otherwise it is freed.
///
/// Called inside `nbbs_shared_recover`, by the same thread; it may use the member.
pub type SharedKeeps =
    Option<unsafe extern "C" fn(context: *mut c_void, offset: u64, bytes: u64) -> bool>;

/// What a recovery found.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedRecovery {
    /// Members that have died, and that no recovery has finished with before: as long as blocks are pending, each counts
    /// them again.
    pub members: usize,
    /// Blocks and slots that were recovered and freed.
    pub freed: usize,
    /// Blocks and slots that were recovered and are the recoverer's now.
    pub kept: usize,
    /// Blocks of which it could not be told whether they belong to an operation under way. The member's next recovery
    /// goes on from what this one saw.
    pub pending: usize,
    /// Blocks and slots whose bookkeeping was overwritten by a stray write. They stay as they are.
    pub damaged: usize,
}

impl SharedMember {
    /// The caller's offset in the member's segment.
    #[inline(always)]
    pub(super) fn offset(&self, bytes: u64) -> Result<Offset<u8>, Error> {
        refusal::offset(self.member.segment(), bytes)
    }
}

impl Reporting for SharedMember {
    fn reporter(&self) -> Reporter {
        self.reporter
    }
}

impl From<SharedId> for MemberId {
    fn from(given: SharedId) -> Self {
        let SharedId { seat, generation } = given;
        // Nobody, whose seat is 0, owns nothing.
        Self { seat: (seat as usize).wrapping_sub(1), generation }
    }
}

impl From<MemberId> for SharedId {
    fn from(id: MemberId) -> Self {
        Self { seat: id.seat as u64 + 1, generation: id.generation }
    }
}

/// Registers a member: a thread that allocates in the segment, until `nbbs_shared_leave`, or until its process ends,
/// however it ends. It may be handed to another thread. It must not be used by a signal handler that interrupts one of
/// its own calls, nor by a child of `fork`, which attaches for itself.
///
/// Takes a descriptor, memory, nine system calls, and up to two more for each seat that is taken if no other is free.
/// Refuses with `NULL`, `SEATS_TAKEN` if all members live, or others are just taking or leaving the other seats, `SYSTEM`,
/// with `ESTALE` if the segment is not in its file any more: attach again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_join(
    segment: *const Shared,
    member: *mut *mut SharedMember,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_join, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(segment, error, |shared| {
            let place = pointer::checked(member, 2)?;
            let (member, reporter) = (shared.segment.join()?, shared.reporter());
            place.write(Box::into_raw(Box::new(SharedMember { member, reporter })));
            Ok(())
        })
    }
}

/// Ends a member. Nobody may use the handle any more, and others can recover what the member still holds. In a child of
/// the process that joined, the call only gives back the child's memory, and the member goes on. Null: does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_leave(member: *mut SharedMember) {
    if let Ok(member) = pointer::checked(member, 1) {
        // SAFETY: made by `nbbs_shared_join`, and nobody else uses it, by the contract.
        drop(unsafe { Box::from_raw(member.as_ptr()) });
    }
}

/// Returns which member this is; for a null pointer, nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_id_of(member: *const SharedMember) -> SharedId {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(member, |shared| shared.member.id().into()) }
}

/// Allocates a block of at least `bytes` bytes at a multiple of `align`, a power of two up to a page, and writes its
/// offset, which is the same in every process, to `offset`. What is in it is whatever was there before.
///
/// One read-modify-write in the steady state; before it refuses, it trims, as `nbbs_shared_heap_trim` does. Waits for
/// nobody. Refuses with `NULL`, `ALIGNMENT`, `SIZE`, `SEGMENT_FULL`, after which `nbbs_shared_recover` may find memory
/// of the dead, `SEGMENT_DAMAGED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_alloc(
    member: *const SharedMember,
    bytes: usize,
    align: usize,
    offset: *mut u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_alloc, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(member, error, |shared| {
            let place = pointer::checked(offset, 4)?;
            place.write(shared.member.alloc(layout(bytes, align)?)?.bytes());
            Ok(())
        })
    }
}

/// A layout that a segment may have.
#[inline(always)]
pub(super) fn layout(bytes: usize, align: usize) -> Result<Layout, Error> {
    // Before the size, whose limit depends on it.
    if !align.is_power_of_two() || align as u64 > refusal::MOST_ALIGN {
        return Err(Error::of(Code::Alignment, align as u64, refusal::MOST_ALIGN));
    }
    Layout::from_size_align(bytes, align)
        .map_err(|_| Error::of(Code::Size, bytes as u64, isize::MAX as u64 + 1 - align as u64))
}

/// Frees the member's block at `offset`.
///
/// One read-modify-write in the steady state. Waits for nobody. Refuses with `NULL`, `OUTSIDE_SEGMENT`,
/// `OFFSET_MISALIGNED`, `NOT_YOURS` also if it was freed before, `SEGMENT_DAMAGED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_free(
    member: *const SharedMember,
    offset: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_free, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(member, error, |shared| Ok(shared.member.free(shared.offset(offset)?).map(drop)?))
    }
}

/// Makes the block at `offset` this member's, and writes whose it was to `from`, which may be null: for a block that
/// its holder has handed over, by whatever way, and neither uses nor frees any more.
///
/// Whoever has the block by now must still mean it for this member. If the holder may have died, and another member
/// recovers and frees what is not needed, the block may be a third member's by now: use `nbbs_shared_take_from` then. A
/// read-modify-write. Refuses with `NULL`, `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED`, `NOT_YOURS` if it is nobody's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_take(
    member: *const SharedMember,
    offset: u64,
    from: *mut SharedId,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_take, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(member, error, |shared| {
            let owner = shared.member.take(shared.offset(offset)?)?;
            pointer::write_if_given(from, owner.into());
            Ok(())
        })
    }
}

/// Makes the block at `offset` this member's if it is `from`'s, or this member's already, and writes whose it was to
/// `former`, which may be null: for a block that `from` has handed over, by whatever way, and neither uses nor frees any
/// more. If it was this member's already, it may be another block than the one that was sent: this member may have
/// recovered and freed that one, and allocated this one in its place.
///
/// If `from` has died meanwhile and another member recovers, one of the two gets the block. The other one may use or
/// free it as any of its blocks, as long as those to which it was sent call this function, not `nbbs_shared_take`. A
/// read-modify-write. Refuses with `NULL`, `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED`, `NOT_YOURS` if it is neither's, which is
/// an ordinary answer here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_take_from(
    member: *const SharedMember,
    offset: u64,
    from: SharedId,
    former: *mut SharedId,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_take_from, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run_but(&[Code::NotYours], member, error, |shared| {
            let owner = shared.member.take_from(shared.offset(offset)?, from.into())?;
            pointer::write_if_given(former, owner.into());
            Ok(())
        })
    }
}

/// Writes where in this process the member's block at `offset` is, and how many bytes it has, to `address` and `bytes`,
/// each of which may be null. It stays there as long as the segment is attached, or the member has not left.
///
/// Refuses with `NULL`, `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED`, `NOT_YOURS`, `SEGMENT_DAMAGED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_block(
    member: *const SharedMember,
    offset: u64,
    address: *mut *mut c_void,
    bytes: *mut usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_block, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(member, error, |shared| {
            let block = shared.member.block(shared.offset(offset)?)?;
            pointer::write_if_given(address, block.as_ptr().cast());
            pointer::write_if_given(bytes, block.len());
            Ok(())
        })
    }
}

/// Returns how many members have died that nobody has recovered, or only in part, as something of theirs may be
/// pending: they count until what was pending when they were found dead is told. A system call for each seat that is
/// taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_dead(member: *const SharedMember) -> usize {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(member, |shared| shared.member.dead()) }
}

/// Recovers what members that have died or left still held: each block, and each slot of the heap, becomes this
/// member's, and `keeps` says whether the member keeps it or it is freed; null: all are freed. Blocks that a dead
/// member was allocating or freeing at its end are among them. `found`, which may be null, gets how many.
///
/// Several members may call it at the same time: each block goes to one of them, and the next recovery recovers whoever
/// dies in the call. `keeps` must know what is still needed, such as the root, or messages that were sent and not yet
/// received. The receiver of a message may take it while `keeps` is asked: then the answer has no effect. Waits for
/// nobody, and remembers for the member's next call what is pending. Costs a walk over the bookkeeping, a system call
/// or two for each seat, a few more for each whose member is in the middle of an operation, and memory of the process,
/// which ends if it has none: a few words for each block in use, and for each slot of the dead. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_recover(
    member: *const SharedMember,
    keeps: SharedKeeps,
    context: *mut c_void,
    found: *mut SharedRecovery,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_recover, error);
    // SAFETY: the caller's promise about pointers, and that the function may be called with its context.
    unsafe {
        run(member, error, |shared| {
            let recovery = shared.member.recover(|block| match keeps {
                Some(keeps) if keeps(context, Offset::bytes(block.offset), block.bytes) => {
                    Fate::Keep
                }
                _ => Fate::Free,
            });
            let (members, freed, kept) = (recovery.members, recovery.freed, recovery.kept);
            let (pending, damaged) = (recovery.pending, recovery.damaged);
            pointer::write_if_given(
                found,
                SharedRecovery { members, freed, kept, pending, damaged },
            );
            Ok(())
        })
    }
}
