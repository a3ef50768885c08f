//! A kernel's memory map at boot: everything is reserved until the firmware says that it is memory.

use nbbs::{Buddy, Metadata, Request, metadata_words};

/// 256 MiB in frames of 4 KiB.
const FRAMES: u64 = 1 << 16;
static METADATA: Metadata<{ metadata_words(FRAMES) }> = Metadata::new();

/// Usable memory as the firmware lists it, in bytes.
const USABLE: [(u64, u64); 3] =
    [(0x0000_1000, 0x0009_fc00), (0x0010_0000, 0x0800_0000), (0x083f_f800, 0x1000_0000)];
/// Where the boot loader put the kernel.
const KERNEL: (u64, u64) = (0x0020_0000, 0x0053_4000);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let frames = Buddy::new_reserved(METADATA.words(), FRAMES)?;
    for (start, end) in USABLE {
        // Whole frames only: inwards, where an entry begins or ends within one.
        frames.release(start.div_ceil(1 << 12)..end >> 12)?;
    }
    // Exactly the kernel's frames: an allocation, so that its initialisation code can be freed later.
    let kernel = frames.here().alloc_at(KERNEL.0 >> 12, (KERNEL.1 - KERNEL.0) >> 12)?;
    frames.here().free_part(kernel, kernel + 0x300..kernel + 0x334)?;

    let bounce =
        frames.here().request(Request::units(24).aligned(4).within(0..0x1000).top_down())?;
    let large = frames.alloc(9)?;
    println!("kernel at frame {kernel:#x}, {} frames", frames.len_of(kernel)?);
    println!("24 frames below 16 MiB at {bounce:#x}; 2 MiB at {large:#x}");
    let stats = frames.stats();
    println!("{} frames free, {} never usable", stats.free_units, stats.reserved_units);
    assert!(bounce + 24 <= 0x1000 && large % 512 == 0);
    assert_eq!(stats.used_units, 0x300 + 24 + 512);
    assert_eq!(stats.reserved_units, 1 + 0x61 + 0x400);
    Ok(())
}
