//! The worst single operation that no cache serves, in loads and read-modify-writes: counted on memory that is as bad
//! for it as possible, and compared with what the documentation says.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::class::{Class, UNIT};
use crate::region::Region;
use crate::words::counted;

/// What an operation may cost: a constant, and an amount for each 1,024 units of the region.
struct Bound {
    name: &'static str,
    loads: (u64, u64),
    swaps: (u64, u64),
}

const fn bound(name: &'static str, loads: (u64, u64), swaps: (u64, u64)) -> Bound {
    Bound { name, loads, swaps }
}

/// The most loads and read-modify-writes, as the documentation of [`Heap`](crate::Heap) states them.
const BOUNDS: [Bound; 8] = [
    bound("a slot of a slab that has some", (11, 0), (4, 0)),
    bound("a slot freed", (5, 0), (3, 0)),
    bound("the last slot of a slab freed", (16, 0), (4, 0)),
    bound("a slot of a new slab", (80, 140), (8, 5)),
    bound("a run of 33 units", (100, 400), (12, 0)),
    bound("a run of 1000 units", (40, 28), (12, 0)),
    bound("a run freed", (110, 0), (24, 0)),
    bound("trim", (170, 12 * 1024), (8, 3400)),
];

/// Makes a region with at least this many units.
fn region(units: usize) -> Region<'static> {
    let bytes = units * UNIT / 60 * 61 + (16 << 10);
    let memory = Vec::leak(vec![0_u8; bytes]);
    // SAFETY: the memory is leaked, and nobody else has it.
    unsafe { Region::new_cleared(NonNull::from(memory).cast(), bytes) }.expect("room for units")
}

fn layout(units: usize) -> Layout {
    layout_of(units * UNIT)
}

fn layout_of(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).unwrap()
}

/// What is in use: nothing, or runs of this many units, all of them or every second one.
const STATES: [Option<(usize, bool)>; 7] = [
    None,
    Some((1, false)),
    Some((1, true)),
    Some((20, true)),
    Some((32, true)),
    Some((48, true)),
    Some((700, true)),
];

/// Puts a region into a state.
fn prepared(units: usize, state: Option<(usize, bool)>) -> Region<'static> {
    let region = region(units);
    let Some((length, every_second)) = state else { return region };
    let all: Vec<_> = core::iter::from_fn(|| region.alloc_run(layout(length), 0)).collect();
    for (number, at) in all.into_iter().enumerate() {
        if every_second && number % 2 == 1 {
            assert!(region.free_run(at, length * UNIT, 0));
        }
    }
    region
}

/// The most that each operation took: loads, read-modify-writes.
#[derive(Default)]
struct Most([(u64, u64); BOUNDS.len()]);

impl Most {
    fn note(&mut self, row: usize, (loads, swaps): (u64, u64)) {
        let most = &mut self.0[row];
        *most = (most.0.max(loads), most.1.max(swaps));
    }
}

/// Measures in a region that is full of slabs of which all slots are free, each listed.
fn measure_slabs(units: usize, most: &mut Most) {
    let (region, class) = (region(units), Class::of(layout_of(16)).unwrap());
    let slabs: Vec<_> = core::iter::from_fn(|| region.make_slab(class, 0)).collect();
    for slab in slabs {
        let (unit, _) = region.slot_of(class, slab).unwrap();
        for slots in [1, class.all_slots() & !1] {
            assert!(region.give(class, 0, unit, slots));
        }
    }
    let (found, cost) = counted(|| region.alloc_slot(class, 0));
    most.note(0, cost);
    let (slab, slot) = region.slot_of(class, found.unwrap()).unwrap();
    let (given, cost) = counted(|| region.give(class, 0, slab, 1 << slot));
    assert!(given);
    most.note(1, cost);
    let (bytes, cost) = counted(|| region.trim(0));
    assert!(bytes >= units * UNIT);
    most.note(7, cost);
}

/// Measures in a region that is full of slabs with a free slot, one of which is whole.
fn measure_slabs_in_use(units: usize, most: &mut Most) {
    let (region, class) = (region(units), Class::of(layout_of(16)).unwrap());
    let slabs: Vec<_> = core::iter::from_fn(|| region.make_slab(class, 0)).collect();
    for (number, slab) in slabs.into_iter().enumerate() {
        let (unit, _) = region.slot_of(class, slab).unwrap();
        assert!(region.give(class, 0, unit, 1));
        if number == 0 {
            assert!(region.give(class, 0, unit, class.all_slots() & !1));
        }
    }
    let (bytes, cost) = counted(|| region.trim(0));
    assert_eq!(bytes, UNIT);
    most.note(7, cost);
}

/// Measures in a region that is in a certain state.
fn measure(region: &Region<'_>, most: &mut Most) {
    let mut note = |row: usize, cost: (u64, u64)| most.note(row, cost);
    for class in Class::all() {
        let mut held = Vec::new();
        for _ in 0..class.all_slots().count_ones() + 2 {
            let (found, cost) = counted(|| region.alloc_slot(class, 0));
            if let Some(at) = found {
                note(0, cost);
                held.push(at);
                continue;
            }
            let (found, cost) = counted(|| region.alloc_slot_of_new(class, 0));
            note(3, cost);
            held.extend(found);
        }
        for at in held {
            let (slab, slot) = region.slot_of(class, at).unwrap();
            let (given, cost) = counted(|| region.give(class, 0, slab, 1 << slot));
            assert!(given);
            note(1, cost);
        }
        // All slots of a slab at once, as a cache returns them.
        let mut taken = None;
        region.take(class, 1, |slab, slots| taken = Some((slab, slots)));
        if let Some((slab, slots)) = taken {
            let (unit, _) = region.slot_of(class, slab).unwrap();
            let (given, cost) = counted(|| region.give(class, 0, unit, slots));
            assert!(given);
            note(if slots == class.all_slots() { 2 } else { 1 }, cost);
        }
        let (_, cost) = counted(|| region.trim(0));
        note(7, cost);
    }
    for (row, length) in [(4, 33), (5, 1000)] {
        for _ in 0..3 {
            let (found, cost) = counted(|| region.alloc_run(layout(length), 0));
            note(row, cost);
            if let Some(at) = found {
                let (freed, cost) = counted(|| region.free_run(at, length * UNIT, 0));
                assert!(freed);
                note(6, cost);
            }
        }
    }
}

#[test]
fn no_operation_takes_more_loads_than_is_said() {
    let mut wrong = Vec::new();
    for units in [1 << 10, 1 << 14, 1 << 17] {
        let mut most = Most::default();
        STATES.iter().for_each(|&state| measure(&prepared(units, state), &mut most));
        measure_slabs(units, &mut most);
        measure_slabs_in_use(units, &mut most);
        println!("in {units} units of 1 KiB, at worst:");
        for (of, (loads, swaps)) in BOUNDS.iter().zip(most.0) {
            let each = units as u64 / 1024;
            let may = (of.loads.0 + of.loads.1 * each, of.swaps.0 + of.swaps.1 * each);
            println!(
                "{:>32}: {loads} loads (may be {}), {swaps} read-modify-writes ({})",
                of.name, may.0, may.1
            );
            if loads > may.0 || swaps > may.1 {
                wrong.push((units, of.name, loads, swaps));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
