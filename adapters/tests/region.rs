//! Addresses in, addresses out; what is no frame of the region is refused.

mod support;

use std::ops::Range;

use nbbs::{FreeError, RequestError};
use nbbs_adapters::{FRAME_SIZE, Region, RegionError};
use support::{region, reserved};
use testkit::program::Arena;
use testkit::steered::{Steered, count_steps};

/// What a region should answer: whether it has so many frames that are so aligned, all of it being free.
fn judge(memory: &Region<'_>, frames: u64, order: u32) -> Result<(), RequestError> {
    let (units, max) = (memory.buddy().units(), memory.buddy().max_order());
    let Range { start, end } = memory.addresses();
    let align = u128::from(FRAME_SIZE) << order;
    let first = u128::from(start).next_multiple_of(align);
    match first + u128::from(frames * FRAME_SIZE) <= end.into() {
        true => Ok(()),
        false if frames > units => Err(RequestError::Units { units: frames, max: units }),
        false if order > max => Err(RequestError::OrderTooLarge { order, max }),
        false => Err(RequestError::NoPlace { units: frames, order, start: 0, end: units }),
    }
}

#[test]
fn frames_are_aligned_at_any_base() {
    let bases =
        [0, 1 << 12, 3 << 12, 0x7ff << 12, 1 << 20, 1 << 21, (1 << 30) - (1 << 12), 1 << 40];
    for (base, units) in bases.into_iter().flat_map(|base| [(base, 1000), (base, 1 << 10)]) {
        let memory = region(units, base);
        for order in 0..=51 {
            for frames in [1, 3, 1 << order.min(40), units, units + 1] {
                let got = memory.alloc_frames(frames, order);
                let expected = judge(&memory, frames, order);
                assert_eq!(got.map(|_| ()), expected, "{frames} of {units} at {base:#x}");
                if let Ok(address) = got {
                    assert!(address.is_multiple_of(FRAME_SIZE << order));
                    memory.free(address, frames).unwrap();
                }
            }
        }
        for order in [52, 63, 64, u32::MAX] {
            let max = memory.buddy().max_order();
            let none = RequestError::Units { units: 0, max: units };
            assert_eq!(memory.alloc_frames(0, order), Err(none));
            if base > 0 {
                let refused = RequestError::OrderTooLarge { order, max };
                assert_eq!(memory.alloc_frames(1, order), Err(refused));
            }
        }
        assert_eq!(memory.buddy().stats().free_units, units);
    }
}

#[test]
fn a_refused_block_costs_what_it_costs_the_arena() {
    let arena = Arena::<Steered>::new(1 << 14);
    let buddy = arena.buddy();
    for unit in (0..1 << 14).step_by(2) {
        buddy.on(0).alloc_at(unit, 1).unwrap();
    }
    let memory = Region::new(buddy, 1 << 30).unwrap();
    for order in 1..=14 {
        // The first refusal corrects what misleads it.
        assert!(buddy.on(0).alloc(order).is_err());
        let (_, steps) = count_steps(u64::MAX, || buddy.on(0).alloc(order)).unwrap();
        let frames = count_steps(steps, || memory.alloc_frames(1 << order, order)).unwrap();
        assert_eq!(frames.0, Err(RequestError::Exhausted { units: 1 << order }));
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
    let error = RequestError::InUse { unit: 3 };
    let in_use = memory.alloc_at(start + 0x3000, 1);
    assert_eq!(in_use, Err(RegionError::Request { error, base: start }));
    assert_eq!(
        in_use.unwrap_err().to_string(),
        "unit 3 is in use or reserved; unit 0 is the frame at 0x100000"
    );
    memory.free(start, 64).unwrap();
    let error = FreeError::NotAllocated { index: 0 };
    assert_eq!(memory.free(start, 64), Err(RegionError::Free { error, base: start }));
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
    assert_eq!(twice, Err(RegionError::Map { entry: 1, address: 0x11_1000 }));
    assert_eq!(memory.buddy().stats().free_units, 2, "the entry before it was added");
    let in_its_middle = memory.add_map(std::iter::once(0x10_f000..0x11_1000_u64));
    assert_eq!(in_its_middle, Err(RegionError::Map { entry: 0, address: 0x11_0000 }));
}

#[test]
fn the_frame_at_address_zero_is_not_added() {
    for map in [0..0x3000, 0..0x2fff, 1..0x3000] {
        let memory = reserved(64, 0);
        let whole = map.end / FRAME_SIZE - 1;
        assert_eq!(memory.add_map([0..FRAME_SIZE, map.clone()]), Ok(whole), "{map:#x?}");
        assert!(memory.alloc_at(0, 1).is_err());
        assert_eq!(memory.buddy().stats().free_units, whole);
        // By those who can use it.
        memory.buddy().release(0..1).unwrap();
        assert_eq!(memory.alloc_at(0, 1), Ok(()));
    }
}
