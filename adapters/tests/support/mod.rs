//! Memory that stands in for a machine's.

use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use nbbs::{Buddy, metadata_words};
use nbbs_adapters::{Frames, Mapped, Region};

/// What the memory holds before it is allocated.
pub const DIRT: u8 = 0xa5;

#[derive(Clone)]
#[repr(align(4096))]
struct Frame(#[expect(dead_code, reason = "used through pointers")] [u8; 4096]);

/// An arena of so many frames, all of them free, at physical address `base`.
#[allow(dead_code, reason = "not every test begins like this")]
pub fn region(frames: u64, base: u64) -> Region<'static> {
    Region::new(Buddy::new(words(frames), frames).unwrap(), base).unwrap()
}

/// The same, all of them reserved.
#[allow(dead_code, reason = "not every test begins like this")]
pub fn reserved(frames: u64, base: u64) -> Region<'static> {
    Region::new(Buddy::new_reserved(words(frames), frames).unwrap(), base).unwrap()
}

fn words(frames: u64) -> &'static [AtomicU64] {
    (0..metadata_words(frames)).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak()
}

/// The frames of a region in dirty memory of the host's.
#[allow(dead_code, reason = "not every test maps memory")]
pub fn mapped(region: Region<'static>) -> Mapped<'static> {
    let frames = region.buddy().units() as usize;
    let memory = vec![Frame([DIRT; 4096]); frames].leak();
    // SAFETY: the memory is the region's alone, from now on.
    unsafe { Mapped::new(Frames::new(region), NonNull::from(memory).cast()) }
}
