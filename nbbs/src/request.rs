//! Allocation requests that say more than an order.

use core::ops::Range;

/// An allocation request: size, alignment, range, direction. [`Lane::request`](crate::Lane::request) serves it.
///
/// ```
/// use nbbs::{Buddy, Metadata, Request};
///
/// let metadata = Metadata::<{ nbbs::metadata_words(1024) }>::new();
/// let frames = Buddy::new(metadata.words(), 1024)?;
/// let low = frames.here().request(Request::units(24).aligned(3).within(0..256).top_down())?;
/// assert_eq!(low, 232);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use = "a request does nothing until it is passed to `Lane::request`"]
pub struct Request {
    pub(crate) units: u64,
    pub(crate) order: u32,
    pub(crate) offset: Option<u64>,
    pub(crate) range: Option<Range<u64>>,
    pub(crate) top_down: bool,
    pub(crate) looks: u64,
}

impl Request {
    /// Creates a request for exactly `units` units, anywhere in the arena.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let run = buddy.here().request(nbbs::Request::units(11))?;
    /// assert_eq!(buddy.len_of(run), Ok(11));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn units(units: u64) -> Self {
        Self { units, order: 0, offset: None, range: None, top_down: false, looks: u64::MAX }
    }

    /// Creates a request for a block of `2^order` units, aligned to its size. This is what
    /// [`Lane::alloc`](crate::Lane::alloc) allocates, but the range and direction can be chosen. An order of 64 or more
    /// asks for more units than any arena has.
    ///
    /// ```
    /// # use nbbs::Request;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// assert_eq!(buddy.here().request(Request::block(3).within(30..64))?, 32);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn block(order: u32) -> Self {
        let units = if order < 64 { 1 << order } else { u64::MAX };
        Self { order, ..Self::units(units) }
    }

    /// Aligns the first unit to a multiple of `2^order`.
    ///
    /// ```
    /// # use nbbs::Request;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// buddy.here().alloc_at(0, 1)?;
    /// assert_eq!(buddy.here().request(Request::units(3).aligned(4))?, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn aligned(self, order: u32) -> Self {
        Self { order, ..self }
    }

    /// Says that unit 0 of the arena is number `units` of something larger, by which alignment is counted: the first
    /// unit plus `units` becomes a multiple of what [`aligned`](Self::aligned) says. Only with an offset, which may be
    /// 0, can the order of the alignment be above the arena's largest, up to 63.
    ///
    /// ```
    /// # use nbbs::Request;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// // Unit 0 is page 1003 of the machine.
    /// let page = 1003 + buddy.here().request(Request::units(3).aligned(4).offset(1003))?;
    /// assert_eq!(page, 1008);
    /// let page = 1003 + buddy.here().request(Request::units(3).aligned(10).offset(1003))?;
    /// assert_eq!(page, 1024);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn offset(self, units: u64) -> Self {
        Self { offset: Some(units), ..self }
    }

    /// Confines the units to `range`.
    ///
    /// ```
    /// # use nbbs::Request;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// assert_eq!(buddy.here().request(Request::units(3).within(7..64))?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn within(mut self, range: Range<u64>) -> Self {
        self.range = Some(range);
        self
    }

    /// Searches from the end of the range, for the last suitable place instead of the first.
    ///
    /// ```
    /// # use nbbs::Request;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// assert_eq!(buddy.here().request(Request::units(3).top_down())?, 61);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn top_down(mut self) -> Self {
        self.top_down = true;
        self
    }

    /// Gives up after a look around `blocks` free blocks in vain, 1 at least. Each has more than a quarter of the units,
    /// and too few free units around it. So a search among many holes that are too small is short, but may be refused
    /// where there is room.
    ///
    /// ```
    /// # use nbbs::{Request, RequestError};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(256) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 256)?;
    /// # let lane = buddy.here();
    /// for unit in (0..128).step_by(32) {
    ///     lane.alloc_at(unit + 30, 2)?; // leaves holes of 30 units
    /// }
    /// let request = Request::units(31).within(0..256);
    /// assert_eq!(lane.request(request.clone().looks(2)), Err(RequestError::Exhausted { units: 31 }));
    /// assert_eq!(lane.request(request), Ok(128));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn looks(mut self, blocks: u64) -> Self {
        self.looks = blocks;
        self
    }
}
