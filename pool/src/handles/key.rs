//! The bits of a handle.

/// A kind of handle: a slot's number and a generation, in a certain number of bits.
///
/// ```
/// use nbbs_pool::{Handle, Key};
///
/// let handle = Handle::new(5, 7);
/// assert_eq!((handle.index(), handle.generation()), (5, 7));
/// ```
pub trait Key: Copy {
    /// The number of slots that it can name.
    const MAX_SLOTS: usize;

    /// Makes the handle of a slot and a generation, of which it keeps as many bits as fit.
    ///
    /// ```
    /// # use nbbs_pool::{Key, SmallHandle};
    /// let handle = SmallHandle::new(5, 4096 + 7);
    /// assert_eq!((handle.index(), handle.generation()), (5, 7)); // 12 bits of it
    /// ```
    fn new(index: usize, generation: u32) -> Self;

    /// Returns the number of the slot.
    ///
    /// ```
    /// # use nbbs_pool::{Handles, Key};
    /// let numbers = Handles::<u32>::new();
    /// let seven = numbers.insert(7).unwrap();
    /// assert!(seven.index() < numbers.pool().capacity());
    /// ```
    fn index(self) -> usize;

    /// Returns the generation of the object.
    ///
    /// ```
    /// # use nbbs_pool::{Config, Global, Handle, Handles, Key};
    /// let numbers = Handles::<u32, Handle>::with_source(Global, Config::new().limit(1));
    /// let first = numbers.insert(1).unwrap();
    /// numbers.remove(first).unwrap();
    /// let second = numbers.insert(2).unwrap(); // in the same slot
    /// assert_eq!(first.index(), second.index());
    /// assert_ne!(first.generation(), second.generation());
    /// ```
    fn generation(self) -> u32;

    /// Returns as many bits of a generation as the handle has.
    ///
    /// ```
    /// # use nbbs_pool::{Handle, Key, SmallHandle};
    /// assert_eq!(Handle::truncate(4096 + 7), 4096 + 7);
    /// assert_eq!(SmallHandle::truncate(4096 + 7), 7);
    /// ```
    fn truncate(generation: u32) -> u32;
}

/// A handle of 64 bits: 32 for the slot, 32 for the generation.
///
/// ```
/// use nbbs_pool::{Handle, Handles};
///
/// let names = Handles::<&str>::new();
/// let first: Handle = names.insert("first").unwrap();
/// let copy = first;
/// assert_eq!(*names.get(copy).unwrap(), "first");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(u64);

impl Key for Handle {
    const MAX_SLOTS: usize = u32::MAX as usize;

    fn new(index: usize, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | index as u64)
    }

    fn index(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn truncate(generation: u32) -> u32 {
        generation
    }
}

impl Handle {
    /// Returns the handle as a number, which can be stored anywhere.
    ///
    /// ```
    /// use nbbs_pool::{Handle, Handles};
    ///
    /// let numbers = Handles::<u32>::new();
    /// let bits = numbers.insert(7).unwrap().to_bits();
    /// assert_eq!(*numbers.get(Handle::from_bits(bits)).unwrap(), 7);
    /// ```
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Makes the handle of a number from [`to_bits`](Self::to_bits). Any number is a handle; most are refused.
    ///
    /// ```
    /// use nbbs_pool::{Handle, HandleError, Handles};
    ///
    /// let numbers = Handles::<u32>::new();
    /// let made_up = Handle::from_bits(5);
    /// assert_eq!(numbers.remove(made_up), Err(HandleError::OutOfRange { index: 5, capacity: 0 }));
    /// ```
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// A handle of 32 bits: 20 for the slot, 12 for the generation.
///
/// ```
/// use nbbs_pool::{Handles, SmallHandle};
///
/// let numbers = Handles::<u32, SmallHandle>::new();
/// let seven = numbers.insert(7).unwrap();
/// assert_eq!(size_of_val(&seven), 4);
/// assert_eq!(numbers.pool().max_len(), 1 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SmallHandle(u32);

const SMALL_INDEX_BITS: u32 = 20;

impl Key for SmallHandle {
    const MAX_SLOTS: usize = 1 << SMALL_INDEX_BITS;

    fn new(index: usize, generation: u32) -> Self {
        Self(generation << SMALL_INDEX_BITS | index as u32)
    }

    fn index(self) -> usize {
        self.0 as usize % Self::MAX_SLOTS
    }

    fn generation(self) -> u32 {
        self.0 >> SMALL_INDEX_BITS
    }

    fn truncate(generation: u32) -> u32 {
        generation & u32::MAX >> SMALL_INDEX_BITS
    }
}

impl SmallHandle {
    /// Returns the handle as a number, which can be stored anywhere.
    ///
    /// ```
    /// use nbbs_pool::{Key, SmallHandle};
    ///
    /// assert_eq!(SmallHandle::new(5, 7).to_bits(), 7 << 20 | 5);
    /// ```
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Makes the handle of a number from [`to_bits`](Self::to_bits). Any number is a handle; most are refused.
    ///
    /// ```
    /// use nbbs_pool::{Handles, SmallHandle};
    ///
    /// let numbers = Handles::<u32, SmallHandle>::new();
    /// let bits = numbers.insert(7).unwrap().to_bits();
    /// assert_eq!(*numbers.get(SmallHandle::from_bits(bits)).unwrap(), 7);
    /// ```
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::{Handle, Key, SmallHandle};

    #[test]
    fn what_goes_in_comes_out() {
        for (index, generation) in [(0, 0), (1, 4095), ((1 << 20) - 1, 1), (77, 4096)] {
            let handle = Handle::new(index, generation);
            assert_eq!((handle.index(), handle.generation()), (index, generation));
            let small = SmallHandle::new(index, generation);
            assert_eq!(small.index(), index);
            assert_eq!(small.generation(), SmallHandle::truncate(generation));
        }
    }
}
