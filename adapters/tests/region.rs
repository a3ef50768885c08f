//! Addresses in, addresses out; what is no frame of the region is refused.

mod support;

use nbbs::{RangeError, RequestError};
use nbbs_adapters::{FRAME_SIZE, Region, RegionError};
use support::{region, reserved};

#[test]
fn a_block_is_as_aligned_as_the_base() {
    for log in [12, 13, 20, 21, 30] {
        let memory = region(1 << 10, 1 << log);
        for order in 0..=10 {
            let frames = memory.alloc_frames(1 << order, order);
            if order > log - 12 {
                let refused = RequestError::OrderTooLarge { order, max: log - 12 };
                assert_eq!(frames, Err(refused));
                continue;
            }
            let address = frames.unwrap();
            assert_eq!(address % (FRAME_SIZE << order), 0);
            assert!(memory.addresses().contains(&address));
            memory.free(address, 1 << order).unwrap();
        }
    }
}

#[test]
fn what_begins_elsewhere_is_refused() {
    let memory = region(64, 0x10_0000);
    let (start, end) = (0x10_0000, 0x14_0000);
    memory.alloc_at(start, 64).unwrap();
    for address in [0, 0xf_f000, 0x10_0800, 0x14_0000, u64::MAX] {
        let refused = Err(RegionError::Address { address, start, end });
        assert_eq!(memory.free(address, 1), refused);
        assert_eq!(memory.alloc_at(address, 1), refused);
    }
    memory.free(start, 64).unwrap();
    assert!(memory.free(start, 64).is_err());
    assert_eq!(memory.buddy().stats().free_units, 64);
}

#[test]
fn a_region_ends_where_addresses_do() {
    let buddy = region(64, 0).buddy();
    assert!(Region::new(buddy, u64::MAX - 64 * FRAME_SIZE + 1).is_err(), "the end is 2^64");
    assert!(Region::new(buddy, u64::MAX - 65 * FRAME_SIZE + 1).is_ok());
    assert_eq!(Region::new(buddy, 1).unwrap_err(), RegionError::Base { base: 1, frames: 64 });
}

#[test]
fn entries_are_cut_to_whole_frames_of_the_region() {
    let memory = reserved(64, 0x10_0000);
    let map = [0..0x1000, 0xf_ff00..0x10_1fff, 0x10_2001..0x10_2fff, 0x13_e123..u64::MAX];
    assert_eq!(memory.add_map(map), Ok(1 + 1));
    assert_eq!(
        memory.add_map([
            0x15_0000..0x16_0000_u64,
            std::ops::Range { start: 0x16_0000, end: 0x10_0000 }
        ]),
        Ok(0)
    );
    assert_eq!(memory.buddy().stats().free_units, 2);
    assert_eq!(memory.alloc_at(0x10_0000, 1), Ok(()));
    assert_eq!(memory.alloc_at(0x13_f000, 1), Ok(()));

    let twice = memory.add_map([0x11_0000..0x11_2000_u64, 0x11_1000..0x11_3000]);
    assert_eq!(twice, Err(RegionError::Map(RangeError::NotReserved { unit: 0x11 })));
    assert_eq!(memory.buddy().stats().free_units, 2, "the entry before it was added");
}
