//! Page tables: an address space is built of frames, used, and taken apart again.

use nbbs_adapters::FRAME_SIZE;

use crate::arch::AddressSpace;
use crate::memory::{Context, Held};
use crate::random::Random;

/// The most pages that an address space maps.
const PAGES: u64 = 24;

/// Builds an address space with a few pages at random places, writes to them where they are mapped, and looks for what
/// was written in the direct map.
pub fn step(random: &mut Random) {
    let Some(mut space) = AddressSpace::new() else { return };
    for _ in 0..=random.below(PAGES) {
        let Some(page) = Held::alloc(Context::Program, 0) else { break };
        // Anywhere in the lower half: each has tables of its own.
        let address = 1 << 40 | (random.draw() >> 18) & !(FRAME_SIZE - 1);
        if let Err(page) = space.map(address, page) {
            page.free();
        }
    }
    space.check(random.draw());
}
