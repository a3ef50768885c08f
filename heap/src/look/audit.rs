//! The audit: whether a heap's bookkeeping is in order.

use core::fmt;
use core::ptr::NonNull;

use crate::cache::{Cache, Kept};
use crate::class::{CLASSES, Class};
use crate::region::{Held, Memory, Region};

/// What an audit found broken.
///
/// ```
/// use nbbs_heap::AuditError;
///
/// let said = AuditError::Slab { address: 0x1000 }.to_string();
/// assert_eq!(said, "the slab at 0x1000 is not in order");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditError {
    /// An invariant of the buddy allocator is broken.
    Units(nbbs::Broken),
    /// The slab there is not a block of its class, has bits that are not slots, or has free slots that no caller can
    /// find.
    Slab {
        /// Where it begins.
        address: usize,
    },
    /// The stack of slabs with slots of this size leads elsewhere, or not to all of them.
    Stack {
        /// Bytes of a slot.
        size: usize,
    },
    /// A cache keeps something that is not a slot or run in use, or keeps it twice: it was freed twice, or with a wrong
    /// layout.
    Kept {
        /// Where it begins.
        address: usize,
    },
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Units(broken) => broken.fmt(f),
            Self::Slab { address } => write!(f, "the slab at {address:#x} is not in order"),
            Self::Stack { size } => {
                write!(f, "the stack of slabs with slots of {size} bytes is not in order")
            }
            Self::Kept { address } => {
                write!(
                    f,
                    "a cache keeps {address:#x}, which is no slot or run in use, or kept twice"
                )
            }
        }
    }
}

impl core::error::Error for AuditError {}

impl Memory<'_> {
    /// Checks the bookkeeping of all regions. Nothing else may be running.
    pub fn audit(&self) -> Result<(), AuditError> {
        self.find(|region| audit_region(region).err()).map_or(Ok(()), Err)
    }

    /// Checks what a cache keeps, and that none of `others` keeps it too. Nothing else may be running.
    pub fn audit_cache(
        &self,
        cache: &Cache,
        others: impl Fn(Kept, NonNull<u8>) -> usize,
    ) -> Result<(), AuditError> {
        let mut found = Ok(());
        cache.each(|kept, at| {
            let in_use = self.at(at, |region| region.find(at).is_ok_and(|held| is(held, kept)));
            if in_use != Some(true) || cache.count(kept, at) + others(kept, at) != 1 {
                found = Err(AuditError::Kept { address: at.addr().get() });
            }
        });
        found
    }
}

/// Returns whether what was found is what a cache keeps there.
fn is(held: Held, kept: Kept) -> bool {
    match kept {
        Kept::Slot(class) => held.is_of(class),
        Kept::Run(units) => matches!(held, Held::Run { units: its, .. } if its == units),
    }
}

fn audit_region(region: &Region<'_>) -> Result<(), AuditError> {
    region.buddy().audit().map_err(AuditError::Units)?;
    let (slabs, mut listed) = (region.slabs(), [0; CLASSES]);
    for unit in 0..region.buddy().units() {
        if let Some((class, free)) = slabs.look(unit) {
            let is_block = region.buddy().order_of(unit) == Ok(class.slab_order())
                && region.buddy().len_of(unit) == Ok(1 << class.slab_order());
            let is_listed = slabs.is_listed(unit);
            listed[class.number()] += usize::from(is_listed);
            if !is_block || free & !class.all_slots() != 0 || free != 0 && !is_listed {
                return Err(AuditError::Slab { address: region.address_of(unit) });
            }
        }
    }
    let wrong = Class::all().find(|&class| slabs.on_stacks(class) != listed[class.number()]);
    wrong.map_or(Ok(()), |class| Err(AuditError::Stack { size: class.size() }))
}
