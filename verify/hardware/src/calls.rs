//! The calls of an arena: the same on a lane, on the thread's own lane, and on several arenas behind one handle.

use std::ops::Range;

use nbbs::sync::Word;
use nbbs::{
    AllocError, BatchError, Buddy, FreeError, Lane, Request, RequestError, ResizeError, Zones,
};

macro_rules! calls {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        /// The calls, named and documented as in [`Lane`].
        #[allow(missing_docs, clippy::missing_errors_doc)]
        pub trait Calls {
            $(fn $name(&self, $($argument: $kind),*) -> $answer;)*
        }

        /// The calls on the thread's own lane.
        impl<W: Word> Calls for Buddy<'_, W> {
            $(fn $name(&self, $($argument: $kind),*) -> $answer {
                Lane::$name(&self.here(), $($argument),*)
            })*
        }

        impl<W: Word> Calls for Lane<'_, W> {
            $(fn $name(&self, $($argument: $kind),*) -> $answer {
                Lane::$name(self, $($argument),*)
            })*
        }
    };
}

calls! {
    alloc(order: u32) -> Result<u64, AllocError>;
    alloc_units(units: u64) -> Result<u64, RequestError>;
    alloc_at(index: u64, units: u64) -> Result<u64, RequestError>;
    request(request: Request) -> Result<u64, RequestError>;
    alloc_batch(order: u32, blocks: &mut [u64]) -> Result<usize, AllocError>;
    free(index: u64) -> Result<u64, FreeError>;
    free_sized(index: u64, order: u32) -> Result<(), FreeError>;
    free_units(index: u64, units: u64) -> Result<(), FreeError>;
    free_batch(order: u32, blocks: &[u64]) -> Result<(), BatchError>;
    free_part(index: u64, part: Range<u64>) -> Result<(), ResizeError>;
    shrink(index: u64, units: u64) -> Result<(), ResizeError>;
    grow(index: u64, units: u64) -> Result<(), ResizeError>;
    split_off(index: u64, units: u64) -> Result<u64, ResizeError>;
    split(index: u64, order: u32) -> Result<(), ResizeError>;
}

/// Several arenas; the last one is preferred.
#[derive(Debug)]
pub struct LastFirst<'a, W>(pub Zones<'a, W>);

/// More zones than there are here; numbers of zones that do not exist are skipped.
const ORDER: [usize; 4] = [3, 2, 1, 0];

impl<W: Word> Calls for LastFirst<'_, W> {
    fn alloc(&self, order: u32) -> Result<u64, AllocError> {
        self.0.alloc(&ORDER, order)
    }

    fn alloc_units(&self, units: u64) -> Result<u64, RequestError> {
        self.0.alloc_units(&ORDER, units)
    }

    fn alloc_at(&self, index: u64, units: u64) -> Result<u64, RequestError> {
        self.0.alloc_at(index, units)
    }

    fn request(&self, request: Request) -> Result<u64, RequestError> {
        self.0.request(&ORDER, request)
    }

    fn alloc_batch(&self, order: u32, blocks: &mut [u64]) -> Result<usize, AllocError> {
        self.0.alloc_batch(&ORDER, order, blocks)
    }

    fn free(&self, index: u64) -> Result<u64, FreeError> {
        self.0.free(index)
    }

    fn free_sized(&self, index: u64, order: u32) -> Result<(), FreeError> {
        self.0.free_sized(index, order)
    }

    fn free_units(&self, index: u64, units: u64) -> Result<(), FreeError> {
        self.0.free_units(index, units)
    }

    fn free_batch(&self, order: u32, blocks: &[u64]) -> Result<(), BatchError> {
        self.0.free_batch(order, blocks)
    }

    fn free_part(&self, index: u64, part: Range<u64>) -> Result<(), ResizeError> {
        self.0.free_part(index, part)
    }

    fn shrink(&self, index: u64, units: u64) -> Result<(), ResizeError> {
        self.0.shrink(index, units)
    }

    fn grow(&self, index: u64, units: u64) -> Result<(), ResizeError> {
        self.0.grow(index, units)
    }

    fn split_off(&self, index: u64, units: u64) -> Result<u64, ResizeError> {
        self.0.split_off(index, units)
    }

    fn split(&self, index: u64, order: u32) -> Result<(), ResizeError> {
        self.0.split(index, order)
    }
}

/// Tells whether a refusal is an ordinary answer: memory is not free, or another operation is in the way.
pub trait Refusal {
    /// Returns whether it is an ordinary answer.
    fn is_ordinary(&self) -> bool;
}

impl Refusal for AllocError {
    fn is_ordinary(&self) -> bool {
        matches!(self, Self::Exhausted { .. })
    }
}

impl Refusal for RequestError {
    fn is_ordinary(&self) -> bool {
        matches!(self, Self::NoPlace { .. } | Self::Exhausted { .. } | Self::InUse { .. })
    }
}

impl Refusal for ResizeError {
    fn is_ordinary(&self) -> bool {
        matches!(self, Self::InUse { .. } | Self::Contended { .. })
    }
}

impl Refusal for nbbs::RangeError {
    fn is_ordinary(&self) -> bool {
        matches!(self, Self::InUse { .. })
    }
}

/// It never is: whatever is held can be freed.
impl Refusal for FreeError {
    fn is_ordinary(&self) -> bool {
        false
    }
}

/// It never is, as above.
impl Refusal for BatchError {
    fn is_ordinary(&self) -> bool {
        false
    }
}
