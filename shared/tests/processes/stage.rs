//! What all processes have in common: the segment that is tested, and another with the owner map and what each member
//! says.

use std::alloc::Layout;
use std::os::fd::{AsFd, OwnedFd};
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nbbs_shared::{Geometry, Segment};
use testkit::Oracle;

/// Of the segment that is tested, by life: few units and many.
pub fn geometry(life: u64) -> Geometry {
    Geometry { units: [64, 1000, 1 << 14][life as usize % 3], unit_bytes: 64, members: 6 }
}

/// Members that live on: 0 is the process that starts the others. All later ones are killed.
pub const SURVIVORS: usize = 3;

/// As many as the owner map can tell apart, those that are dead for long not counted.
pub const NUMBERS: usize = 1 << 15;

/// What a member says of itself. On a cache line of its own.
#[repr(C, align(64))]
pub struct Says {
    /// Operations done.
    pub done: AtomicU64,
    /// Whether it is in a call.
    pub acts: AtomicU64,
    /// Blocks that it has recovered.
    pub recovered: AtomicU64,
}

#[repr(C)]
pub struct Board {
    pub stop: AtomicU64,
    /// Of the survivors, and of the one that will be killed.
    pub says: [Says; SURVIVORS + 1],
}

/// Both segments, in this process.
pub struct Stage {
    pub segment: Segment,
    board: Segment,
}

impl Stage {
    /// Fresh ones.
    pub fn create(life: u64) -> Result<Self, String> {
        let segment = Segment::memfd("tested", geometry(life)).map_err(said)?;
        let units = geometry(life).units;
        let bytes = (size_of::<Board>() as u64 + 4 * units).next_power_of_two();
        let map = Geometry { units: 2 * bytes.div_ceil(64), unit_bytes: 64, members: 1 };
        let board = Segment::memfd("board", map).map_err(said)?;
        // Zero, as no block was freed before.
        let room = Layout::from_size_align(bytes as usize, 64).map_err(said)?;
        let root = board.join().map_err(said)?.alloc(room).map_err(said)?;
        board.root().store(Some(root.cast::<Board>()), Ordering::Release);
        Ok(Self { segment, board })
    }

    pub fn attach(segment: OwnedFd, board: OwnedFd) -> Result<Self, String> {
        let segment = Segment::attach_fd(segment).map_err(said)?;
        Ok(Self { segment, board: Segment::attach_fd(board).map_err(said)? })
    }

    /// Descriptors for another process.
    pub fn descriptors(&self) -> Result<[OwnedFd; 2], String> {
        let [segment, board] =
            [&self.segment, &self.board].map(|segment| segment.as_fd().try_clone_to_owned());
        Ok([segment.map_err(said)?, board.map_err(said)?])
    }

    pub fn board(&self) -> &Board {
        let root = self.board.root().load(Ordering::Acquire).expect("was stored");
        // SAFETY: it is zero at first, stays as long as the segment, and is accessed by atomics.
        unsafe { self.board.at::<Board>(root).expect("is a block").as_ref() }
    }

    pub fn says(&self, who: usize) -> &Says {
        &self.board().says[who.min(SURVIVORS)]
    }

    /// Who holds which unit.
    pub fn oracle(&self) -> Oracle<&[AtomicU32]> {
        let behind = std::ptr::from_ref(self.board()).wrapping_add(1).cast();
        // SAFETY: the root's block has room for the map behind the board, and is zero at first; as for the board.
        Oracle::over(unsafe {
            slice::from_raw_parts(behind, self.segment.geometry().units as usize)
        })
    }

    /// The unit that begins at an offset, as the map counts.
    pub fn unit(&self, offset: u64) -> u64 {
        let bytes = self.segment.geometry().units * 64;
        let end = self.segment.geometry().file_bytes().expect("it was made");
        (offset - (end - bytes.next_multiple_of(4096))) / 64
    }
}

pub fn said(error: impl ToString) -> String {
    error.to_string()
}
