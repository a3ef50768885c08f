//! The five status bits of a node (Figure 1) and the functions on them (section III-A).
//!
//! ```text
//!     4       3           2          1          0
//! +-----+-----------+------------+----------+-----------+
//! | OCC | COAL_LEFT | COAL_RIGHT | OCC_LEFT | OCC_RIGHT |
//! +-----+-----------+------------+----------+-----------+
//! ```
//! All functions take the node's status and one of its two children; the even-numbered child is the left one.

/// Something is allocated below the right child, or the child itself is.
pub const OCC_RIGHT: u64 = 0x1;
/// The same of the left child.
pub const OCC_LEFT: u64 = 0x2;
/// A release is under way below the right child.
pub const COAL_RIGHT: u64 = 0x4;
/// The same of the left child.
pub const COAL_LEFT: u64 = 0x8;
/// This very node is allocated.
pub const OCC: u64 = 0x10;
/// The status that an allocation puts into its node.
pub const BUSY: u64 = OCC | OCC_LEFT | OCC_RIGHT;
/// A release is under way on either side.
pub const COAL: u64 = COAL_LEFT | COAL_RIGHT;
/// The number of bits of a status.
pub const BITS: u32 = 5;

/// Returns the bit for the side of `child`: `right` for a right child, and the bit to its left for a left child.
fn side(right: u64, child: u64) -> u64 {
    right << (!child & 1)
}

/// Returns the coalescing bit of the branch of `child`.
pub fn coal(child: u64) -> u64 {
    side(COAL_RIGHT, child)
}

/// Returns the status without the coalescing bit of the branch of `child`.
pub fn clean_coal(status: u64, child: u64) -> u64 {
    status & !coal(child)
}

/// Returns the status with the occupancy bit of the branch of `child`.
pub fn mark(status: u64, child: u64) -> u64 {
    status | side(OCC_RIGHT, child)
}

/// Returns the status without the coalescing and the occupancy bit of the branch of `child`.
pub fn unmark(status: u64, child: u64) -> u64 {
    status & !(coal(child) | side(OCC_RIGHT, child))
}

/// Returns whether the coalescing bit of the branch of `child` is set.
pub fn is_coal(status: u64, child: u64) -> bool {
    status & coal(child) != 0
}

/// Returns whether the occupancy bit of the other branch is set.
pub fn is_occ_buddy(status: u64, child: u64) -> bool {
    status & side(OCC_RIGHT, child ^ 1) != 0
}

/// Returns whether the coalescing bit of the other branch is set.
pub fn is_coal_buddy(status: u64, child: u64) -> bool {
    is_coal(status, child ^ 1)
}

/// Returns whether the node is neither allocated nor split.
pub fn is_free(status: u64) -> bool {
    status & BUSY == 0
}
