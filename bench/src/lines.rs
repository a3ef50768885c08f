//! Allocates metadata words on a cache-line boundary.

use nbbs::MetadataBox;

/// Returns `len` zeroed words.
///
/// # Panics
/// There is not enough memory for them.
#[must_use]
pub fn zeroed<W: From<u64>>(len: usize) -> MetadataBox<W> {
    MetadataBox::zeroed(len).expect("memory for the metadata")
}
