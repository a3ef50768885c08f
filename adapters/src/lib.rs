//! The [`nbbs`] buddy allocator behind the traits that kernels and hypervisors expect. Every adapter is thin, and
//! behind a feature with the name of the crate it serves; none is on by default.
//!
//! | feature | what it serves | adapter |
//! |---|---|---|
//! | `x86_64` | `FrameAllocator` and `FrameDeallocator` of 4 KiB, 2 MiB and 1 GiB: what `Mapper::map_to` takes | [`Frames`] |
//! | `aarch64-paging` | `Translation`: page tables of the Arm firmware and hypervisors of Android | [`Mapped`] |
//! | `virtio-drivers` | `Hal`: DMA memory for the drivers of rCore, ArceOS and Android's guests | `virtio::Dma` |
//! | `ax-allocator` | `BaseAllocator` and `PageAllocator`: kernels and hypervisors made of ArceOS' parts | [`Region`] |
//! | `bootloader_api` | the memory map of the `bootloader` crate | [`MapEntry`] |
//! | `uefi-raw` | the memory map of UEFI, as `uefi` and others hand it on | [`MapEntry`] |
//!
//! These crates were chosen because each is what the others in its field build on, takes an allocator or a map from
//! outside, and builds with the Rust version of this workspace. `multiboot2`, `limine`, `fdt` and similar crates give
//! ranges of addresses, which can be used as entries of a map. `vm-allocator` and `vm-memory` of rust-vmm have no trait
//! to implement: use the buddy allocator itself. `page_table_multiarch` takes its frames through `ax-allocator`.
//!
//! # Layers
//!
//! ```text
//! x86_64     aarch64_paging    virtio     unsafe traits, or traits that hand out pointers
//! frames     mapped                       the promise that the memory exists and is ours; where it is mapped
//! ax_allocator   memory_map               safe traits
//! region                                  frames by physical address instead of units by index
//! ```
//!
//! ```
//! use nbbs::{Buddy, Metadata, metadata_words};
//! use nbbs_adapters::{FRAME_SIZE, Region};
//!
//! const FRAMES: u64 = 1 << 16;
//! static METADATA: Metadata<{ metadata_words(FRAMES) }> = Metadata::new();
//!
//! let memory = Region::new(Buddy::new_reserved(METADATA.words(), FRAMES)?, 0)?;
//! let map = [0x1000..0x9_f000, 0x10_0000..0x800_0000_u64];
//! assert_eq!(memory.add_map(map)?, 0x9e + 0x7f00);
//! let table = memory.alloc_frames(1, 0)?; // a physical address
//! memory.free(table, 1)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![deny(clippy::multiple_unsafe_ops_per_block)]

#[cfg(feature = "aarch64-paging")]
mod aarch64_paging;
#[cfg(feature = "ax-allocator")]
mod ax_allocator;
mod error;
mod frames;
mod mapped;
mod memory_map;
mod region;
#[cfg(feature = "virtio-drivers")]
pub mod virtio;
#[cfg(feature = "x86_64")]
mod x86_64;

pub use error::RegionError;
pub use frames::Frames;
pub use mapped::Mapped;
pub use memory_map::MapEntry;
pub use region::Region;

/// Runs the README's example as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Bytes of a frame: one unit of the arena stands for one frame.
pub const FRAME_SIZE: u64 = 4096;
