//! Records who holds which bytes.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Violation;

/// An owner map over addresses, for heaps: the ranges that are held, none of which may overlap another.
///
/// One lock orders all its changes, so it cannot check the memory model; [`Oracle`](crate::Oracle) can.
///
/// ```
/// use std::alloc::Layout;
/// use testkit::{Addresses, Violation};
///
/// let addresses = Addresses::default();
/// let layout = Layout::from_size_align(24, 8)?;
/// addresses.take(0x1000, layout)?;
/// assert!(matches!(addresses.take(0x1010, layout), Err(Violation::BytesOverlap { .. })));
/// assert!(matches!(addresses.take(0x2004, layout), Err(Violation::BytesMisaligned { .. })));
/// addresses.give(0x1000, layout)?;
/// addresses.check_empty()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Addresses {
    /// The ends of the held ranges, by their beginnings.
    held: Mutex<BTreeMap<usize, usize>>,
    /// The addresses that the heap may hand out, if they are known.
    region: Option<Range<usize>>,
}

impl Addresses {
    /// Creates a map for a heap over these addresses. (A map by `default` is for any addresses.)
    #[must_use]
    pub fn within(region: Range<usize>) -> Self {
        Self { region: Some(region), ..Self::default() }
    }

    /// Records that bytes were handed out. Must be called afterwards.
    ///
    /// # Errors
    /// The bytes are not aligned as asked, extend beyond the address space or the heap's region, or some of them are
    /// held.
    pub fn take(&self, at: usize, layout: Layout) -> Result<(), Violation> {
        if !at.is_multiple_of(layout.align()) {
            return Err(Violation::BytesMisaligned { at, align: layout.align() });
        }
        // A block of no bytes has an address to itself.
        let end = at.checked_add(layout.size().max(1));
        let bytes = at..end.ok_or(Violation::BytesOverlap { held: 0..0, claimed: at..at })?;
        if let Some(region) = &self.region
            && !(region.start <= bytes.start && bytes.end <= region.end)
        {
            return Err(Violation::BytesOutside { region: region.clone(), claimed: bytes });
        }
        let mut held = self.lock();
        let before = held.range(..bytes.end).next_back();
        match before.map(|(&begin, &end)| begin..end) {
            Some(held) if held.end > bytes.start => {
                Err(Violation::BytesOverlap { held, claimed: bytes })
            }
            _ => {
                held.insert(bytes.start, bytes.end);
                Ok(())
            }
        }
    }

    /// Records that the holder of the bytes is about to free them. Must be called before the free.
    ///
    /// # Errors
    /// These very bytes are not held as one block.
    pub fn give(&self, at: usize, layout: Layout) -> Result<(), Violation> {
        let bytes = at..at.saturating_add(layout.size().max(1));
        match self.lock().remove(&at) {
            Some(end) if end == bytes.end => Ok(()),
            end => Err(Violation::BytesNotHeld { found: end.map(|end| at..end), bytes }),
        }
    }

    /// Checks that everything has been returned.
    ///
    /// # Errors
    /// The first bytes that are held.
    pub fn check_empty(&self) -> Result<(), Violation> {
        let first = self.lock().iter().next().map(|(&begin, &end)| begin..end);
        first.map_or(Ok(()), |held: Range<usize>| Err(Violation::BytesStillHeld { held }))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Addresses;
    use crate::Violation;
    use std::alloc::Layout;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 1).unwrap()
    }

    #[test]
    fn neighbours_do_not_overlap() {
        let addresses = Addresses::default();
        for (at, size) in [(100, 10), (110, 5), (90, 10), (200, 0)] {
            assert_eq!(addresses.take(at, layout(size)), Ok(()), "{size} at {at}");
        }
        for (at, size) in [(109, 1), (85, 6), (50, 500), (100, 10), (114, 1), (200, 0)] {
            let refused = addresses.take(at, layout(size));
            assert!(matches!(refused, Err(Violation::BytesOverlap { .. })), "{size} at {at}");
        }
        assert_eq!(addresses.check_empty(), Err(Violation::BytesStillHeld { held: 90..100 }));
    }

    #[test]
    fn nothing_lies_outside_the_region() {
        let addresses = Addresses::within(100..200);
        addresses.take(100, layout(60)).unwrap();
        addresses.take(160, layout(40)).unwrap();
        for (at, size) in [(99, 1), (200, 1), (190, 11), (90, 200)] {
            let refused = addresses.take(at, layout(size)).unwrap_err();
            let claimed = at..at + size;
            assert_eq!(refused, Violation::BytesOutside { region: 100..200, claimed });
        }
    }

    #[test]
    fn only_what_is_held_can_be_given_back() {
        let addresses = Addresses::default();
        addresses.take(64, layout(64)).unwrap();
        let refused = addresses.give(96, layout(32)).unwrap_err();
        assert_eq!(refused, Violation::BytesNotHeld { bytes: 96..128, found: None });
        let refused = addresses.give(64, layout(32)).unwrap_err();
        assert_eq!(refused, Violation::BytesNotHeld { bytes: 64..96, found: Some(64..128) });
    }
}
