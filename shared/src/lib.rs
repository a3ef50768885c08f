//! A lock-free allocator in shared memory that outlives its processes.
//!
//! Several processes allocate and free blocks of any size in one [`Segment`]: a file, a `memfd` or a name in
//! `/dev/shm`. Any of them may be killed at any moment. No other waits for it: any other process can
//! [recover](Member::recover) what it held, while the rest go on.
//!
//! ```
//! use nbbs_shared::{Fate, Geometry, Segment};
//! use std::alloc::Layout;
//!
//! let segment = Segment::memfd("example", Geometry { units: 1024, unit_bytes: 64, members: 8 })?;
//! let (alice, bob) = (segment.join()?, segment.join()?); // threads, or processes
//! let message = alice.alloc(Layout::from_size_align(300, 8)?)?;
//! // SAFETY: the block is Alice's, and nobody else's before she hands it over.
//! unsafe { alice.block(message)?.as_ptr().cast::<u64>().write(42) };
//!
//! bob.take(message)?; // Alice has sent him the offset
//! // SAFETY: now it is Bob's.
//! assert_eq!(unsafe { bob.block(message)?.as_ptr().cast::<u64>().read() }, 42);
//!
//! drop(bob); // as if he had been killed
//! let recovery = alice.recover(|_block| Fate::Free);
//! assert_eq!(recovery.freed, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//!
//! - No operation waits for another member, whether that is stopped or dead, nor does recovery.
//! - A block belongs to one member at any time, which its *tag* names: 64 bits for each unit. The same holds for a slot
//!   of the [heap](Heap) and of a [pool](Pool): 64 bits for each.
//! - The kernel tells whether a member is alive, by a lock that the member holds on a byte of the file; no identifier
//!   that could be reused is involved.
//! - When a member dies, each of its blocks becomes that of a recoverer, which frees or keeps it, and so does the block
//!   that the member was allocating or freeing at that moment. Several members can run recovery at once; it can die at
//!   any step and be run again.
//! - Attaching refuses a file that is not a segment, is too short, was made by other code or has changed, before any of
//!   it is mapped, except for bookkeeping that cannot be right, which it finds in what it has mapped.
//!
//! # What it trusts
//!
//! A process that can write to the segment can write anywhere in it: into the blocks of others, and into the
//! bookkeeping. A member that is *dead*, or that uses this interface *wrongly*, costs its own blocks. One that writes
//! *wildly* can do what a wild pointer does: it can cause wrong contents, memory that is handed out twice, and
//! allocations that panic or do not return. It cannot make this code touch memory outside the segment, as no number
//! read from it is used before it is compared with a limit. One that *means harm* can in addition shorten a file that
//! others have mapped, which ends them with `SIGBUS`; a `memfd` that [`memfd`](Segment::memfd) makes cannot be
//! shortened. So by default only the owner may open a segment.
//!
//! # Threads and processes
//!
//! Segments and members work through descriptors. A thread that has descriptors of its own (`unshare(CLONE_FILES)`)
//! must not use those that other threads made, nor others its. A member of a process is none of its forked child's, which
//! attaches and joins itself; a child that does so in a handler of `pthread_atfork` which was registered before the
//! process first used this crate is not told from its parent, and cannot give up its place.
//!
//! # Layers
//!
//! ```text
//! heap      memory of any size      pool     memory for values of one type
//! member    the public interface: join, allocate, free, take, recover
//! segment   files, locks, mappings: the only place that makes system calls
//! slabs     blocks that are cut into slots: who holds which slot. No unsafe code
//! ledger    the protocol, on atomic words: who holds which block, and how the dead are recovered. No unsafe code
//! header    what a file must begin with       layout    the positions of all parts
//! offset    addresses within a segment        error     what can be refused
//! ```
#![cfg(target_os = "linux")]
#![deny(clippy::multiple_unsafe_ops_per_block)]

mod error;
mod header;
mod heap;
mod layout;
#[forbid(unsafe_code)]
mod ledger;
mod member;
mod offset;
mod pool;
mod process;
mod segment;
#[forbid(unsafe_code)]
mod slabs;

pub use error::{AllocError, AttachError, GeometryError, JoinError, OffsetError, PathError};
pub use heap::Heap;
pub use layout::Geometry;
pub use ledger::{Fate, Recovery};
pub use member::{Block, Member, MemberId};
pub use offset::{AtomicOffset, Offset};
pub use pool::Pool;
pub use segment::Segment;

/// Runs the README's example as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
