//! The back-end as C programs call it.
//!
//! Calls go through pointers that the compiler cannot see through, as with a shared library, so nothing is inlined.
#![allow(unsafe_code)] // C functions, each call with its proof

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::AtomicU64;

use nbbs::MetadataBox;
use nbbs_c::{Arena, Code, Error, nbbs_alloc, nbbs_attach, nbbs_free_sized, nbbs_on};
use testkit::BackEnd;

use crate::lines::zeroed;

/// The number of handles: one for each lane, as a kernel has one for each CPU.
const LANES: usize = 64;

type Alloc = unsafe extern "C" fn(*const Arena, u32, *mut u64, *mut Error) -> Code;
type FreeSized = unsafe extern "C" fn(*const Arena, u64, u32, *mut Error) -> Code;

/// An arena behind `nbbs.h`.
pub(crate) struct CInterface {
    units: u64,
    lanes: Vec<Arena>,
    alloc: Alloc,
    free_sized: FreeSized,
    /// The metadata that the handles point to.
    _words: MetadataBox,
}

impl CInterface {
    pub(crate) fn new(units: u64) -> Self {
        let words = zeroed::<AtomicU64>(nbbs::metadata_words(units));
        let metadata = words.words().as_ptr().cast_mut().cast();
        let mut arena = std::mem::MaybeUninit::uninit();
        let arena = arena.as_mut_ptr();
        let bytes = words.words().len() * 8;
        // SAFETY: memory for a handle, and zeroed words that stay as long as the handles.
        let code = unsafe { nbbs_attach(arena, metadata, bytes, units, ptr::null_mut()) };
        assert_eq!(code, Code::Ok, "metadata of the size that was asked for");
        // SAFETY: made above.
        let mut lanes = vec![unsafe { arena.read() }; LANES];
        for (lane, handle) in lanes.iter_mut().enumerate() {
            // SAFETY: a handle, changed in place while nobody else uses it.
            unsafe { nbbs_on(handle, lane, handle, ptr::null_mut()) };
        }
        let (alloc, free_sized) =
            (black_box(nbbs_alloc as Alloc), black_box(nbbs_free_sized as FreeSized));
        Self { units, lanes, alloc, free_sized, _words: words }
    }
}

impl BackEnd for CInterface {
    fn units(&self) -> u64 {
        self.units
    }

    fn max_order(&self) -> u32 {
        self.units.ilog2()
    }

    fn metadata_bytes(&self) -> usize {
        nbbs_c::nbbs_metadata_bytes(self.units)
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        let mut index = 0;
        // SAFETY: a handle that stays, a place for the index, no place for an error.
        let code = unsafe {
            (self.alloc)(&self.lanes[lane % LANES], order, &raw mut index, ptr::null_mut())
        };
        (code == Code::Ok).then_some(index)
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        // SAFETY: a handle that stays, no place for an error.
        let code =
            unsafe { (self.free_sized)(&self.lanes[lane % LANES], index, order, ptr::null_mut()) };
        if code == Code::Ok { Ok(()) } else { Err(format!("{code:?}")) }
    }
}
