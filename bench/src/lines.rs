//! Metadata words on a cache-line boundary.

use nbbs::MetadataBox;

/// `len` words of zero.
///
/// # Panics
/// There is no memory for them.
#[must_use]
pub fn zeroed<W: From<u64>>(len: usize) -> MetadataBox<W> {
    MetadataBox::zeroed(len).expect("memory for the metadata")
}
