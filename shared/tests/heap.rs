//! Memory of the heap and of blocks, each in place of the other.
#![cfg(target_os = "linux")]

use std::alloc::Layout;

use nbbs_shared::{AllocError, Geometry, Member, Offset, OffsetError, Segment};

const BYTES: u64 = 64 << 10;

fn segment() -> Segment {
    let geometry = Geometry { units: BYTES / 64, unit_bytes: 64, members: 4 };
    Segment::memfd("heap", geometry).unwrap()
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).unwrap()
}

/// All slots of so many bytes that there are.
fn all(member: &Member, bytes: usize) -> Vec<Offset<u8>> {
    std::iter::from_fn(|| member.heap().alloc(layout(bytes)).ok()).collect()
}

/// A segment that is cut into slots, all of them free again.
fn in_slabs(member: &Member) {
    for slot in all(member, 48) {
        member.heap().free(slot).unwrap();
    }
    assert_eq!(member.segment().count_free_bytes(), 0);
}

#[test]
fn blocks_come_where_slabs_are_empty() {
    let member = segment().join().unwrap();
    in_slabs(&member);
    let block = member.alloc(layout(BYTES as usize)).unwrap();
    member.free(block).unwrap();
    in_slabs(&member);
    let block = member.heap().alloc(layout(BYTES as usize)).unwrap();
    member.heap().free(block).unwrap();
}

#[test]
fn slots_come_where_slabs_of_others_are_empty() {
    let member = segment().join().unwrap();
    in_slabs(&member);
    let slots = all(&member, 200);
    assert_eq!(member.heap().block(slots[0]).unwrap().len(), 224);
    assert!(slots.len() as u64 * 224 > BYTES * 3 / 4, "{} slots", slots.len());
}

#[test]
fn what_is_in_use_is_refused() {
    let segment = segment();
    let (member, other) = (segment.join().unwrap(), segment.join().unwrap());
    let slots = all(&member, 48);
    let exhausted = |error| matches!(error, Err(AllocError::Exhausted { .. }));
    for bytes in [1, 48, 49, 200, 5000] {
        assert!(exhausted(member.alloc(layout(bytes))), "a block of {bytes}");
        assert!(exhausted(other.heap().alloc(layout(bytes))), "{bytes} of the heap");
    }
    slots.into_iter().for_each(|slot| _ = member.heap().free(slot).unwrap());
}

/// Members that burst one after the other: nothing that they have freed stays away from blocks, but for their cursors'
/// slabs.
#[test]
fn bursts_leave_room() {
    let segment = segment();
    let members: Vec<Member> = (0..4).map(|_| segment.join().unwrap()).collect();
    for bytes in [16, 48, 100, 300, 1000] {
        for member in &members {
            all(member, bytes).into_iter().for_each(|slot| _ = member.heap().free(slot).unwrap());
        }
    }
    let block = members[0].alloc(layout(BYTES as usize / 4)).unwrap();
    members[0].free(block).unwrap();
}

#[test]
fn a_slot_of_another_class_is_no_pools() {
    let member = segment().join().unwrap();
    let (small, large) = (member.pool::<[u64; 2]>(), member.pool::<[u64; 1000]>());
    let (slot, block) = (small.alloc().unwrap(), large.alloc().unwrap());
    assert!(member.pool::<u8>().get(slot.cast()).is_ok(), "of the same class");
    for wrong in [member.pool::<[u64; 3]>().free(slot.cast()), large.free(slot.cast())] {
        wrong.unwrap_err();
    }
    let larger = member.pool::<[u64; 3]>().alloc().unwrap();
    small.get(larger.cast()).unwrap_err();
    small.free(block.cast()).unwrap_err();
    member.pool::<[u64; 2000]>().get(block.cast()).unwrap_err();
    small.free(slot).unwrap();
    large.free(block).unwrap();
}

#[test]
fn blocks_serve_where_no_slab_fits() {
    let segment = segment();
    let (member, other) = (segment.join().unwrap(), segment.join().unwrap());
    let unit = segment.geometry().unit_bytes as usize;
    let units: Vec<_> = std::iter::from_fn(|| member.alloc(layout(unit)).ok()).collect();
    units.iter().step_by(2).for_each(|&unit| _ = member.free(unit).unwrap());
    let pool = member.pool::<u64>();
    let objects: Vec<_> = std::iter::from_fn(|| pool.alloc().ok()).collect();
    assert_eq!((objects.len(), segment.count_free_bytes()), (units.len().div_ceil(2), 0));
    for object in objects {
        assert!(pool.get(object).is_ok() && other.pool().take(object) == Ok(member.id()));
        other.pool().free(object).unwrap();
    }
}

#[test]
fn a_pool_gives_no_misaligned_address() {
    #[repr(align(8192))]
    struct Large(#[expect(dead_code)] [u8; 8192]);
    #[repr(align(4096))]
    struct Empty;
    let (mut aligned, mut misaligned) = (0, 0);
    // Segments begin at a page, and these have even and odd numbers of pages.
    let segments = (64..80).map(|units| {
        let geometry = Geometry { units, unit_bytes: 4096, members: 1 };
        Segment::memfd("aligned", geometry).unwrap()
    });
    for segment in segments.collect::<Vec<_>>() {
        let member = segment.join().unwrap();
        let block = member.alloc(layout(8192)).unwrap().cast::<Large>();
        match member.pool::<Large>().get(block) {
            Ok(found) => aligned += usize::from(found.is_aligned()),
            Err(OffsetError::Misaligned { align: 8192, .. }) => misaligned += 1,
            other => panic!("{other:?}"),
        }
        let slot = member.heap().alloc(layout(100)).unwrap();
        let found = member.pool::<Empty>().get(slot.cast());
        assert!(found.is_err(), "{found:?} is a slot of 112 bytes");
    }
    assert!(aligned > 0 && misaligned > 0 && aligned + misaligned == 16, "{aligned} {misaligned}");
}

#[test]
fn a_slot_has_an_owner() {
    let segment = segment();
    let (member, other) = (segment.join().unwrap(), segment.join().unwrap());
    let slot = member.heap().alloc(layout(40)).unwrap();
    assert_eq!(segment.owner(slot), Ok(Some(member.id())));
    other.heap().take(slot).unwrap();
    assert_eq!(member.heap().owner(slot), Ok(Some(other.id())));
    other.heap().free(slot).unwrap();
    assert_eq!(segment.owner(slot), Ok(None));
    let within = Offset::<u8>::new(slot.bytes() + 16).unwrap();
    assert_eq!(
        segment.owner(within),
        Err(OffsetError::NoSlot { offset: within.bytes(), bytes: 48 })
    );
    let block = member.alloc(layout(400)).unwrap();
    assert_eq!(segment.owner(block), Ok(Some(member.id())));
}
