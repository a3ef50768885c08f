//! The header: the bytes with which a segment's file begins, little endian.
//!
//! ```text
//!  0  magic             8   version           16  units         24  bytes of a unit      32  members
//! 40  bytes in all     48   checksum of all before               56  state: 1 being made, 2 whole
//! 64  the root, an offset that is accessed as an atomic word
//! ```
//!
//! It is read from the file, not from a mapping: nothing is mapped before the header is found to be in order, and
//! nothing is read twice.

use crate::error::AttachError;
use crate::layout::{Geometry, Layout};

/// The bytes of the header that are read and written; it has a page to itself.
pub(crate) const HEADER_BYTES: usize = 64;

/// Position of the root.
pub(crate) const ROOT_AT: usize = 64;

/// Position of the state.
pub(crate) const STATE_AT: u64 = 56;

const MAGIC: [u8; 8] = *b"nbbs-seg";

/// The version that this code reads and writes. Raise it when the meaning of a byte, or of its lock, changes.
const VERSION: u64 = 9;

/// The progress of the creator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Making = 1,
    Whole = 2,
}

impl State {
    pub fn bytes(self) -> [u8; 8] {
        (self as u64).to_le_bytes()
    }
}

/// Encodes the header of a segment.
pub(crate) fn encode(layout: &Layout, state: State) -> [u8; HEADER_BYTES] {
    let Geometry { units, unit_bytes, members } = layout.geometry;
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    let fields = [VERSION, units, unit_bytes, members, layout.bytes];
    for (place, field) in bytes[8..48].as_chunks_mut::<8>().0.iter_mut().zip(fields) {
        *place = field.to_le_bytes();
    }
    let sum = checksum(&bytes[..48]);
    bytes[48..56].copy_from_slice(&sum.to_le_bytes());
    bytes[56..].copy_from_slice(&state.bytes());
    bytes
}

/// Decodes the header of a file of `file_bytes` bytes that begins with `bytes`.
///
/// # Errors
/// It is not a segment, not one that this code can read, or was tampered with.
pub(crate) fn decode(bytes: &[u8], file_bytes: u64) -> Result<(Layout, State), AttachError> {
    let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Err(AttachError::Short { bytes: file_bytes, least: HEADER_BYTES as u64 });
    };
    if bytes[..8] != MAGIC {
        return Err(AttachError::Foreign);
    }
    let mut field = [0; 7];
    for (field, place) in field.iter_mut().zip(bytes[8..].as_chunks::<8>().0) {
        *field = u64::from_le_bytes(*place);
    }
    let [version, units, unit_bytes, members, total, sum, state] = field;
    // Checked before the checksum, which another version may compute differently.
    if version != VERSION {
        return Err(AttachError::Version { version, known: VERSION });
    }
    let computed = checksum(&bytes[..48]);
    if sum != computed {
        return Err(AttachError::Checksum { found: sum, computed });
    }
    let layout = Layout::new(Geometry { units, unit_bytes, members })?;
    if total != layout.bytes {
        return Err(AttachError::Corrupt { field: "bytes in all", value: total });
    }
    let state = match state {
        1 => State::Making,
        2 => State::Whole,
        value => return Err(AttachError::Corrupt { field: "state", value }),
    };
    if state == State::Whole && file_bytes < layout.bytes {
        return Err(AttachError::Short { bytes: file_bytes, least: layout.bytes });
    }
    Ok((layout, state))
}

/// FNV-1a, 64 bits: against accidents, not against enemies.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::{HEADER_BYTES, State, VERSION, decode, encode};
    use crate::error::AttachError;
    use crate::layout::{Geometry, Layout};
    use proptest::prelude::*;

    fn layout() -> Layout {
        Layout::new(Geometry { units: 1000, unit_bytes: 4096, members: 16 }).unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        for state in [State::Making, State::Whole] {
            let bytes = encode(&layout(), state);
            assert_eq!(decode(&bytes, layout().bytes), Ok((layout(), state)));
        }
    }

    /// Every bit of the header except those of the state matters.
    #[test]
    fn every_flipped_bit_is_refused() {
        let bytes = encode(&layout(), State::Whole);
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped, layout().bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_newer_version_is_named() {
        let mut bytes = encode(&layout(), State::Whole);
        bytes[8] += 1;
        assert_eq!(
            decode(&bytes, layout().bytes),
            Err(AttachError::Version { version: VERSION + 1, known: VERSION })
        );
    }

    #[test]
    fn short_files_are_refused() {
        let bytes = encode(&layout(), State::Whole);
        let least = layout().bytes;
        assert_eq!(decode(&bytes, least - 1), Err(AttachError::Short { bytes: least - 1, least }));
        for len in 0..HEADER_BYTES {
            assert!(matches!(decode(&bytes[..len], len as u64), Err(AttachError::Short { .. })));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), len: u64) {
            prop_assert!(decode(&bytes, len).is_err());
        }

        /// Any numbers, with the right checksum, are refused or have exactly this size.
        #[test]
        fn any_numbers_are_refused_or_in_range(
            fields in prop::array::uniform4(prop_oneof![any::<u64>(), 0..5000_u64]),
            file_bytes: u64,
        ) {
            let mut bytes = encode(&layout(), State::Whole);
            for (place, field) in bytes[16..48].as_chunks_mut::<8>().0.iter_mut().zip(fields) {
                *place = field.to_le_bytes();
            }
            let sum = super::checksum(&bytes[..48]);
            bytes[48..56].copy_from_slice(&sum.to_le_bytes());
            if let Ok((layout, _)) = decode(&bytes, file_bytes) {
                prop_assert_eq!(layout.bytes, fields[3]);
                prop_assert!(layout.bytes <= file_bytes);
            }
        }
    }
}
